"""VL208 to VL211: whether limits hold whom they seem to hold, and leave a room enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..overview import Place, Share
from .findings import NOTE, WARNING, Check
from .functions import decorated_by_others, listed
from .setup import Setup, kinds, policies

#: With fewer people who use all that they may, an address is no room.
_A_ROOM = 10


def bearer_alone(setup: Setup) -> Iterator[str]:
    """A limit by claimed tokens, and nothing by address in front of it."""
    held = _places(share for share in setup.shares if _counts_addresses(share))
    for share in setup.shares:
        alone = sorted({endpoint for endpoint, method in _places([share]) - held})
        if "bearer" in kinds(share) and alone:
            yield (
                f"The limit {share.bucket.name!r} counts claimed tokens, and nothing counts the address of "
                f"whoever invents them, at {listed(alone)}."
            )


def person_sized_address(setup: Setup) -> Iterator[str]:
    """A person's number holds a building."""
    found = {}
    for share in setup.shares:
        terms = share.bucket.limit.terms
        open_ = {place.endpoint for place in share.places if _may_be_anybody(setup, place)}
        if open_ and _counts_people(share) and not terms.per_address and terms.refund_if is None:
            found[share.bucket.name] = f"{share.bucket.name!r} ({listed(sorted(open_), 2)})"
    if found:
        yield (
            "These limits have no per_address, so while they know nobody a whole building gets one person's "
            f"number: {listed(list(found.values()))}."
        )


def _may_be_anybody(setup: Setup, place: Place) -> bool:
    """Whether nothing is to be seen that would keep those out whom nobody knows."""
    blueprint = place.endpoint.rpartition(".")[0]
    gates = setup.app.before_request_funcs.get(blueprint) if blueprint else None
    return not gates and not decorated_by_others(setup.app.view_functions.get(place.endpoint))


def smaller_building(setup: Setup) -> Iterator[str]:
    """A building gets less than one person."""
    for limit in setup.limits:
        plan, building = limit.terms.plan, limit.terms.per_address
        if callable(plan) or callable(building):
            continue
        for one, all_ in zip(plan, building, strict=False):
            if one.identity == all_.identity and all_.quota < one.quota:
                yield (
                    f"The limit {limit.name or limit!r} admits {one.spelling} of a person, and "
                    f"{all_.spelling} of a whole building in which nobody is known."
                )


def small_room(setup: Setup) -> Iterator[str]:
    """An address limit that a few people fill."""
    rooms = [share for share in setup.shares if _counts_addresses(share) and _rate(share)]
    for room in (each for each in rooms if each.bucket.limit.terms.refund_if is None):
        fitting = [(_rate(room) / _rate(each), each.bucket.name) for each in _people_in(setup, room)]
        people, name = min(fitting, default=(_A_ROOM, ""))
        if people < _A_ROOM:
            yield (
                f"The limit {room.bucket.name!r} has room for {int(people)} people of one address who use "
                f"all that {name!r} gives them."
            )


def _people_in(setup: Setup, room: Share) -> list[Share]:
    """The limits by person at the places of a limit by address."""
    here = _places([room])
    return [each for each in setup.shares if _counts_people(each) and _rate(each) and here & _places([each])]


def _rate(share: Share) -> float:
    """Hits a second that the tightest policy of a limit admits in the long run; 0.0 where nobody knows."""
    return min((policy.quota / policy.window for policy in policies(share) if policy.window), default=0.0)


def _places(shares: Iterable[Share]) -> set[tuple[str, str]]:
    return {(place.endpoint, place.method) for share in shares for place in share.places}


def _counts_addresses(share: Share) -> bool:
    return kinds(share) == {"ip"} and not share.bucket.limit.terms.shadow


def _counts_people(share: Share) -> bool:
    return bool(policies(share)) and bool(kinds(share) & {"participant", "user"})


CHECKS = (
    Check(
        "VL208",
        WARNING,
        bearer_alone,
        "New tokens cost nothing, and each starts with the whole limit: who invents them is never refused.",
        'Put limiter.failures("60/minute", name="auth-failures") in front, on the view or everywhere.',
    ),
    Check(
        "VL209",
        NOTE,
        person_sized_address,
        "Where people come before they are known, the first of them use up what the others behind the same "
        "address would need.",
        "Give per_address, sized for a building: a hundred times the number, say.",
    ),
    Check(
        "VL210",
        NOTE,
        smaller_building,
        "Behind one address are many people. Who is not known yet is refused because of the others.",
        "Size per_address for all who may come from one address at once.",
    ),
    Check(
        "VL211",
        NOTE,
        small_room,
        "A room behind one address is refused though nobody in it does more than they may.",
        "Size the limit by address for the people behind it, or the one by person tighter.",
    ),
)
