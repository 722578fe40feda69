"""The errors a developer meets while declaring limits or configuring an app."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A setting or declaration that cannot be kept.

    The message names the setting, says what is wrong with its value, why that matters, and what to
    change. Raised while an app is being built, never while it answers a request.
    """
