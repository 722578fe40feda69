"""A drill of all that an app limits, in a scratch namespace whose clock moves instead of anybody waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flask import Flask

from ..callbacks import logger
from ..errors import ConfigurationError
from ..state import AppState, require_state
from .callers import Callers
from .findings import FAILED, MEMORY, NOT_DRIVEN, OK, RECOVERY, REFUSAL, Broken, Finding, Undriven
from .flood import flood
from .lanes import Lane, lanes
from .recovery import recover
from .refusal import refuse

_CHECKS: tuple[tuple[str, Callable[[Callers], str]], ...] = (
    (REFUSAL, refuse),
    (RECOVERY, recover),
    (MEMORY, flood),
)


def rehearse(app: Flask) -> Iterator[Finding]:
    """Drive callers into every limit of an app, and tell what each check found, as it is found.

    No view and no hook of the app runs, no counter of it changes, nobody who listens to its signals hears of
    it, and nothing waits. Its handlers for refusals, and its templates, do run.

    :raises ConfigurationError: the app has no limiter, nothing counts in it, or its settings cannot be kept.
    """
    state = require_state(app)
    if not state.counting:
        raise ConfigurationError(
            "Limiting is off in this app, so nobody is ever refused: set VENUELIMIT_STORAGE_URI, and "
            "VENUELIMIT_ENABLED to true where it is set."
        )
    for lane in lanes(state):
        yield from _drive(state, lane)


def _drive(state: AppState, lane: Lane) -> Iterator[Finding]:
    if not lane.policies:
        for check, _ in _CHECKS:
            yield Finding(lane.label, check, NOT_DRIVEN, "its policy is told at each request")
        return
    try:
        callers = Callers(state, lane)
    except state.raw_storage.failures as error:
        yield Finding(
            lane.label, REFUSAL, FAILED, f"the storage did not answer ({type(error).__name__}: {error})"
        )
        return
    try:
        for check, look in _CHECKS:
            yield _checked(state, callers, check, look)
    finally:
        _close(state, callers)


def _close(state: AppState, callers: Callers) -> None:
    try:
        callers.close()
    except state.raw_storage.failures as error:
        logger.warning("the scratch keys of a drill are left to lapse by themselves: %s", error)


def _checked(state: AppState, callers: Callers, check: str, look: Callable[[Callers], str]) -> Finding:
    label = callers.lane.label
    try:
        return Finding(label, check, OK, look(callers))
    except Broken as broken:
        return Finding(label, check, FAILED, str(broken))
    except Undriven as undriven:
        return Finding(label, check, NOT_DRIVEN, str(undriven))
    except state.raw_storage.failures as error:
        return Finding(label, check, FAILED, f"the storage did not answer ({type(error).__name__}: {error})")
