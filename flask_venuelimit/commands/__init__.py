"""``flask venuelimit``: what an app limits, whether that works, and how somebody stands."""

from __future__ import annotations

from flask.cli import AppGroup

from .doctor import doctor
from .drill import drill
from .list import list_limits
from .manifest import manifest
from .nginx import nginx
from .reset import reset
from .size import size_address
from .status import status

#: Every app with a limiter has it.
venuelimit = AppGroup(
    "venuelimit", help="See what this app limits, whether that works, and how somebody stands."
)
for _command in (doctor, drill, list_limits, manifest, nginx, reset, size_address, status):
    venuelimit.add_command(_command)
