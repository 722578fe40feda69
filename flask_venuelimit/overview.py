"""What an app limits, and how somebody stands with it, seen from outside any request: for operators."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .buckets import Bucket
from .charging import Entry, Hit
from .coverage import UNMATCHED, cover
from .decisions import Decision
from .limits import Limit
from .page import views as page_views
from .subjects import Subject
from .terms import Cost

if TYPE_CHECKING:
    from .state import AppState


class Place(NamedTuple):
    """Where requests are charged, and how much."""

    endpoint: str
    method: str
    cost: Cost


class Share(NamedTuple):
    """One bucket of a limit, and the places that share it.

    :param method: the request method, where each has a bucket of its own.
    """

    bucket: Bucket
    method: str | None
    places: list[Place]


class Standing(NamedTuple):
    """How a subject stands with one bucket of a limit.

    :param limit: the limit's name; an unnamed one's is its endpoint.
    :param method: the request method, where each has a bucket of its own.
    :param decision: what a hit of cost 1 would get now; None where that is not known here.
    :param unknown: why it is not known, in words; empty where it is.
    :param failed: whether it is not known because storage could not tell.
    """

    limit: str
    method: str | None
    decision: Decision | None
    unknown: str = ""
    failed: bool = False


def shares(state: AppState) -> list[Share]:
    """Every bucket of every limit of an app, in the order in which limits were declared.

    A limit behind a decorator that nobody can look through is met by requests alone, and covers nothing here.
    """
    limits = state.declared.limits
    covering = _covering(state)
    busy = {share.bucket.limit for share in covering}
    idle = [share for limit in limits if limit.name and limit not in busy for share in _by_hand(state, limit)]
    # a view may carry a limit of another VenueLimit, which nobody declared here
    order = {limit: position for position, limit in enumerate(limits)}
    return sorted([*covering, *idle], key=lambda share: order.get(share.bucket.limit, len(limits)))


def standings(state: AppState, subject: Subject, names: Collection[str] = ()) -> list[Standing]:
    """Look how ``subject`` stands with each limit whose key can name it, in one storage call.

    :param names: these limits only; empty for all.
    :raises ValueError: there is no such limit, its key never names such a subject, or the subject is no
        address though it is said to be one.
    """
    who = state.detached_visit().who
    whose = who.in_its_bucket(subject)
    concerned = _concerning(state, subject, names)
    hits = [Hit(share.bucket, whose, 1) for share in concerned if not _out_of_reach(share)]
    entries = iter(state.till.charge(who, hits, peek=True))
    return [_standing(share, entries) for share in concerned]


def forget(state: AppState, subject: Subject, names: Collection[str] = ()) -> None:
    """Forget what ``subject`` has used of each limit whose key can name it.

    What :func:`standings` does not know stays as it is.

    :param names: these limits only; empty for all.
    :raises ValueError: as :func:`standings` does.
    """
    who = state.detached_visit().who
    whose = who.in_its_bucket(subject)
    known = [share for share in _concerning(state, subject, names) if not _out_of_reach(share)]
    # by hand the bucket of each method may have been charged, whatever requests there are
    methods, plans = state.methods(), state.settings.limits
    buckets = [bucket for share in known for bucket in share.bucket.of_each(methods, plans)]
    state.till.forget(who, buckets, whose)


def _concerning(state: AppState, subject: Subject, names: Collection[str]) -> list[Share]:
    """The buckets that ``subject`` may have."""
    every = shares(state)
    for name in names:
        _check(every, subject, name)
    asked = [share for share in every if not names or share.bucket.name in names]
    return [share for share in asked if _names(share, subject)]


def _check(every: Iterable[Share], subject: Subject, name: str) -> None:
    """Hold a name that somebody typed against the limits that there are."""
    named = [share for share in every if share.bucket.name == name]
    if not named:
        known = ", ".join(sorted({share.bucket.name for share in every})) or "none"
        raise ValueError(f"no limit is called {name!r}. There are: {known}.")
    if not any(_names(share, subject) for share in named):
        kind = named[0].bucket.limit.terms.key.kind
        raise ValueError(f"the limit {name!r} is keyed by {kind}, so no {subject.kind} has a bucket of it.")


def _names(share: Share, subject: Subject) -> bool:
    """Whether a limit's key can name such a subject; every key ends in the address."""
    return subject.kind == "ip" or subject.kind in share.bucket.limit.terms.key.kinds


def _out_of_reach(share: Share) -> str:
    """Why nobody can know this bucket's counters from here; empty where they can be asked for."""
    if callable(share.bucket.cells) or callable(share.bucket.address_cells):
        return "its policy is told at each request"
    return "each process counts it for itself" if share.bucket.limit.terms.per_process else ""


def _standing(share: Share, entries: Iterator[Entry]) -> Standing:
    name, unknown = share.bucket.name, _out_of_reach(share)
    if unknown:
        return Standing(name, share.method, None, unknown)
    decision = next(entries).decision
    receipt = decision.receipt
    if receipt is None or receipt.pause is not None or receipt.local:
        return Standing(name, share.method, None, "storage could not tell", failed=True)
    return Standing(name, share.method, decision)


def _covering(state: AppState) -> list[Share]:
    """The buckets that some request is charged to."""
    found: dict[tuple[Limit, str], Share] = {}
    for endpoint, method in _requests(state):
        covered = cover(state.app, state.declared, state.owner, endpoint, method, state.settings.limits)
        for bucket in (*covered.front, *covered.ending, *covered.at_decorators.values()):
            own = method if bucket.limit.terms.per_method else None
            share = found.setdefault((bucket.limit, bucket.scope), Share(bucket, own, []))
            share.places.append(Place(endpoint or UNMATCHED, method, bucket.cost))
    return list(found.values())


def _requests(state: AppState) -> Iterator[tuple[str | None, str]]:
    """Each endpoint with each of its methods; None for what matches no route. HEAD is GET."""
    for rule in state.app.url_map.iter_rules():
        if page_views.concerns(rule.rule, state.settings):
            continue
        free = {"HEAD", "OPTIONS"} if getattr(rule, "provide_automatic_options", False) else {"HEAD"}
        for method in sorted((rule.methods or state.methods()) - free):
            yield rule.endpoint, method
    for method in sorted(state.methods() - {"HEAD"}):
        yield None, method


def _by_hand(state: AppState, limit: Limit) -> list[Share]:
    """The buckets of a limit that covers nothing, and is asked by hand, in requests or in none."""
    methods: list[str | None] = [None]
    if limit.terms.per_method:
        methods = [*sorted({"GET"}.union(method for endpoint, method in _requests(state) if endpoint))]
    name, cost, plans = limit.name or UNMATCHED, limit.terms.cost, state.settings.limits
    return [Share(Bucket.of(limit, name, cost, method or "GET", plans), method, []) for method in methods]
