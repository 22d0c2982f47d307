"""The HTTP edge: wire model <-> use case <-> status code, and no decisions.

Every error becomes the envelope with a closed code; what was not foreseen is logged here, once, and
reaches the caller as `internal` without a trace. A caller that goes away cancels its request.
"""

import logging
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web
from pydantic import ValidationError

from tidegate_api.config import ReleaseConfig, RuntimeState
from tidegate_api.wire import HEADER_DEGRADED, HEADER_RESULTS, STATUS_OF_CODE, CloseRequest, ErrorCode, SearchRequest
from tidegate_runtime.dataplane import DataPlane
from tidegate_runtime.errors import RuntimePlaneError
from tidegate_runtime.metrics import SearchMetrics
from tidegate_runtime.releases import Releases

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_logger = logging.getLogger(__name__)
_MAX_BODY_BYTES = 4 << 20


class Endpoints:
    """Handlers. `process` changes with every start, so that a reader of counters sees a restart."""

    def __init__(self, *, dataplane: DataPlane, releases: Releases, metrics: SearchMetrics, process: str) -> None:
        self._dataplane = dataplane
        self._releases = releases
        self._metrics = metrics
        self._process = process

    def application(self) -> web.Application:
        """Return the routes."""
        application = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[_errors_as_envelope])
        application.add_routes(
            [
                web.post("/v1/search", self.search),
                web.post("/v1/open", self.open),
                web.post("/v1/close", self.close),
                web.get("/v1/state", self.state),
                web.get("/metrics", self.metrics),
                web.get("/healthz", self.healthz),
            ]
        )
        return application

    async def search(self, request: web.Request) -> web.Response:
        """Answer a search."""
        answer = await self._dataplane.search(SearchRequest.model_validate_json(await request.read()))
        headers = {HEADER_RESULTS: str(len(answer.results))}
        if answer.degraded:
            headers[HEADER_DEGRADED] = ",".join(f"{item.node}={item.reason}" for item in answer.degraded)
        return _json(answer.model_dump(exclude_none=True), headers=headers)

    async def open(self, request: web.Request) -> web.Response:
        """Begin to open a release; the answer is the state of all of them."""
        self._releases.open(ReleaseConfig.model_validate_json(await request.read()))
        return await self.state(request)

    async def close(self, request: web.Request) -> web.Response:
        """Let go of a release; the answer is the state of those that are left."""
        self._releases.close(CloseRequest.model_validate_json(await request.read()).release)
        return await self.state(request)

    async def state(self, _: web.Request) -> web.Response:
        """Tell which releases are held and how far they are."""
        state = RuntimeState(process=self._process, releases=await self._releases.states())
        return _json(state.to_document())

    async def metrics(self, _: web.Request) -> web.Response:
        """Give the metrics in Prometheus' text format."""
        return web.Response(body=self._metrics.exposition(), content_type="text/plain", charset="utf-8")

    async def healthz(self, _: web.Request) -> web.Response:
        """The process answers; whether releases are warm is in the state."""
        return web.Response(text="ok\n")


@web.middleware
async def _errors_as_envelope(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except RuntimePlaneError as error:
        return _error(error.code, str(error))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        return _error(ErrorCode.INVALID_REQUEST, f"{where}: {first['msg']}")
    except web.HTTPRequestEntityTooLarge:
        return _error(ErrorCode.TOO_LARGE, f"the body is larger than {_MAX_BODY_BYTES} bytes; send less")
    except web.HTTPClientError:
        return _error(ErrorCode.NOT_FOUND, f"there is no {request.method} {request.path} here")
    except Exception:
        _logger.exception("request failed", extra={"method": request.method, "path": request.path})
        return _error(ErrorCode.INTERNAL, "the runtime could not answer; see its log")


def _json(document: object, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, headers=headers, content_type="application/json")


def _error(code: ErrorCode, message: str) -> web.Response:
    return _json({"error": {"code": code, "message": message}}, status=STATUS_OF_CODE[code])
