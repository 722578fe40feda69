"""Settings and declarations that cannot be kept: the whole text of each error."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import (
    ConfigurationError,
    MemoryStorage,
    RedisStorage,
    VenueLimit,
    by_ip,
)
from tests.acceptance.callers import NAVIGATING, caller, message, statuses

NO_SALT = (
    "VENUELIMIT_SALT is not set, and there is no SECRET_KEY to derive it from. Without a salt anyone who can "
    "read the storage could guess who is behind a key. Set either of them, the same in every process."
)
PREFIX = (
    "VENUELIMIT_KEY_PREFIX is {!r}. Use printable ASCII without spaces or braces: braces decide where a "
    "Redis Cluster keeps a key."
)
BITS = (
    "VENUELIMIT_IPV6_PREFIX is {!r}. Use a whole number of bits from 1 to 128; 56 is what a household gets."
)
PATH = (
    "VENUELIMIT_PAGE_PATH is {!r}. Use a path of this app that starts with one slash, such as "
    "/too-many-requests."
)
MODE = "VENUELIMIT_PAGE_MODE is {!r}. Use one of: redirect, inline."
JITTER = "VENUELIMIT_RETRY_JITTER is {!r}. Use a number from 0 to 1: a share of the wait."
SWITCH = "{} is {!r}, which is neither true nor false. Use True or False."


def refused(**settings: Any) -> str:
    """What an app with these settings is told at ``init_app``."""
    app = Flask("venue")
    app.config.update({"SECRET_KEY": "s", "VENUELIMIT_STORAGE_URI": "memory://", **settings})
    return message(VenueLimit, app)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("KEY_PREFIX", "", PREFIX),
        ("KEY_PREFIX", "a{b}", PREFIX),
        ("KEY_PREFIX", "pub quiz", PREFIX),
        ("KEY_PREFIX", "prä", PREFIX),
        ("IPV6_PREFIX", 0, BITS),
        ("IPV6_PREFIX", 129, BITS),
        ("IPV6_PREFIX", "all", BITS),
        ("IPV6_PREFIX", 56.5, BITS),
        ("IPV6_PREFIX", True, BITS),
        ("PAGE_PATH", "too-many-requests", PATH),
        ("PAGE_PATH", "//evil.example", PATH),
        ("PAGE_PATH", "/", PATH),
        ("PAGE_PATH", "/a?b", PATH),
        ("PAGE_PATH", "/<name>", PATH),
        ("PAGE_PATH", "/a/../page", PATH),
        ("PAGE_PATH", "/page\n", PATH),
        ("PAGE_MODE", "popup", MODE),
        ("PAGE_MODE", True, MODE),
        ("RETRY_JITTER", -0.1, JITTER),
        ("RETRY_JITTER", 1.5, JITTER),
        ("RETRY_JITTER", "nan", JITTER),
        ("RETRY_JITTER", "a lot", JITTER),
        ("RETRY_JITTER", True, JITTER),
    ],
)
def test_a_value_that_cannot_be_kept_is_named(name: str, value: Any, text: str) -> None:
    """The error names the setting and its value, and says what to write instead."""
    assert refused(**{f"VENUELIMIT_{name}": value}) == text.format(value)


@pytest.mark.parametrize(
    "name", ["VENUELIMIT_ENABLED", "VENUELIMIT_REQUIRE_STORAGE", "VENUELIMIT_ROBOTS_TXT"]
)
@pytest.mark.parametrize("value", ["perhaps", 2, [True]])
def test_a_switch_is_on_or_off(name: str, value: Any) -> None:
    """What is neither true nor false is no guess."""
    assert refused(**{name: value}) == SWITCH.format(name, value)


@pytest.mark.parametrize("value", [["draft", "legacy"], "trio,legacy"])
def test_unknown_header_kinds_are_named(value: Any) -> None:
    """A list or text with commas, and each part one of three."""
    assert refused(VENUELIMIT_HEADERS=value) == (
        "VENUELIMIT_HEADERS names 'legacy'. Use any of: draft, trio, x; an empty list sends none."
    )


@pytest.mark.parametrize("value", [7, [1], {"draft": 1}])
def test_a_list_is_a_list_or_text_with_commas(value: Any) -> None:
    """Anything else is quoted back."""
    assert refused(VENUELIMIT_HEADERS=value) == (
        f"VENUELIMIT_HEADERS is {value!r}. Use a list of texts, or one text with commas."
    )


@pytest.mark.parametrize("value", ["socket_timeout=1", [("a", 1)]])
def test_storage_options_are_a_dict(value: Any) -> None:
    """They are redis-py's own options, by name."""
    assert refused(VENUELIMIT_STORAGE_OPTIONS=value) == (
        f"VENUELIMIT_STORAGE_OPTIONS is {value!r}. Use a dict of redis-py's own options."
    )


@pytest.mark.parametrize("secret", [None, "", b""])
def test_storage_without_any_salt_is_refused(secret: Any) -> None:
    """Storage and neither VENUELIMIT_SALT nor SECRET_KEY: an error, by URI or by object."""
    assert refused(SECRET_KEY=secret) == NO_SALT
    app = Flask("venue")
    assert message(VenueLimit, app, storage=MemoryStorage()) == NO_SALT


def test_a_salt_alone_will_do() -> None:
    """An app without sessions needs no SECRET_KEY."""
    app = Flask("venue")
    app.config["VENUELIMIT_SALT"] = "s"
    limiter = VenueLimit(app, storage=MemoryStorage())
    limiter.limit("1/minute", key=by_ip).everywhere()
    assert statuses(caller(app), "/", 2) == [404, 429]
    assert statuses(caller(app), "/", 1, headers=NAVIGATING) == [303]


