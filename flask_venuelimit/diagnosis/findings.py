"""What a finding is, and what finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .setup import Setup

#: Limits do not count, or somebody is let through who should not be.
ERROR = "error"
#: Limits do less than they seem to.
WARNING = "warning"
#: Worth knowing; it may well be meant.
NOTE = "note"
SEVERITIES = (ERROR, WARNING, NOTE)


class Finding(NamedTuple):
    """One thing that is wrong with a set-up, or worth knowing of it.

    :param code: ``VL001`` and so on; a code keeps its meaning for good.
    :param severity: ``"error"``, ``"warning"`` or ``"note"``.
    :param what: what was found, in a sentence. It shows no password, and nobody's identity.
    :param why: why it matters.
    :param change: what to change.
    """

    code: str
    severity: str
    what: str
    why: str
    change: str

    @property
    def matters(self) -> bool:
        """Whether it is more than a note."""
        return self.severity != NOTE


class Check(NamedTuple):
    """One thing that is looked for.

    :param look: says what was found, each in a sentence; nothing where all is well.
    """

    code: str
    severity: str
    look: Callable[[Setup], Iterator[str]]
    why: str
    change: str

    def findings(self, setup: Setup) -> list[Finding]:
        """What this check finds."""
        return [Finding(self.code, self.severity, what, self.why, self.change) for what in self.look(setup)]
