"""The HTTP/1.1 front: bytes of a connection in, requests out, answers back.

Why our own: the front is paid by every request, and a framework costs several times what a proxy may
(docs/adr/0003-http-front.md). It is safe because it is strict and keeps little state:

- llhttp reads header fields and bodies without any leniency; `framing.py` decides on what llhttp lets pass.
- One request at a time: bytes that arrive before an answer is out end the connection (no pipelining).
- Whatever is refused ends the connection too, so nobody can guess differently where the next request begins.
- Head, body and idle time are bounded; one sweep over all connections enforces that, not a timer for each.
- A caller who goes away cancels the work that was begun for it.

A handler answers through a callback: a request has one wait, for the runtime, and a task for it would
cost as much as all the parsing. Work with more waits starts a task of its own and returns its `cancel`.
"""

import asyncio
import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import cast

import httptools

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.answers import Response, error_response, new_query_id
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.framing import Headers, HeadLimits, check_head, joined, refused, too_large, waits_for_continue

logger = logging.getLogger(__name__)

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
FAILED = RequestError(ErrorCode.INTERNAL, "the sidecar failed; its log says why")
TRAILERS = refused("trailers are not read; send every field in the head")
PIPELINED = refused("a second request began before the first was answered; send one at a time")


class Phase(enum.Enum):
    """What a connection waits for."""

    IDLE = "the next request"
    HEAD = "the rest of the head"
    BODY = "the rest of the body"
    ANSWER = "the answer"
    LINGER = "the caller to read a refusal"


@dataclass(frozen=True, slots=True)
class FrontLimits(HeadLimits):
    """Bounds of a connection, in bytes, counts and seconds."""

    max_connections: int = 4_096
    idle_seconds: float = 75.0
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    linger_seconds: float = 2.0

    def patience_seconds(self, phase: Phase) -> float:
        """Return how long a connection may stay in `phase`."""
        match phase:
            case Phase.IDLE:
                return self.idle_seconds
            case Phase.HEAD:
                return self.head_seconds
            case Phase.BODY:
                return self.body_seconds
            case Phase.ANSWER:
                return self.answer_seconds
            case Phase.LINGER:
                return self.linger_seconds


