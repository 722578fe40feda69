"""Who is not limited: views, blueprints and requests that are exempt."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from flask import Blueprint, Flask, request
from flask.views import MethodView
from werkzeug.middleware.proxy_fix import ProxyFix

from flask_venuelimit import ConfigurationError, Limit, MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import A, C, caller, items, left, statuses


@pytest.fixture
def everything(app: Flask, limiter: VenueLimit) -> Limit:
    """A limit of one request a minute on the whole app."""
    app.add_url_rule("/", "home", lambda: "ok")
    return limiter.limit("1/minute", name="everything", key=by_ip).everywhere()


def test_an_exempt_view_is_never_limited(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """``@limiter.exempt`` opts a view out of every limit, the ones that decorate it included."""

    @app.get("/health")
    @limiter.exempt
    @limiter.limit("0/minute", key=by_ip)
    @limiter.limit("0/minute", key=lambda: "x")
    def health() -> str:
        return "well"

    answer = caller(app).get("/health")
    assert (answer.status_code, "RateLimit" in answer.headers) == (200, False)
    assert statuses(caller(app), "/health", 5) == [200] * 5
    assert left(everything) == 1


@pytest.mark.parametrize("place", ["above", "below"])
def test_exempt_is_seen_through_other_decorators(
    app: Flask, limiter: VenueLimit, everything: Limit, place: str
) -> None:
    """It makes no difference where among the decorators it stands."""

    def other(view: Any) -> Any:
        return functools.wraps(view)(lambda: view())

    view: Any = (
        limiter.exempt(other(lambda: "ok")) if place == "above" else other(limiter.exempt(lambda: "ok"))
    )
    app.add_url_rule("/health", "health", view)
    assert statuses(caller(app), "/health", 3) == [200] * 3


def test_an_exempt_blueprint_is_exempt_with_its_nested_ones(
    app: Flask, limiter: VenueLimit, everything: Limit
) -> None:
    """Before or after its registration, a blueprint and all inside it are opted out."""
    outer, inner = Blueprint("o", __name__, url_prefix="/o"), Blueprint("i", __name__, url_prefix="/i")
    for bp in (outer, inner):
        bp.add_url_rule("/", "home", lambda: "ok")
    outer.register_blueprint(inner)
    app.register_blueprint(outer)
    assert limiter.exempt(outer) is outer
    assert statuses(caller(app), "/o/", 3) + statuses(caller(app), "/o/i/", 3) == [200] * 6
    assert left(everything) == 1


def test_a_view_class_may_be_exempt(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """A class-based view is opted out as a class, or by the function made of it."""

    @limiter.exempt
    class Health(MethodView):
        def get(self) -> str:
            return "well"

    app.add_url_rule("/health", view_func=Health.as_view("health"))
    assert statuses(caller(app), "/health", 3) == [200] * 3


def test_a_view_may_be_exempt_from_one_limit(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """``@limit.exempt`` opts out of that limit; the others stay."""
    other = limiter.limit("2/minute", name="other", key=by_ip).everywhere()
    app.add_url_rule("/cheap", "cheap", everything.exempt(lambda: "ok"))
    assert statuses(caller(app), "/cheap", 3) == [200, 200, 429]
    assert (left(everything), left(other)) == (1, 0)


def test_a_blueprint_may_be_exempt_from_one_limit(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """The same serves for a blueprint and what is nested in it."""
    outer, inner = Blueprint("o", __name__, url_prefix="/o"), Blueprint("i", __name__, url_prefix="/i")
    inner.add_url_rule("/", "home", lambda: "ok")
    outer.register_blueprint(inner)
    everything.exempt(outer)
    app.register_blueprint(outer)
    limiter.limit("2/minute", name="other", key=by_ip).everywhere()
    assert statuses(caller(app), "/o/i/", 3) == [200, 200, 429]


def test_exempting_a_view_leaves_another_limiter_s_limits(
    app: Flask, limiter: VenueLimit, everything: Limit
) -> None:
    """Opting out of one VenueLimit says nothing about another's."""
    view = VenueLimit().exempt(lambda: "ok")
    app.add_url_rule("/x", "x", view)
    assert statuses(caller(app), "/x", 2) == [200, 429]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_predicate_exempts_requests(
    app: Flask, limiter: VenueLimit, everything: Limit, asynchronous: bool
) -> None:
    """``@limiter.exempt_if`` opts out every request it answers true for."""

    def monitoring() -> bool:
        return request.headers.get("User-Agent") == "monitor"

    async def later() -> bool:
        return monitoring()

    predicate: Any = later if asynchronous else monitoring
    assert limiter.exempt_if(predicate) is predicate
    assert statuses(caller(app), "/", 3, headers={"User-Agent": "monitor"}) == [200] * 3
    assert statuses(caller(app), "/", 2) == [200, 429]


