"""The path of `POST /v1/retrieve`: who asks, what for, which release, the runtime's answer, the record.

One request, one release: settings, table and decision are read once at the start and belong to the
attempt alone; nothing about a request is kept on an object that another request can see. Every attempt
ends exactly once, as an answer, an error or a caller who left, and every end is counted.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import orjson

from tidegate_api.wire import (
    DEFAULT_TOP_K,
    HEADER_ARM,
    HEADER_DEGRADED,
    HEADER_RELEASE,
    HEADER_RESULTS,
    HEADER_RULE,
    HEADER_TABLE,
    ErrorCode,
    RetrieveRequest,
)
from tidegate_sidecar.answers import Response, error_response, new_query_id
from tidegate_sidecar.caller import SCOPE_EXPLAIN, SCOPE_QUERY, Caller
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.http1 import Cancel, Request, Respond
from tidegate_sidecar.limits import InFlight, TenantRates
from tidegate_sidecar.metrics import ARM_NONE, OUTCOME_CANCELLED, OUTCOME_OK, Recorder
from tidegate_sidecar.policy import Decision, Facts, TableIndex, decide
from tidegate_sidecar.ports import Exchange, RuntimeReply, Searcher
from tidegate_sidecar.reading import read_retrieve
from tidegate_sidecar.replies import complete, error_of_reply
from tidegate_sidecar.settings import Settings

logger = logging.getLogger(__name__)

RESULTS = HEADER_RESULTS.encode()
DEGRADED = HEADER_DEGRADED.encode()
# The runtime must notice a deadline before we do, or its own, better answer never arrives.
HOP_MARGIN_MS = 5


@dataclass(slots=True)
class Attempt:
    """One request on its way. `route` is set once a release is chosen."""

    respond: Respond
    started: float
    query_id: str = field(default_factory=new_query_id)
    route: tuple[Decision, int] | None = None


class Retrieval:
    """The handler of `POST /v1/retrieve`."""

    def __init__(
        self,
        *,
        settings: Callable[[], Settings],
        table: Callable[[], TableIndex],
        searcher: Callable[[str], Searcher],
        in_flight: InFlight,
        recorder: Recorder,
        on_unavailable: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._table = table
        self._searcher = searcher
        self._in_flight = in_flight
        self._recorder = recorder
        self._on_unavailable = on_unavailable
        self._rates = TenantRates()
        self._now = asyncio.get_running_loop().time

    def __call__(self, request: Request, respond: Respond) -> Cancel | None:
        """Begin to answer `request`."""
        attempt = Attempt(respond, self._now())
        try:
            exchange = self._begin(attempt, request)
        except RequestError as error:
            self._fail(attempt, error)
            return None
        return partial(self._give_up, attempt, exchange)

    def _begin(self, attempt: Attempt, request: Request) -> Exchange:
        settings = self._settings()
        limits = settings.config.limits
        caller = settings.identity.authenticate(request.headers, time.time())
        asked = read_retrieve(request.body, limits)
        _check_scopes(caller, asked)
        self._rates.take(caller.tenant, limits.requests_per_second_per_tenant, attempt.started)
        index = self._table()
        decision = decide(index, caller, _facts(attempt, request, caller, asked, index))
        attempt.route = (decision, index.version)
        allowed_ms = min(limits.request_timeout_ms, asked.deadline_ms or limits.request_timeout_ms)
        top_k = asked.top_k or min(DEFAULT_TOP_K, limits.max_top_k)
        deadline_ms = max(1, allowed_ms - HOP_MARGIN_MS)
        body = _search_body(attempt, decision, caller, asked, top_k=top_k, deadline_ms=deadline_ms)
        searcher = self._searcher(decision.release)
        self._in_flight.enter(decision.release, limits.max_concurrent)
        deadline = attempt.started + allowed_ms / 1000
        return searcher.search(body, deadline=deadline, done=partial(self._finish, attempt, decision))

    # --- the three ends ----------------------------------------------------------------------

    def _finish(self, attempt: Attempt, decision: Decision, outcome: RuntimeReply | RequestError) -> None:
        self._in_flight.leave(decision.release)
        try:
            response = self._answer(attempt, outcome)
        except RequestError as error:
            if error.code is ErrorCode.RELEASE_UNAVAILABLE:
                self._on_unavailable()
            self._fail(attempt, error)
            return
        self._count(attempt, OUTCOME_OK)
        attempt.respond(response)

    def _fail(self, attempt: Attempt, error: RequestError) -> None:
        if error.code is ErrorCode.INTERNAL:
            logger.error("a request failed", extra={"query_id": attempt.query_id, "reason": error.detail})
        self._count(attempt, error.code.value)
        attempt.respond(error_response(error, query_id=attempt.query_id, fields=_route_fields(attempt)))

    def _give_up(self, attempt: Attempt, exchange: Exchange) -> None:
        exchange.cancel()
        if attempt.route is not None:
            self._in_flight.leave(attempt.route[0].release)
        self._count(attempt, OUTCOME_CANCELLED)

    # --- parts -------------------------------------------------------------------------------

    def _answer(self, attempt: Attempt, outcome: RuntimeReply | RequestError) -> Response:
        if isinstance(outcome, RequestError):
            raise outcome
        if outcome.status != 200 or attempt.route is None:
            raise error_of_reply(outcome)
        decision, table = attempt.route
        added: dict[str, object] = {
            "query_id": attempt.query_id,
            "release": decision.release,
            "arm": decision.arm,
            "route": {"rule": decision.rule, "unit": decision.unit, "bucket": decision.bucket, "table": table},
        }
        body = complete(outcome, added)
        if outcome.headers.get(RESULTS) == b"0":
            self._recorder.count_no_hit(decision.arm)
        if DEGRADED in outcome.headers:
            self._recorder.count_degraded(outcome.headers[DEGRADED].decode("latin-1"))
        return Response(200, body, _route_fields(attempt))

    def _count(self, attempt: Attempt, outcome: str) -> None:
        decision = None if attempt.route is None else attempt.route[0]
        self._recorder.count(
            arm=ARM_NONE if decision is None else decision.arm,
            outcome=outcome,
            seconds=self._now() - attempt.started,
            release=None if decision is None else decision.release,
        )


def _check_scopes(caller: Caller, asked: RetrieveRequest) -> None:
    if SCOPE_QUERY not in caller.scopes:
        raise RequestError(ErrorCode.FORBIDDEN, "this key lacks the scope `query`; use one that has it")
    if asked.explain and SCOPE_EXPLAIN not in caller.scopes:
        raise RequestError(ErrorCode.FORBIDDEN, "explain needs a key with scope `explain`; leave it out or use one")


def _facts(attempt: Attempt, request: Request, caller: Caller, asked: RetrieveRequest, index: TableIndex) -> Facts:
    forced = request.headers.get(HEADER_RELEASE.encode())
    return Facts(
        request_id=attempt.query_id,
        query=asked.query,
        session=asked.session_id or caller.session,
        forced=None if forced is None else forced.decode("latin-1"),
        headers={
            name: value.decode("utf-8", "replace")
            for name in index.header_names
            if (value := request.headers.get(name.encode())) is not None
        },
    )


def _search_body(
    attempt: Attempt, decision: Decision, caller: Caller, asked: RetrieveRequest, *, top_k: int, deadline_ms: int
) -> bytes:
    """Return a `SearchRequest`. Its parts are checked already; building the model again would cost as much as routing.

    Raises:
        RequestError: a filter holds a number that the hop can't carry.
    """
    search = {
        "query_id": attempt.query_id,
        "release": decision.release,
        "query": asked.query,
        "scope": {"tenant": caller.tenant, "groups": caller.groups},
        "knowledge_bases": asked.knowledge_bases,
        "top_k": top_k,
        "filters": None if asked.filters is None else asked.filters.model_dump(),
        "deadline_ms": deadline_ms,
        "explain": asked.explain,
    }
    try:
        return orjson.dumps(search)
    except orjson.JSONEncodeError:
        message = "member filters: a number in it needs more than 64 bits; write it as a text"
        raise RequestError(ErrorCode.INVALID_REQUEST, message) from None


def _route_fields(attempt: Attempt) -> bytes:
    if attempt.route is None:
        return b""
    decision, table = attempt.route
    return (
        f"{HEADER_RELEASE}: {decision.release}\r\n{HEADER_ARM}: {decision.arm}\r\n"
        f"{HEADER_RULE}: {decision.rule}\r\n{HEADER_TABLE}: {table}\r\n"
    ).encode()
