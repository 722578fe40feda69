"""``flask venuelimit``: what an app limits, how somebody stands, and how to forgive them."""

from __future__ import annotations

from flask.cli import AppGroup

from .list import list_limits
from .manifest import manifest
from .reset import reset
from .status import status

#: Every app with a limiter has it.
venuelimit = AppGroup("venuelimit", help="See what this app limits, and how somebody stands.")
for _command in (list_limits, manifest, reset, status):
    venuelimit.add_command(_command)
