"""``flask venuelimit nginx``: a whole configuration, and words for what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from demo_app import create_app
from flask_venuelimit import (
    Concurrency,
    FixedWindow,
    Key,
    MemoryStorage,
    VenueLimit,
    by_bearer,
    by_ip,
    by_participant,
)
from tests.commands.terminal import Typed, typed
from tests.fronts.nginx import check_config

Flasks = Callable[..., Typed]
Accepts = Callable[[str], bool]


@pytest.fixture
def accepts(nginx: str, tmp_path: Path) -> Accepts:
    """Whether ``nginx -t`` takes a configuration, without a warning."""

    def accepts(config: str) -> bool:
        run = check_config(nginx, config, tmp_path)
        assert "warn" not in run.stderr, run.stderr
        return run.returncode == 0

    return accepts


@pytest.fixture
def limiter(app: Flask) -> VenueLimit:
    """A limiter without limits."""
    return VenueLimit(app, storage=MemoryStorage())


def left_out(text: str) -> dict[str, str]:
    """The limits that are comments, and why."""
    return dict(re.findall(r"^#   (.*?): (.*)$", text, re.MULTILINE))


def test_the_demo_s_configuration_is_accepted(accepts: Accepts, tmp_path: Path) -> None:
    """It has the two limits on addresses that nginx can keep, and a comment for each other one."""
    app = create_app({"VENUELIMIT_STORAGE_URI": "memory://"}, instance_path=str(tmp_path / "instance"))
    text = typed(app, "nginx").text
    assert accepts(text)
    assert re.findall(r"zone=(\w+) burst=(\d+)", text) == [
        ("venuelimit_global", "2399"),
        ("venuelimit_join", "299"),
    ]
    assert re.findall(r"rate=(\S+);  # (.*)", text) == [("20r/s", "1200/minute"), ("150r/m", "150/minute")]
    assert left_out(text)["auth (10 per 15 minutes)"].startswith("a charge is given back by the answer")
    assert len(left_out(text)) == 5


@pytest.mark.parametrize(
    ("policy", "terms", "why"),
    [
        ("59/hour", {}, "under 1 a minute, which is the slowest rate nginx knows"),
        ("5/minute", {"refund_if": bool}, "a charge is given back by the answer, which nginx does not know"),
        ("5/minute", {"key": by_participant}, "keyed by participant, and nginx knows addresses alone"),
        ("5/minute", {"key": by_bearer}, "keyed by bearer, and nginx knows addresses alone"),
        ("5/minute", {"key": Key("ip", str)}, "keyed by a function, which nginx cannot ask"),
        (lambda: "5/minute", {}, "its policy is told at each request"),
        ("5/minute", {"shadow": True}, "it only watches, and nginx would refuse"),
        ("5/minute", {"unless": bool}, "`unless` skips it for some requests, and nginx cannot ask"),
        ("5/minute", {"per_process": True}, "each process counts for itself, and nginx would count once"),
        ("5/minute", {"per_method": True}, "each method has a bucket of its own"),
        (Concurrency(5), {}, "nginx counts a request until the client has read all of its answer"),
    ],
)
def test_what_nginx_cannot_keep_becomes_a_comment(
    app: Flask, limiter: VenueLimit, accepts: Accepts, policy: Any, terms: dict[str, Any], why: str
) -> None:
    """With the reason, and without a zone."""
    limiter.limit(policy, name="it", **{"key": by_ip, **terms}).everywhere()
    text = typed(app, "nginx").text
    ((what, reason),) = left_out(text).items()
    assert what.split()[0] == "it"
    assert reason.startswith(why)
    assert "limit_req" not in text
    assert accepts(text)


def test_a_limit_that_covers_nothing_becomes_a_comment(app: Flask, limiter: VenueLimit) -> None:
    """It is asked by hand, of which nginx knows nothing."""
    limiter.limit("5/minute", name="mails", key=by_ip)
    assert left_out(typed(app, "nginx").text) == {"mails (5/minute)": "it covers no request"}


def test_a_route_of_one_host_is_left_out(app: Flask, limiter: VenueLimit, accepts: Accepts) -> None:
    """Another host may have the same path."""
    app.url_map.host_matching = True
    limit = limiter.limit("5/minute", name="it", key=by_ip)
    app.add_url_rule("/admin", "admin", limit(lambda: "ok"), host="admin.example")
    text = typed(app, "nginx").text
    assert left_out(text) == {"it at '/admin'": "the route is of one host, and only paths are compared"}
    assert accepts(text)


def test_a_limit_of_two_policies_has_two_zones(app: Flask, limiter: VenueLimit, accepts: Accepts) -> None:
    """Of those that nginx can keep; the other is a comment."""
    limiter.limit("5/second; 90/minute; 500/day", name="it", key=by_ip).everywhere()
    text = typed(app, "nginx").text
    assert re.findall(r"limit_req zone=(\w+)", text) == ["venuelimit_it", "venuelimit_it__2"]
    assert list(left_out(text)) == ["it (500/day)"]
    assert accepts(text)


def test_a_rate_that_is_rounded_says_so(app: Flask, limiter: VenueLimit) -> None:
    """Beside the number that was asked for."""
    limiter.limit("7/minute", name="it", key=by_ip).everywhere()
    assert "rate=8r/m;  # 7/minute, rounded up to what nginx can count\n" in typed(app, "nginx").text


def test_odd_names_and_routes_are_accepted(app: Flask, limiter: VenueLimit, accepts: Accepts) -> None:
    """Whatever an app may call things."""
    names = ["x" * 300, "x" * 299 + "y", 'a "quoted" {name}; $it', "\\", "#", "name", "NAME"]
    for number, name in enumerate(names):
        limit = limiter.limit(FixedWindow(5, 60), name=name, key=by_ip)
        app.add_url_rule(f'/{number}/"$it\\{{}};#/ä/\\t', f"view{number}", limit(lambda: "ok"))
    text = typed(app, "nginx").text
    assert len(set(re.findall(r"limit_req zone=(\w+)", text))) == len(names)
    assert accepts(text)


def test_limits_without_a_name_have_a_zone_for_each_endpoint(
    app: Flask, limiter: VenueLimit, accepts: Accepts
) -> None:
    """As they have a bucket for each; what matches no route has one too."""
    for endpoint in ("a", "b.c"):
        app.add_url_rule(f"/{endpoint}", endpoint.replace(".", "-"), lambda: "ok")
    limiter.limit("5/minute", key=by_ip).everywhere()
    text = typed(app, "nginx").text
    zones = re.findall(r"limit_req zone=(\w+)", text)
    assert set(zones) == {"venuelimit_a", "venuelimit_b_c", "venuelimit_unmatched"}
    assert accepts(text)


@pytest.mark.parametrize("header", [None, "X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP"])
def test_the_app_s_trust_is_nginx_s_too(app: Flask, accepts: Accepts, header: str | None) -> None:
    """Proxies in front of nginx name the client to it as well, and it names the client to the app."""
    trusted = "cloudflare, 2001:db8::/32, loopback, unix"
    app.config.update(VENUELIMIT_TRUSTED_PROXIES=trusted, VENUELIMIT_FORWARDED_HEADER=header)
    VenueLimit(app, storage=MemoryStorage()).limit("5/minute", name="it", key=by_ip).everywhere()
    text = typed(app, "nginx").text
    assert accepts(text)
    assert f"proxy_set_header {header or 'X-Forwarded-For'} $" in text
    assert ("set_real_ip_from 2001:db8::/32;" in text) == (header != "Forwarded")
    assert "127.0.0.0/8" not in text
    assert "The app believes no proxy" not in text


def test_where_nobody_is_believed_that_is_said(app: Flask, limiter: VenueLimit) -> None:
    """Or the whole world would be one client behind nginx."""
    assert "# The app believes no proxy, and takes nginx for its only client." in typed(app, "nginx").text


def test_a_predicate_that_exempts_is_mentioned(app: Flask, limiter: VenueLimit) -> None:
    """nginx cannot ask it, and counts what it exempts."""
    limiter.exempt_if(lambda: False)
    assert "# exempt_if exempts some requests, and nginx cannot ask" in typed(app, "nginx").text


def test_an_app_that_does_not_count_is_told_so(app: Flask, accepts: Accepts) -> None:
    """The configuration is made all the same; one without limits is a plain proxy."""
    VenueLimit(app)
    text = typed(app, "nginx").text
    assert "# Limiting is off in the app as it is set now: only nginx keeps limits.\n" in text
    assert "limit_req" not in text
    assert accepts(text)


def test_options_say_where(app: Flask, limiter: VenueLimit, accepts: Accepts) -> None:
    """The name, the ports, and what stands behind."""
    words = ("--server-name", "quiz.example", "--listen", "8080", "--listen", "127.0.0.1:8081")
    text = typed(app, "nginx", *words, "--upstream", "http://unix:/run/quiz.sock").text
    assert "    server_name quiz.example;\n" in text
    assert re.findall("listen (.*);", text) == ["8080", "127.0.0.1:8081"]
    assert "proxy_pass http://unix:/run/quiz.sock;" in text
    assert accepts(text)


@pytest.mark.parametrize("option", ["--server-name", "--listen", "--upstream"])
@pytest.mark.parametrize("word", ["a b", "80;", "$host", "}", '"', ""])
def test_a_word_is_a_word(app: Flask, limiter: VenueLimit, option: str, word: str) -> None:
    """What would be more than that in the configuration is refused."""
    answer = typed(app, "nginx", option, word)
    assert answer.code == 2
    assert f"{word!r} is no single word of an nginx configuration." in answer.text


def test_an_upstream_is_a_url(app: Flask, limiter: VenueLimit) -> None:
    """The text says what to write."""
    answer = typed(app, "nginx", "--upstream", "127.0.0.1:8000")
    assert answer.code == 2
    assert answer.lines[-1] == (
        "Error: --upstream is '127.0.0.1:8000'. Use a URL such as http://127.0.0.1:8000."
    )


def test_what_is_wrong_with_the_settings_is_a_sentence(app: Flask) -> None:
    """As for the other commands."""
    app.config["VENUELIMIT_LIMITS"] = {"nothing": "5/minute"}
    VenueLimit(app, storage=MemoryStorage())
    answer = typed(app, "nginx")
    assert (answer.code, "names 'nothing', but no limit has this name" in answer.text) == (1, True)
