"""``per_method=True``: each method has a bucket of its own."""

from __future__ import annotations

import pytest
from flask import Flask

from flask_venuelimit import Limit, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, room, statuses

METHODS = ["GET", "POST", "PUT"]


@pytest.fixture
def each(app: Flask, limiter: VenueLimit) -> Limit:
    """Two requests a minute of each method of ``/one`` and ``/two`` together."""
    limit = limiter.limit("2/minute", name="each", key=by_ip, per_method=True)
    for path in ("/one", "/two"):
        app.add_url_rule(path, path, limit(lambda: "ok"), methods=METHODS)
    return limit


@pytest.mark.parametrize("method", METHODS)
def test_each_method_has_its_bucket(app: Flask, each: Limit, method: str) -> None:
    """Who has used up one method may still use the others."""
    assert statuses(caller(app), "/one", 3, method=method) == [200, 200, 429]
    for other in set(METHODS) - {method}:
        assert statuses(caller(app), "/one", 3, method=other) == [200, 200, 429]


def test_head_is_get_s(app: Flask, each: Limit) -> None:
    """A HEAD is counted with the GETs, in one bucket."""
    client = caller(app)
    seen = [client.open("/one", method=method).status_code for method in ("HEAD", "GET", "HEAD", "GET")]
    assert seen == [200, 200, 429, 429]


def test_a_named_limit_shares_each_method_over_its_views(app: Flask, each: Limit) -> None:
    """With a name, a method's bucket is one for everything the limit covers."""
    assert statuses(caller(app), "/one", 1, method="POST") == [200]
    assert statuses(caller(app), "/two", 2, method="POST") == [200, 429]


def test_without_a_name_each_endpoint_has_a_bucket_a_method(app: Flask, limiter: VenueLimit) -> None:
    """Two views, two methods: four buckets."""
    limit = limiter.limit("1/minute", key=by_ip, per_method=True)
    for path in ("/one", "/two"):
        app.add_url_rule(path, path, limit(lambda: "ok"), methods=METHODS)
    for path in ("/one", "/two"):
        for method in ("GET", "POST"):
            assert statuses(caller(app), path, 2, method=method) == [200, 429]


def test_methods_says_which_of_them_have_one(app: Flask, limiter: VenueLimit) -> None:
    """Together with ``methods``, those it does not name are not limited at all."""
    limit = limiter.limit("1/minute", key=by_ip, methods={"POST", "PUT"}, per_method=True)
    app.add_url_rule("/", "home", limit(lambda: "ok"), methods=METHODS)
    client = caller(app)
    assert [statuses(client, "/", 2, method=m) for m in METHODS] == [[200, 200], [200, 429], [200, 429]]


def test_inventing_methods_earns_nothing(app: Flask, limiter: VenueLimit) -> None:
    """Methods nobody knows share one bucket: a new one is no new allowance."""
    limiter.limit("3/minute", name="global", key=by_ip, per_method=True).everywhere()
    seen = [caller(app).open("/nowhere", method=f"M{'X' * n}").status_code for n in range(5)]
    assert seen == [404, 404, 404, 429, 429]


def test_by_hand_a_request_s_own_method_counts(app: Flask, each: Limit) -> None:
    """A view that charges more of the limit that covers it charges the bucket of its method."""

    @app.route("/more", methods=["GET", "POST"])
    def more() -> str:
        return str(each.hit().remaining)

    assert statuses(caller(app), "/one", 1, method="POST") == [200]
    assert [caller(app).open("/more", method=m).text for m in ("POST", "GET")] == ["0", "1"]


def test_a_reset_forgets_every_method(app: Flask, each: Limit) -> None:
    """Whom support lets in again is let in, whatever the method."""
    for method in METHODS:
        statuses(caller(app), "/one", 2, method=method)
    each.reset(C)
    rooms = [room(caller(app).open("/one", method=method), "each") for method in METHODS]
    assert rooms == [1, 1, 1]