@dataclass(slots=True)
class Request:
    """One request, complete, in the bytes it came in. Header names are lower case; repeated fields are joined."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes


Respond = Callable[[Response], None]
Cancel = Callable[[], object]
Handler = Callable[[Request, Respond], Cancel | None]


class Connection(asyncio.Protocol):
    """One caller's connection; also the callbacks of its parser."""

    __slots__ = (
        "_body",
        "_body_bytes",
        "_cancel",
        "_complete",
        "_fault",
        "_fields",
        "_head",
        "_keep_alive",
        "_parser",
        "_raw_head",
        "_server",
        "_transport",
        "phase",
        "waited_seconds",
    )

    def __init__(self, server: "HttpServer") -> None:
        self._server = server
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._cancel: Cancel | None = None
        self._keep_alive = True
        self._fault: RequestError | None = None
        self._await_request()

    def _await_request(self) -> None:
        self.phase = Phase.IDLE
        self.waited_seconds = 0.0
        self._raw_head = b""
        self._fields: Headers = {}
        self._head: tuple[bytes, bytes, Headers] | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._complete = False

    # --- transport ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request, unless there are too many connections."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class is not a subclass
        if not self._server.admit(self):
            self._transport.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Stop the work nobody waits for any more."""
        self._server.forget(self)
        self._transport = self._parser = None
        self._stop()

    def data_received(self, data: bytes) -> None:
        """Feed the parser and act once a request is complete or at fault."""
        if self._parser is None or self.phase is Phase.LINGER:
            return
        if self.phase is Phase.ANSWER:
            self._refuse(PIPELINED)
            return
        if self._head is None:
            if self.phase is Phase.IDLE:
                self.phase = Phase.HEAD
                self.waited_seconds = 0.0
            self._raw_head += data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._blame(refused("the connection can't be upgraded; leave out the header upgrade"))
        except httptools.HttpParserError as error:
            self._blame(refused(f"malformed HTTP: {error}"))
        if self._head is None and len(self._raw_head) > self._server.limits.max_head_bytes:
            self._blame(too_large("the head", self._server.limits.max_head_bytes, "bytes"))
        if self._fault is not None:
            self._refuse(self._fault)
        elif self._complete:
            self._begin()

    def _blame(self, fault: RequestError) -> None:
        """Keep the first fault: what follows from it would only confuse."""
        if self._fault is None:
            self._fault = fault

    # --- parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Notice a second request in the same bytes."""
        if self._complete:
            self._blame(PIPELINED)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a field."""
        key = name.lower()
        fields = self._fields
        if key in fields:
            self._on_repeated_header(key, value)
        else:
            fields[key] = value

    def _on_repeated_header(self, key: bytes, value: bytes) -> None:
        try:
            self._fields[key] = joined(key, self._fields[key], value)
        except RequestError as fault:
            self._blame(fault)

    def on_headers_complete(self) -> None:
        """Decide whether the head is acceptable, before any of the body is kept."""
        if self._fault is not None:
            return
        headers = self._fields
        try:
            method, target, minor_version = check_head(self._raw_head, headers, self._server.limits)
            if b"expect" in headers and waits_for_continue(headers[b"expect"], minor_version) and self._transport:
                self._transport.write(CONTINUE)
        except RequestError as fault:
            self._blame(fault)
            return
        self.phase = Phase.BODY
        self._head = (method, target, headers)
        self._fields = {}  # whatever comes now is a trailer

    def on_body(self, data: bytes) -> None:
        """Collect a piece of the body within its limit."""
        self._body_bytes += len(data)
        if self._body_bytes <= self._server.limits.max_body_bytes:
            self._body.append(data)
        else:
            self._blame(too_large("the body", self._server.limits.max_body_bytes, "bytes"))

    def on_message_complete(self) -> None:
        """Note that the request is whole; it begins once this read is through."""
        self._complete = True
        # Only here: once the parser goes on, it has forgotten what this head said.
        self._keep_alive = self._parser is not None and self._parser.should_keep_alive()
        if self._fields and self._head is not None:
            self._blame(TRAILERS)

    # --- answering ---------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._head is None:
            return
        self.phase = Phase.ANSWER
        self.waited_seconds = 0.0
        try:
            request = Request(*self._head, b"".join(self._body))
            cancel = self._server.handler(request, self._respond)
        except Exception:
            # The one place where a fault of ours becomes an answer instead of a connection that just ends.
            query_id = new_query_id()
            logger.exception("a request failed unexpectedly", extra={"query_id": query_id})
            self._refuse(FAILED, query_id=query_id)
            return
        if self.phase is Phase.ANSWER:
            self._cancel = cancel

    def _respond(self, response: Response) -> None:
        transport = self._transport
        if transport is None or self.phase is not Phase.ANSWER:
            return
        self._cancel = None
        keep_alive = self._keep_alive and not self._server.draining
        transport.write(response.encode(self._server.date, keep_alive=keep_alive))
        if keep_alive:
            self._await_request()
        else:
            transport.close()

    def _refuse(self, fault: RequestError, *, query_id: str | None = None) -> None:
        """Answer an error and end the connection, reading on for a moment so that the answer arrives."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        self._stop()
        self.phase = Phase.LINGER
        self.waited_seconds = 0.0
        transport.write(error_response(fault, query_id=query_id).encode(self._server.date, keep_alive=False))
        transport.write_eof()

    def _stop(self) -> None:
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel()

    # --- time --------------------------------------------------------------------------------

    def grow_older(self, seconds: float) -> None:
        """Count the wait and end it when it has been too long."""
        self.waited_seconds += seconds
        if self.waited_seconds <= self._server.limits.patience_seconds(self.phase):
            return
        if self.phase in (Phase.HEAD, Phase.BODY):
            self._refuse(refused(f"waited too long for {self.phase.value}; send it faster"))
        elif self.phase is Phase.ANSWER:
            self._refuse(FAILED)
        else:
            self.cut()

    def cut(self) -> None:
        """Close without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def drain(self) -> None:
        """Close now when no request is under way; otherwise the answer closes."""
        if self._transport is not None and self.phase is Phase.IDLE:
            self._transport.close()


class HttpServer:
    """A listener and its connections."""

    def __init__(self, handler: Handler, *, limits: FrontLimits | None = None, sweep_seconds: float = 0.5) -> None:
        self.handler = handler
        self.limits = limits or FrontLimits()
        self.loop = asyncio.get_running_loop()
        self.draining = False
        self.date = formatdate(usegmt=True).encode()
        self._sweep_seconds = sweep_seconds
        self._connections: set[Connection] = set()
        self._listener: asyncio.Server | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port, which the system chooses when `port` is 0."""
        self._listener = await self.loop.create_server(lambda: Connection(self), host, port, backlog=512)
        self._sweep()
        return int(self._listener.sockets[0].getsockname()[1])

    def set_limits(self, limits: FrontLimits) -> None:
        """Change the bounds of every connection from now on."""
        self.limits = limits

    async def drain(self, seconds: float) -> None:
        """Take no new connection, let requests under way finish, and close."""
        self.draining = True
        if self._listener is not None:
            self._listener.close()
        for connection in tuple(self._connections):
            connection.drain()
        try:
            async with asyncio.timeout(seconds):
                while self._connections:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            logger.warning(
                "connections were cut at the end of the drain", extra={"connections": len(self._connections)}
            )
            for connection in tuple(self._connections):
                connection.cut()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def admit(self, connection: Connection) -> bool:
        """Register a connection; False when there are too many."""
        if len(self._connections) >= self.limits.max_connections:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        """Drop a connection that has ended."""
        self._connections.discard(connection)
        self._changed.set()

    def _sweep(self) -> None:
        self.date = formatdate(usegmt=True).encode()
        for connection in tuple(self._connections):
            connection.grow_older(self._sweep_seconds)
        self._sweeper = self.loop.call_later(self._sweep_seconds, self._sweep)
