"""The third thing a drill shows: memory stays bounded under a flood of distinct keys."""

from __future__ import annotations

from ..storage.memory import MemoryStorage
from ..storage.sketch import SketchStorage
from .callers import Callers
from .findings import Broken
from .scratch import MOST_KEYS, Noted

#: How many callers flood a store in memory, and a server, which other apps share.
_IN_MEMORY, _ON_SERVER = 3 * MOST_KEYS, 300
#: The number of whoever is refused beforehand, and of the first of the flood.
_REFUSED, _FIRST = 15, 1_000


def flood(callers: Callers) -> str:
    """Refuse somebody, let many others come, and look at what is held.

    :returns: what was seen.
    :raises Broken: the store holds more than it may, or a key for good, or has forgotten who is refused.
    """
    callers.use_up(_REFUSED)
    # refused by a request, so that the store knows that the key refuses
    callers.ask(_REFUSED)
    count = _ON_SERVER if isinstance(callers.store, Noted) else _IN_MEMORY
    with callers.at_hand():
        for who in range(_FIRST, _FIRST + count):
            callers.charge(who, callers.lane.cost)
    if callers.look(_REFUSED).allowed:
        raise Broken(f"after {count} others somebody who was refused is admitted again")
    return f"{count} others come: {held(callers.store)}; who was refused still is"


def held(store: MemoryStorage | Noted) -> str:
    """Say how much a store holds, and until when.

    :raises Broken: it is more than it may be, or a key on a server does not lapse.
    """
    if isinstance(store, Noted):
        return _lapsing(store)
    if len(store) > store.max_keys:
        raise Broken(f"{len(store)} keys are held, and {store.max_keys} may be")
    where = f" beside {store.mebibytes:g} MiB of counters" if isinstance(store, SketchStorage) else ""
    return f"{len(store)} keys held in memory{where}, of at most {store.max_keys}"


def _lapsing(store: Noted) -> str:
    lifetimes = store.lifetimes()
    without = lifetimes.count(-1)
    if without:
        raise Broken(f"{without} of {len(lifetimes)} keys on the server have no expiry")
    return (
        f"{len(lifetimes)} keys on the server, all lapse, the last in {max(lifetimes, default=0) // 1000} s"
    )
