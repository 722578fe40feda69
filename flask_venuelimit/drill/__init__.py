"""A drill: callers are driven into every limit, in a scratch namespace, and what they get is looked at.

A limit nobody has ever hit is code that was never run and that every request depends on.
"""

from .findings import FAILED, NOT_DRIVEN, OK, Finding
from .outside import rehearse_at
from .rehearsal import rehearse

__all__ = ["FAILED", "NOT_DRIVEN", "OK", "Finding", "rehearse", "rehearse_at"]
