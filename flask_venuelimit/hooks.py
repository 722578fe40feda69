"""The way of a request through one app's limits, hook by hook.

The front hook decides what can be known before the app has run; the app's own hooks run; then what stands
at the end of the hooks and at decorators is decided; the response gets its header fields; and when the
request is over, what has to be given back is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask.typing import ResponseReturnValue
from werkzeug.wrappers import Response

from .page import views as page_views
from .refusals import Refusal, register_handler, render
from .state import AppState, current_context, current_request, known_visit


class Hooks:
    """The way of a request through one app's limits.

    :param state: what the app keeps for its limiter.
    """

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._dispatch = state.app.dispatch_request
        self._entered = False
        self._looked = False

    def install(self) -> None:
        """Hook the app up; nothing outside this class touches Flask's hook lists and ``dispatch_request``.

        First before every other hook, whenever those are registered; last after them; and once more right
        before the view, where no public hook stands.
        """
        app = self._state.app
        # these ask Flask, which refuses once the app has served: then nothing has been done
        app.register_blueprint(page_views.blueprint(self._state.settings))
        register_handler(app, self.refuse)
        app.teardown_request(self.settle)
        app.before_request_funcs.setdefault(None, []).insert(0, self.enter)
        app.after_request_funcs.setdefault(None, []).insert(0, self.leave)
        app.dispatch_request = self.dispatch  # type: ignore[method-assign]

    def enter(self) -> ResponseReturnValue | None:
        """Show the limit page, or decide what can be known before anything of the app has run."""
        request = current_request()
        if not self._entered:
            self._tear_down_first()
        if page_views.concerns(request.path, self._state.settings):
            return self._state.show_page(request)
        self._state.check_plans()
        if self._state.till.counting:
            visit = self._state.visit(request)
            if visit.coverage.front:
                try:
                    visit.decide(visit.coverage.front)
                except Refusal as refusal:
                    return self._answer(refusal)
        return None

    def _tear_down_first(self) -> None:
        """Give back before the app's own teardown functions, one of which may raise: Flask then stops.

        They run in reverse, a blueprint's before the app's, and may be registered until the first request.
        """
        # a copy, because another thread may be tearing down
        for functions in tuple(self._state.app.teardown_request_funcs.values()):
            functions[:] = [*(each for each in functions if each != self.settle), self.settle]
        self._entered = True

    def dispatch(self, *context: Any) -> ResponseReturnValue:
        """Decide what stands at the end of the app's hooks, then let Flask call the view."""
        visit = known_visit()
        if visit is None:
            return self._dispatch(*context)
        try:
            if visit.coverage.ending:
                visit.decide(visit.coverage.ending)
            return self._dispatch(*context)
        except Refusal as refusal:
            # one raised by hand, or that an app's handler will answer, counts as a refusal as well
            visit.refused(refusal)
            return self._answer(refusal, *context)

    def _answer(self, refusal: Refusal, *context: Any) -> ResponseReturnValue:
        """Let Flask find the handler, and nobody who stands in its way.

        Flask-RESTX and its kin put a ``handle_user_exception`` of their own on the app. It knows no
        handler for a code, and its catch-all would make a 500 of a refusal.

        :raises Refusal: nobody stands there, and Flask is the next to see it.
        """
        app = self._state.app
        if "handle_user_exception" not in vars(app):
            raise refusal
        flasks_own: Callable[..., ResponseReturnValue] = type(app).handle_user_exception
        return flasks_own(app, *context, refusal)

    def refuse(self, refusal: Refusal) -> Response:
        """Answer a refusal that no handler of the app's own takes."""
        request = current_request()
        response = render(refusal, request, self._state.settings)
        self._state.visit(request).refused(refusal, response)
        return response

    def leave(self, response: Response) -> Response:
        """Add header fields, whoever made the response."""
        visit = known_visit()
        if visit is not None:
            visit.leave(response, self._state.settings.headers)
        return response

    def settle(self, error: BaseException | None) -> None:
        """Give back what the end of the request says shall be given back."""
        visit = known_visit()
        if visit is not None and visit.ends_with(current_context()):
            visit.settle(error)
        # a context that is only pushed, to build URLs for instance, is no first request
        if self._entered and not self._looked:
            self._looked = True
            self._state.lookout.first_request(current_request())