# -- the storage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("localhost:6379", "has no scheme. Use one of memory://, redis://, rediss://"),
        ("postgres://localhost", "names the unknown scheme postgres://. Use one of memory://, redis://"),
        ("memory://?max_keys=0", "has max_keys='0'. Use one whole number of at least 1."),
        ("memory://?max_keys=many", "has max_keys='many'. Use one whole number of at least 1."),
        (
            "memory://?max_key=5",
            "has the unknown option 'max_key'. memory:// knows max_keys and sketch only.",
        ),
        (
            "memory://somewhere",
            "has more than options after memory://. Use memory:// or memory://?max_keys=100000.",
        ),
        ("redis://localhost:port", "has a host or port that cannot be read. Use a port from 1 to 65535"),
        ("redis://localhost:99999", "has a host or port that cannot be read. Use a port from 1 to 65535"),
        ("redis://localhost/first", "has a path that is no database number. Use redis://host:port/0."),
        ("redis://localhost/0#b", "has a # in it. Percent-encode special characters in a password."),
        ("unix://", "names no socket. Use unix:///path/to/redis.sock."),
    ],
)
def test_a_bad_uri_is_refused_at_the_start(uri: str, said: str) -> None:
    """The error names the setting, what is wrong and what to write."""
    text = refused(VENUELIMIT_STORAGE_URI=uri)
    assert text.startswith("VENUELIMIT_STORAGE_URI ")
    assert said in text


@pytest.mark.parametrize(
    "uri",
    [
        "redis://user:hunter2@localhost:port",
        "redis://user:hunter2@localhost:99999",
        "redis://:hunter2@localhost/first",
        "redis://:hunter2@localhost/0?socket_timeout=soon",
        "redis://:hunter2@localhost/0?no_such_option=1",
        "redis://:hunter2#@localhost",
        "redis://:hun/ter2@localhost",
        "postgres://user:hunter2@localhost",
        "user:hunter2@localhost",
        "redis://[::1:hunter2@",
    ],
)
def test_no_error_shows_a_password(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the text nor the traceback nor the log has it."""
    caplog.set_level(0)
    app = Flask("venue")
    app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI=uri)
    with pytest.raises(ConfigurationError) as caught:
        VenueLimit(app)
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert [word for word in ("hunter2", "ter2") if word in told] == []


def test_an_option_that_redis_py_does_not_take_is_named() -> None:
    """A misspelt option is found at the start, not at the first request."""
    text = refused(
        VENUELIMIT_STORAGE_URI="redis://localhost", VENUELIMIT_STORAGE_OPTIONS={"sockettimeout": 1}
    )
    assert text == (
        "VENUELIMIT_STORAGE_URI or VENUELIMIT_STORAGE_OPTIONS has the option 'sockettimeout' that redis-py "
        "does not take (TypeError). The names and values are those of redis.Redis(...)."
    )


def test_a_uri_must_be_text() -> None:
    """A number or an object is no URI."""
    assert refused(VENUELIMIT_STORAGE_URI=6379) == "VENUELIMIT_STORAGE_URI has to be text, not int."


@pytest.mark.parametrize("storage", [object(), 7, MemoryStorage])
def test_an_object_that_is_no_storage_is_refused(storage: Any) -> None:
    """``VenueLimit(storage=...)`` takes a store or a redis-py client; the error says so."""
    app = Flask("venue")
    app.config["SECRET_KEY"] = "s"
    text = message(VenueLimit, app, storage=storage)
    assert text.startswith("storage: ")
    assert "redis-py client" in text


def test_redis_storage_takes_a_client() -> None:
    """Anything else is refused where it is handed over."""
    not_a_client: Any = "redis://localhost"
    assert message(RedisStorage, not_a_client).startswith("storage: RedisStorage cannot use a builtins.str.")


@pytest.mark.parametrize("max_keys", [0, -1, 1.5, "5", True])
def test_memory_storage_holds_a_whole_number_of_keys(max_keys: Any) -> None:
    """At least one; the error quotes what it was given."""
    with pytest.raises(ValueError, match="max_keys") as caught:
        MemoryStorage(max_keys=max_keys)
    assert str(caught.value) == (
        f"MemoryStorage(max_keys={max_keys!r}): max_keys has to be a whole number of at least 1."
    )


# -- from the environment ------------------------------------------------------------------------


def test_settings_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are texts with commas there, and numbers are what JSON makes of them."""
    settings = {
        "SECRET_KEY": "s",
        "VENUELIMIT_STORAGE_URI": "memory://?max_keys=50",
        "VENUELIMIT_HEADERS": "trio, x",
        "VENUELIMIT_RETRY_JITTER": "0",
        "VENUELIMIT_IPV6_PREFIX": "64",
        "VENUELIMIT_SALT": "20240229",
        "VENUELIMIT_ROBOTS_TXT": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(f"FLASK_{name}", value)
    app = Flask("venue")
    app.config.from_prefixed_env()
    VenueLimit(app).limit("5/minute", key=by_ip).everywhere()
    assert statuses(caller(app), "/robots.txt", 1) == [200]
    answer = caller(app).get("/")
    assert {name for name, _ in answer.headers if "ratelimit" in name.lower()} == {
        f"{x}RateLimit-{part}" for x in ("", "X-") for part in ("Limit", "Remaining", "Reset")
    }


@pytest.mark.parametrize("headers", [(), [], "", ","])
def test_headers_may_be_none(app: Flask, storage: Any, headers: Any) -> None:
    """An empty list sends no limit state; Retry-After stays."""
    app.config["VENUELIMIT_HEADERS"] = headers
    VenueLimit(app, storage=storage).limit("0/minute", key=by_ip).everywhere()
    answer = caller(app).get("/")
    assert [name for name, _ in answer.headers if "ratelimit" in name.lower()] == []
    assert answer.status_code == 429
