"""What is wrong with a set-up: each finding is one small function, and here is the table of them."""

from __future__ import annotations

import os
from collections.abc import Collection

from flask import Flask

from ..state import AppState
from . import addressed, configured, limited, sized, stored, surrounded
from .findings import SEVERITIES, Check, Finding
from .setup import Setup

#: All that is looked for. A code keeps its meaning for good, and is not used again for another.
CHECKS: tuple[Check, ...] = (
    *configured.CHECKS,
    *stored.CHECKS,
    *limited.CHECKS,
    *sized.CHECKS,
    *addressed.CHECKS,
    *surrounded.CHECKS,
)


def diagnose(state: AppState, apps: Collection[Flask]) -> list[Finding]:
    """Look for what is wrong with an app's set-up, or worth knowing of it; nothing is written.

    :param apps: all apps that the limiter serves.
    :returns: what matters most first.
    """
    setup = Setup(state, apps, os.environ)
    found = [finding for check in CHECKS for finding in check.findings(setup)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


__all__ = ["CHECKS", "Finding", "diagnose"]
