"""Which handler answers which call, on the public port and on the port for state and metrics."""

from collections.abc import Mapping

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.answers import Response, error_response
from tidegate_sidecar.errors import RequestError, shown
from tidegate_sidecar.health import Health
from tidegate_sidecar.http1 import Cancel, Handler, Request, Respond

Routes = Mapping[tuple[bytes, bytes], Handler]


class Router:
    """Picks a handler by method and path; the query part of a target means nothing to any of them."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._calls = ", ".join(f"{method.decode()} {path.decode()}" for method, path in routes)

    def __call__(self, request: Request, respond: Respond) -> Cancel | None:
        """Hand the request on, or answer that nothing is served there."""
        handler = self._routes.get((request.method, request.target.partition(b"?")[0]))
        if handler is not None:
            return handler(request, respond)
        asked = shown(f"{request.method.decode()} {request.target.decode()}")
        respond(error_response(RequestError(ErrorCode.NOT_FOUND, f"{asked} is not served here; try {self._calls}")))
        return None


def public_routes(retrieve: Handler, health: Health) -> Router:
    """Return what callers and kubelets see."""

    def healthz(_request: Request, respond: Respond) -> None:
        respond(Response(200, b'{"status":"ok"}'))

    def readyz(_request: Request, respond: Respond) -> None:
        if message := health.not_ready():
            respond(error_response(RequestError(ErrorCode.RELEASE_UNAVAILABLE, message)))
        else:
            respond(Response(200, b'{"status":"ready"}'))

    return Router(
        {
            (b"POST", b"/v1/retrieve"): retrieve,
            (b"GET", b"/healthz"): healthz,
            (b"GET", b"/readyz"): readyz,
        }
    )


def state_routes(health: Health, metrics: Handler) -> Router:
    """Return what the control plane and Prometheus see."""

    def state(_request: Request, respond: Respond) -> None:
        respond(Response(200, health.state().model_dump_json(by_alias=True, exclude_none=True).encode()))

    return Router({(b"GET", b"/v1/state"): state, (b"GET", b"/metrics"): metrics})
