"""VL001 to VL010: whether anybody counts at all, and whether settings are what they seem."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from ..checks import PREFIX, switch
from ..errors import ConfigurationError
from ..settings import ENABLED, KNOWN, Settings, read_settings, unknown_settings
from ..storage.redis import RedisStorage
from .findings import ERROR, NOTE, WARNING, Check
from .setup import Setup

#: What a field of the settings is read from, where the name does not say so.
_READ_FROM = {
    "salt": "VENUELIMIT_SALT or SECRET_KEY",
    "proxies": "VENUELIMIT_TRUSTED_PROXIES or VENUELIMIT_FORWARDED_HEADER",
}
_SHORTEST_SECRET = 8
# of tutorials and templates, in small letters and without what is no letter
_WELL_KNOWN = re.compile(
    "development|password|(please)?(change|replace)(me|this)(please)?|(my|your|a)?(super|very|top)?secret(key)?|"
    "thisisa?secret(key)?|youwillneverguess|(a)?hardtoguessstring|insecure|notsosecret|flasksecretkey"
)


def no_storage(setup: Setup) -> Iterator[str]:
    """Nobody counts."""
    if not setup.state.raw_storage.counts:
        budgets = ", ".join(sorted(limit.name or repr(limit) for limit in setup.limits if limit.terms.budget))
        open_ = f" These budgets are open: {budgets}." if budgets else ""
        yield f"Limiting is off: no storage is set, so every limit admits every request.{open_}"


def switched_off(setup: Setup) -> Iterator[str]:
    """Limiting is switched off, or the switch says neither."""
    value = setup.config.get(ENABLED)
    try:
        on = value is None or switch(ENABLED, value)
    except ConfigurationError:
        yield f"{ENABLED} is neither true nor false, so every request fails."
        return
    if not on:
        yield f"Limiting is off: {ENABLED} says so, and every limit admits every request."


def unknown(setup: Setup) -> Iterator[str]:
    """Settings that nothing reads."""
    yield from unknown_settings(setup.config)


def overrides_without_limit(setup: Setup) -> Iterator[str]:
    """``VENUELIMIT_LIMITS`` does not match the limits."""
    try:
        setup.state.check_plans()
    except ConfigurationError as error:
        yield str(error)


def changed_since(setup: Setup) -> Iterator[str]:
    """Settings that were changed once ``init_app`` had read them."""
    try:
        now = read_settings(setup.config, storage_given=setup.storage_given)
    except ConfigurationError as error:
        # only the name: the text quotes the value, which may be a secret
        named = re.findall(rf"{PREFIX}\w+", str(error))
        yield f"{named[0] if named else 'A setting'} was set after init_app, to what cannot be kept."
        return
    for name in _differing(setup.settings, now):
        if name != "salt" or setup.state.raw_storage.counts:
            spelt = _READ_FROM.get(name, PREFIX + name.upper())
            yield f"{spelt} was changed after init_app, which goes by the value it had then."


def _differing(one: Settings, other: Settings) -> list[str]:
    return [each.name for each in fields(one) if getattr(one, each.name) != getattr(other, each.name)]


def only_in_environment(setup: Setup) -> Iterator[str]:
    """Settings of the environment that do not arrive in the app."""
    for name in sorted(KNOWN):
        for spelt in (f"FLASK_{name}", name):
            if setup.environ.get(spelt) and setup.config.get(name) is None:
                yield f"The environment has {spelt}, but app.config has no {name}."


def without_effect(setup: Setup) -> Iterator[str]:
    """Settings that another one leaves without an effect."""
    proxies = setup.settings.proxies
    if setup.storage_given and setup.config.get("VENUELIMIT_STORAGE_URI"):
        yield "VENUELIMIT_STORAGE_URI is not used: VenueLimit was given a storage object, which outranks it."
    named = not setup.storage_given and isinstance(setup.state.raw_storage, RedisStorage)
    if setup.config.get("VENUELIMIT_STORAGE_OPTIONS") and not named:
        yield "VENUELIMIT_STORAGE_OPTIONS are not used: they are for a Redis that is named by its URI."
    if setup.config.get("VENUELIMIT_FORWARDED_HEADER") and not proxies.any:
        yield (
            f"VENUELIMIT_FORWARDED_HEADER is {proxies.header}, but that header is never read: "
            "VENUELIMIT_TRUSTED_PROXIES is not set, so nobody is believed."
        )


def weak_secret(setup: Setup) -> Iterator[str]:
    """A secret that anybody guesses."""
    for name in ("SECRET_KEY", "VENUELIMIT_SALT"):
        secret = _text(setup.config, name)
        if secret and (len(secret) < _SHORTEST_SECRET or _WELL_KNOWN.fullmatch(_letters(secret))):
            yield f"{name} is a secret that is easily guessed: it is short, or stands in many a tutorial."


def salt_that_rotates(setup: Setup) -> Iterator[str]:
    """A salt that changes with a key that is changed now and then."""
    if setup.config.get("SECRET_KEY_FALLBACKS") and not _text(setup.config, "VENUELIMIT_SALT"):
        yield "SECRET_KEY is rotated: there are SECRET_KEY_FALLBACKS. The salt of limits is derived from it."


def _letters(text: str) -> str:
    return re.sub("[^a-z]", "", text.lower())


def _text(config: Mapping[str, Any], name: str) -> str:
    value = config.get(name)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


def no_jitter(setup: Setup) -> Iterator[str]:
    """Everybody is told to come back at once."""
    if setup.settings.retry_jitter == 0:
        yield "VENUELIMIT_RETRY_JITTER is 0: whoever is refused at one time is told to come back at one time."


CHECKS = (
    Check(
        "VL001",
        ERROR,
        no_storage,
        "Nothing is counted, and nobody is ever refused.",
        "Set VENUELIMIT_STORAGE_URI, for instance to redis://localhost:6379, or memory:// for one process.",
    ),
    Check(
        "VL002",
        ERROR,
        switched_off,
        "Nothing is counted, and nobody is ever refused; or, if the value says neither, nobody is answered.",
        "Take VENUELIMIT_ENABLED out, or set it to True.",
    ),
    Check(
        "VL003",
        WARNING,
        unknown,
        "A misspelt setting has no effect, and its default counts instead.",
        "Correct the name, or take it out.",
    ),
    Check(
        "VL004",
        ERROR,
        overrides_without_limit,
        "The first request fails with a ConfigurationError, and so does each one after it.",
        "Correct VENUELIMIT_LIMITS: names as flask venuelimit list shows them, and no budgets.",
    ),
    Check(
        "VL005",
        WARNING,
        changed_since,
        "init_app reads settings once, VENUELIMIT_ENABLED aside. What is set later has no effect.",
        "Load the app's config first, and call init_app then.",
    ),
    Check(
        "VL006",
        WARNING,
        only_in_environment,
        "The app does not load it, so it has no effect.",
        "Call app.config.from_prefixed_env() before init_app, and give the variable the prefix FLASK_.",
    ),
    Check(
        "VL007",
        WARNING,
        without_effect,
        "Somebody believes that it counts.",
        "Take one of the two out, or set the one that is missing.",
    ),
    Check(
        "VL008",
        NOTE,
        weak_secret,
        "Who guesses the key of the session can be a new participant with each request, each with a limit of "
        "their own; who guesses the salt can find out who is behind a key of the storage.",
        "On a server, use a long random one: python -c 'import secrets; print(secrets.token_hex())'.",
    ),
    Check(
        "VL009",
        NOTE,
        salt_that_rotates,
        "With each new key everybody starts anew, those who are refused as well.",
        "Set VENUELIMIT_SALT to a random text of its own, the same in every process.",
    ),
    Check(
        "VL010",
        NOTE,
        no_jitter,
        "A room that was refused comes back in the same second, and most of it is refused again.",
        "Take VENUELIMIT_RETRY_JITTER out; the default is a tenth of the wait.",
    ),
)
