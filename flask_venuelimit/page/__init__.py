"""The limit page: where a person who was refused lands, waits, and is shown the way back."""

from __future__ import annotations
