"""Where a search goes: to the runtime of this pod, or to a peer whose Deployment holds the release.

`Dispatcher` knows which is which from the table; `HopReceiver` is the other end. A release that no
Deployment is named for is searched here, or by a neighbour while this pod's runtime is away.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Protocol

from pydantic import ValidationError

from tidegate_api.wire import HEADER_DEGRADED, HEADER_RESULTS, ErrorCode, SearchRequest
from tidegate_sidecar.answers import Response, error_response
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.fallback import Fallback
from tidegate_sidecar.hop import HOP_HEADER, HOP_LINE, TAKEN_FIELD, hop_field, hop_problem
from tidegate_sidecar.http1 import Cancel, Request, Respond
from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.ports import Done, Exchange, RuntimeReply, Searcher
from tidegate_sidecar.replies import error_of_reply

logger = logging.getLogger(__name__)

Keys = Callable[[], Sequence[bytes]]
FAILED = "the sidecar failed; its log says why"
PASSED_ON = (HEADER_RESULTS.encode(), HEADER_DEGRADED.encode())


class Peer(Protocol):
    """A pool of connections to the pods of one Deployment."""

    def send(self, line: bytes, body: bytes, *, deadline: float, done: Done, fields: bytes = b"") -> Exchange:
        """Begin a request."""

    def close(self) -> None:
        """Close the connections that nobody uses: the next request meets whomever the Service picks."""


class PeerSearcher:
    """A Searcher over the pods of another Deployment."""

    def __init__(self, peer: Peer, key: bytes, loop_time: Callable[[], float]) -> None:
        self._peer = peer
        self._key = key
        self._loop_time = loop_time

    def search(self, body: bytes, *, deadline: float, done: Done) -> Exchange:
        """Begin a search; `deadline` is on the loop's clock."""
        expires_at = time.time() + deadline - self._loop_time()
        field = hop_field(self._key, body, expires_at=expires_at)
        return self._peer.send(HOP_LINE, body, deadline=deadline, done=partial(_judged, done), fields=field)


class Dispatcher:
    """Knows by whom a release is searched. `elsewhere` maps a release to the Deployment that holds it.

    `deployment` is this pod's own; empty = it has no neighbours. `on_unavailable` is told that the runtime here
    could not answer.
    """

    def __init__(
        self,
        here: Searcher,
        *,
        elsewhere: Callable[[], Mapping[str, str]],
        connect: Callable[[str], Peer],
        keys: Keys,
        loop_time: Callable[[], float],
        deployment: str = "",
        on_unavailable: Callable[[], None] = lambda: None,
    ) -> None:
        self._here = Fallback(here, neighbours=self._neighbours, on_unavailable=on_unavailable)
        self._deployment = deployment
        self._elsewhere = elsewhere
        self._connect = connect
        self._keys = keys
        self._loop_time = loop_time
        self._peers: dict[str, Peer] = {}

    def __call__(self, release: str) -> Searcher:
        """Return who searches `release`.

        Raises:
            RequestError: it is held by other pods, and this one has no key to sign a hop with.
        """
        deployment = self._elsewhere().get(release)
        if deployment is None:
            return self._here
        keys = self._keys()
        if not keys:
            message = f"release {release} is held by other pods and this pod has no key to ask them with; try again"
            raise RequestError(ErrorCode.RELEASE_UNAVAILABLE, message, retry_after_seconds=1)
        return PeerSearcher(self._peer(deployment), keys[0], self._loop_time)

    def _peer(self, deployment: str) -> Peer:
        if deployment not in self._peers:
            self._peers[deployment] = self._connect(deployment)
        return self._peers[deployment]

    def _neighbours(self) -> Searcher | None:
        keys = self._keys()
        if not self._deployment or not keys:
            return None
        peer = self._peer(self._deployment)
        peer.close()
        return PeerSearcher(peer, keys[0], self._loop_time)


class HopReceiver:
    """The handler of `POST /v1/hop` on the port for peers."""

    def __init__(
        self,
        here: Searcher,
        *,
        keys: Keys,
        in_flight: InFlight,
        maximum: Callable[[], int],
        loop_time: Callable[[], float],
    ) -> None:
        self._here = here
        self._keys = keys
        self._in_flight = in_flight
        self._maximum = maximum
        self._loop_time = loop_time

    def __call__(self, request: Request, respond: Respond) -> Cancel | None:
        """Search for a peer."""
        try:
            search = self._believed(request)
            self._in_flight.enter(search.release, self._maximum())
        except RequestError as error:
            respond(error_response(error))
            return None
        deadline = self._loop_time() + search.deadline_ms / 1000
        done = partial(self._finish, search, respond)
        exchange = self._here.search(request.body, deadline=deadline, done=done)
        return partial(self._give_up, search.release, exchange)

    def _believed(self, request: Request) -> SearchRequest:
        problem = hop_problem(self._keys(), request.headers.get(HOP_HEADER), request.body, now=time.time())
        if problem:
            raise RequestError(ErrorCode.UNAUTHENTICATED, problem)
        try:
            return SearchRequest.model_validate_json(request.body)
        except ValidationError:
            raise RequestError(ErrorCode.INVALID_REQUEST, "the hop holds no search that this version knows") from None

    def _finish(self, search: SearchRequest, respond: Respond, outcome: RuntimeReply | RequestError) -> None:
        self._in_flight.leave(search.release)
        try:
            respond(_passed_on(outcome))
        except RequestError as error:
            if error.code is ErrorCode.INTERNAL:
                logger.error("a hop failed", extra={"query_id": search.query_id, "reason": error.detail})
            fields = TAKEN_FIELD if error.taken else b""
            respond(error_response(error, query_id=search.query_id, fields=fields))

    def _give_up(self, release: str, exchange: Exchange) -> None:
        exchange.cancel()
        self._in_flight.leave(release)


def _judged(done: Done, outcome: RuntimeReply | RequestError) -> None:
    """Hand an outcome on. That a peer does not believe us is our fault, not that of the caller's key."""
    if isinstance(outcome, RuntimeReply) and outcome.status == HTTPStatus.UNAUTHORIZED:
        detail = f"a peer refused the hop: {error_of_reply(outcome).message}"
        done(RequestError(ErrorCode.INTERNAL, FAILED, detail=detail))
    else:
        done(outcome)


def _passed_on(outcome: RuntimeReply | RequestError) -> Response:
    if isinstance(outcome, RequestError):
        raise outcome
    if outcome.status != 200:
        raise error_of_reply(outcome)
    fields = b"".join(b"%b: %b\r\n" % (name, outcome.headers[name]) for name in PASSED_ON if name in outcome.headers)
    return Response(200, outcome.body, fields)
