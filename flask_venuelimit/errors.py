"""The errors a developer meets while declaring limits or configuring an app."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A setting or declaration that cannot be kept.

    The message names the setting, says what is wrong with its value, why that matters, and what to
    change. Raised while an app is being built. While it answers requests only two are left to be wrong:
    ``VENUELIMIT_LIMITS``, whose limits may be declared later than the app, and ``VENUELIMIT_ENABLED``, which
    is read each time.
    """