def test_a_predicate_that_raises_exempts_nobody(
    app: Flask, limiter: VenueLimit, everything: Limit, warnings: list[str]
) -> None:
    """A broken predicate is logged, and the request is limited."""
    limiter.exempt_if(lambda: 1 // 0)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert warnings


def test_any_of_several_predicates_will_do(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """One that answers true is enough."""
    for header in ("X-One", "X-Two"):
        limiter.exempt_if(lambda header=header: header in request.headers)
    assert statuses(caller(app), "/", 3, headers={"X-Two": "1"}) == [200] * 3


def test_unless_skips_one_limit(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """``unless=`` is asked for its limit only."""
    view = limiter.limit("0/minute", name="closed", unless=lambda: True, key=by_ip)(lambda: "ok")
    app.add_url_rule("/x", "x", view)
    answer = caller(app).get("/x")
    assert (answer.status_code, list(items(answer, "RateLimit"))) == (200, ["everything"])
    assert statuses(caller(app), "/x", 1) == [429]


def test_static_files_are_exempt(tmp_path: Any) -> None:
    """The endpoints ``static`` and ``*.static`` are, whoever serves them."""
    (tmp_path / "a.css").write_text("a")
    app = Flask("venue", static_folder=str(tmp_path), static_url_path="/static")
    app.config["SECRET_KEY"] = "s"
    bp = Blueprint("bp", __name__, static_folder=str(tmp_path), static_url_path="/bp-static")
    app.register_blueprint(bp)
    limiter = VenueLimit(app, storage=MemoryStorage())
    limiter.limit("0/minute", key=by_ip).everywhere()
    limiter.limit("0/minute", key=lambda: "x")(bp)
    client = caller(app)
    paths = ("/static/a.css", "/bp-static/a.css", "/")
    assert [client.get(path, buffered=True).status_code for path in paths] == [200, 200, 429]


def test_an_endpoint_that_only_ends_in_static_is_not(
    app: Flask, limiter: VenueLimit, everything: Limit
) -> None:
    """``ecstatic`` is a view like any other."""
    app.add_url_rule("/x", "ecstatic", lambda: "ok")
    assert statuses(caller(app), "/x", 2) == [200, 429]


def test_preflights_are_never_charged_and_never_refused(
    app: Flask, limiter: VenueLimit, everything: Limit
) -> None:
    """Fifty automatic OPTIONS cost nothing, and are answered though the limit refuses."""
    assert statuses(caller(app), "/", 50, method="OPTIONS") == [200] * 50
    assert left(everything) == 1
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert statuses(caller(app), "/", 1, method="OPTIONS") == [200]


def test_options_of_the_app_s_own_is_limited(app: Flask, limiter: VenueLimit, everything: Limit) -> None:
    """A view that answers OPTIONS itself is a view."""
    app.add_url_rule("/x", "x", lambda: "mine", methods=["GET", "OPTIONS"])
    assert statuses(caller(app), "/x", 2, method="OPTIONS") == [200, 429]


def test_head_counts_as_get(app: Flask, limiter: VenueLimit) -> None:
    """A limit on GET covers HEAD; one on POST does not."""
    view = limiter.limit("2/minute", key=by_ip, methods={"GET"})(lambda: "ok")
    view = limiter.limit("0/minute", key=by_ip, methods={"POST"})(view)
    app.add_url_rule("/", "home", view)
    client = caller(app)
    assert [client.open("/", method=m).status_code for m in ("HEAD", "GET", "HEAD")] == [200, 200, 429]


def test_methods_may_be_spelt_in_any_case(app: Flask, limiter: VenueLimit) -> None:
    """``methods={"post"}`` is POST."""
    view = limiter.limit("0/minute", key=by_ip, methods=["post"])(lambda: "ok")
    app.add_url_rule("/", "home", view, methods=["GET", "POST"])
    assert statuses(caller(app), "/", 1) + statuses(caller(app), "/", 1, method="POST") == [200, 429]


# -- networks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("networks", ["203.0.113.0/24, 2001:db8:1::/48", ["203.0.113.50", "2001:db8:1::/48"]])
def test_networks_are_exempt(app: Flask, networks: Any) -> None:
    """``VENUELIMIT_EXEMPT_NETWORKS`` opts out who comes from there, as a list or as text with commas."""
    app.config["VENUELIMIT_EXEMPT_NETWORKS"] = networks
    VenueLimit(app, storage=MemoryStorage()).limit("0/minute", key=by_ip).everywhere()
    peers = (A, "2001:db8:1:2::3", "::ffff:203.0.113.50", C, "2001:db8:2::1")
    assert [statuses(caller(app, peer), "/", 1) for peer in peers] == [[404], [404], [404], [429], [429]]


def test_an_exemption_is_void_behind_an_untrusted_header(app: Flask) -> None:
    """A proxy on an exempt address that is not told of would exempt the world: so it exempts nobody."""
    app.config["VENUELIMIT_EXEMPT_NETWORKS"] = ["203.0.113.0/24"]
    VenueLimit(app, storage=MemoryStorage()).limit("0/minute", key=by_ip).everywhere()
    assert statuses(caller(app, A), "/", 1, headers={"X-Forwarded-For": C}) == [429]


def test_an_exemption_holds_where_proxy_fix_acted(app: Flask) -> None:
    """With ProxyFix the app has said whom it believes: the forwarded address is the client's."""
    app.config["VENUELIMIT_EXEMPT_NETWORKS"] = ["203.0.113.0/24"]
    VenueLimit(app, storage=MemoryStorage()).limit("0/minute", key=by_ip).everywhere()
    app.wsgi_app = ProxyFix(app.wsgi_app)  # type: ignore[method-assign]
    behind = caller(app, "192.0.2.10")
    assert [behind.get("/", headers={"X-Forwarded-For": peer}).status_code for peer in (A, C)] == [404, 429]


@pytest.mark.parametrize("networks", ["203.0.113.0/33", "everybody", ["203.0.113.0/24", "x"]])
def test_a_malformed_network_is_refused_at_the_start(app: Flask, networks: Any) -> None:
    """A network that cannot be read is an error that names the setting, not a silent hole."""
    app.config["VENUELIMIT_EXEMPT_NETWORKS"] = networks
    with pytest.raises(ConfigurationError, match="VENUELIMIT_EXEMPT_NETWORKS"):
        VenueLimit(app, storage=MemoryStorage())
