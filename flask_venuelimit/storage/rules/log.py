"""A log: what SlidingLog and Concurrency keep of each charge; ``log.lua`` is its other half.

Entries lie in the order of their times. Each holds its time, the running sum of all costs since the log
began, its own included, and a serial number that tells it from the others. So what counts at some time, and
when room will come, are found by halving, however long the log. Times are whole microseconds.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from .outcome import Outcome

#: Running sums begin anew before they outgrow what Lua's doubles count exactly.
_MOST = 2**52
#: Rows that no view shows any more are cut off once there are so many of them, and more than of the others.
_SLACK = 32


class Rows(NamedTuple):
    """The entries' times, running sums and serial numbers, 8 bytes each."""

    times: array[int]
    sums: array[int]
    serials: array[int]


class Log(NamedTuple):
    """A log as it was at some time: a view of rows that only ever grow at their end.

    A charge that is weighed and then not made leaves a row behind that no view shows; the next one writes
    over it. So of several views of the same rows only the one that is kept may be gone on from.

    :param birth: names the log's life.
    :param serial: the next entry's.
    :param base: the running sum before the first entry.
    :param first: where in the rows the first entry is.
    :param end: where the entries end.
    """

    birth: str
    serial: int
    base: int
    first: int
    end: int
    rows: Rows


def begun(birth: str) -> Log:
    """Begin a log that holds nothing yet."""
    return Log(birth, 0, 0, 0, 0, Rows(array("q"), array("q"), array("q")))


def enter(log: Log | None, now: int, cost: int, birth: str, limit: int, window: int) -> Outcome:
    """Charge ``cost`` if what was charged within ``window`` leaves room for it; a cost of 0 only looks.

    :param log: what is kept, or None.
    :param birth: names the life that starts if there is no live log.
    """
    kept = dated(log, now, window)
    live = kept or begun(birth)
    # time that was set back has not passed anew
    at = max(now, newest(kept)) if kept else now
    gone = outside(live, at - window)
    before = sum_before(live, gone)
    used = sum_before(live, live.end - live.first) - before
    if 0 < cost <= limit - used:
        after = appended(live, gone, at, cost, live.serial)
        left = at + window - now
        return Outcome(True, after, limit - used - cost, 0, left, 0, token_of(live), at + window)
    wait = wait_for(live, before + used + cost - limit, now, window) if used + cost > limit >= cost else 0
    expires = newest(kept) + window if kept else now
    verdict = None if cost > limit else wait
    moved = None if kept is log else kept
    return Outcome(verdict == 0, moved, max(0, limit - used), verdict, expires - now, 0, "", expires)


def leave(log: Log, now: int, token: str, window: int) -> Log | None:
    """Take the entry that ``token`` names out of the log.

    :returns: the log without it, or None where nothing changes: it counts no longer, or is in no such log.
    """
    kept = dated(log, now, window)
    index = find(kept, now, token, window) if kept else None
    return None if kept is None or index is None else removed(kept, index)


def dated(log: Log | None, now: int, window: int) -> Log | None:
    """Bring a log to ``now``: as it is, or with all its times moved back to meet a clock far back.

    :returns: the log, or None where it holds nothing that counts.
    """
    if log is None or log.first == log.end or now >= newest(log) + window:
        return None
    ahead = newest(log) - now
    if ahead <= window:
        return log
    times = array("q", [time - ahead for time in log.rows.times[: log.end]])
    return log._replace(rows=log.rows._replace(times=times))


def newest(log: Log) -> int:
    """The time of the last entry."""
    return log.rows.times[log.end - 1]


def outside(log: Log, edge: int) -> int:
    """How many entries, from the first on, are dated ``edge`` or earlier."""
    return bisect_right(log.rows.times, edge, log.first, log.end) - log.first


def sum_before(log: Log, index: int) -> int:
    """The running sum before an entry; behind the last one, the sum of all."""
    return log.rows.sums[log.first + index - 1] if index else log.base


def wait_for(log: Log, total: int, now: int, window: int) -> int:
    """Microseconds until the entry with which the running sum came to ``total`` counts no longer."""
    return log.rows.times[bisect_left(log.rows.sums, total, log.first, log.end)] + window - now


def token_of(log: Log) -> str:
    """What names the log's next entry."""
    return f"{log.birth}:{log.serial}"


def find(log: Log, now: int, token: str, window: int) -> int | None:
    """Where the entry that ``token`` names is, if it still counts; searched from the last one on."""
    birth, _, number = token.rpartition(":")
    if birth != log.birth:
        return None
    serial, serials = int(number), log.rows.serials
    gone = outside(log, max(now, newest(log)) - window)
    rows = range(log.end - 1, log.first + gone - 1, -1)
    return next((row - log.first for row in rows if serials[row] == serial), None)


def appended(log: Log, gone: int, time: int, cost: int, serial: int) -> Log:
    """Add an entry at the end, and leave the first ``gone`` behind."""
    total = sum_before(log, log.end - log.first) + cost
    if total > _MOST:
        total -= log.base
        log = rebased(log)
    for column, value in zip(log.rows, (time, total, serial), strict=True):
        del column[log.end :]
        column.append(value)
    base, first, end, rows = sum_before(log, gone), log.first + gone, log.end + 1, log.rows
    if first > max(_SLACK, end - first):
        rows = Rows(*(column[first:end] for column in rows))
        first, end = 0, end - first
    return Log(log.birth, max(log.serial, serial + 1), base, first, end, rows)


def rebased(log: Log) -> Log:
    """Let the running sum begin at 0 again."""
    times, sums, serials = (column[log.first : log.end] for column in log.rows)
    less = array("q", [total - log.base for total in sums])
    return Log(log.birth, log.serial, 0, 0, len(times), Rows(times, less, serials))


def removed(log: Log, index: int) -> Log:
    """Take an entry out, and its cost out of the running sums behind it."""
    at, end = log.first + index, log.end
    cost = sum_before(log, index + 1) - sum_before(log, index)
    times, sums, serials = (column[log.first : at] for column in log.rows)
    times += log.rows.times[at + 1 : end]
    sums += array("q", [total - cost for total in log.rows.sums[at + 1 : end]])
    serials += log.rows.serials[at + 1 : end]
    return Log(log.birth, log.serial, log.base, 0, len(times), Rows(times, sums, serials))
