"""HTTP/1.1 client of a runtime, or of a peer in front of one: kept-alive connections, one request on each at a time.

A general client costs more than the whole rest of a request here. Invariants:

- A connection that did not finish its exchange cleanly is closed, never pooled: answers can't change hands.
- Giving up (deadline, caller gone) closes the connection, which is how the runtime learns to stop.
- A request is written again only once, and only when a pooled connection turned out to be dead already.
- Peers stand behind a Service that learns of a pod's start and end a little later than the pod: a connection that
  they refuse is tried again for a while, and one that ends in that way is not the request's end. A search changes
  nothing, so asking twice harms nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, cast

import httptools

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.ports import Done, RuntimeReply

MAX_ANSWER_BYTES = 32 * 1024 * 1024
BUSY_SECONDS = 0.005
REFUSED_SECONDS = 0.05
# How long the nodes of a cluster may send connections to a pod that has ended, or has yet to begin.
ENDPOINTS_SETTLE_SECONDS = 3.0


class SocketExchange:
    """One request to the runtime. `done` is called once, with the reply or an error, unless it is cancelled."""

    __slots__ = ("connection", "connector", "deadline", "done", "payload")

    def __init__(self, payload: bytes, deadline: float, done: Done) -> None:
        self.payload = payload
        self.deadline = deadline
        self.done: Done | None = done
        self.connection: RuntimeConnection | None = None
        self.connector: asyncio.Task[RuntimeConnection] | None = None

    def finish(self, outcome: RuntimeReply | RequestError) -> None:
        """Hand the outcome over."""
        done, self.done = self.done, None
        if done is not None:
            done(outcome)

    def cancel(self) -> None:
        """Give up: nobody waits for the outcome."""
        self.done = None
        if self.connector is not None:
            self.connector.cancel()
        if self.connection is not None:
            self.connection.cut()


class RuntimeConnection(asyncio.Protocol):
    """One connection; also the callbacks of its parser."""

    __slots__ = (
        "_body",
        "_complete",
        "_exchange",
        "_headers",
        "_keep_alive",
        "_loop",
        "_parser",
        "_pool",
        "_received_bytes",
        "_served",
        "_surplus",
        "_timer",
        "transport",
    )

    def __init__(self, pool: "ConnectionPool") -> None:
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None
        self._exchange: SocketExchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._received_bytes = 0
        self._served = False
        self._complete = False
        self._surplus = False
        self._keep_alive = False

    def try_send(self, exchange: SocketExchange) -> bool:
        """Write a request; False when the connection has ended meanwhile."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return False
        self._exchange = exchange
        exchange.connection = self
        transport.write(exchange.payload)
        if self._timer is None or self._timer.when() > exchange.deadline:
            self._keep_watch(exchange.deadline)
        return True

    def cut(self, error: RequestError | None = None) -> None:
        """Close, whatever is under way; whoever waits gets `error`."""
        exchange, self._exchange = self._exchange, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.transport is not None:
            self.transport.abort()
        if exchange is not None and error is not None:
            exchange.finish(error)

    # --- deadline ----------------------------------------------------------------------------

    def _keep_watch(self, deadline: float) -> None:
        """Set the timer for `deadline`.

        One that rings early finds out by itself and is set again. So ordinary traffic sets one timer for each
        connection and period, not one for each request.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._exchange is None:
            return
        if self._loop.time() < self._exchange.deadline:
            self._keep_watch(self._exchange.deadline)
        else:
            self.cut(deadline_passed())

    # --- transport and parser ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request under way, or send it again when nothing of it can have arrived."""
        self.transport = None
        self._pool.discard(self)
        if self._served and self._exchange is not None and self._received_bytes == 0 and self._pool.may_repeat(exc):
            exchange, self._exchange = self._exchange, None
            self._pool.connect(exchange)
        self.cut(runtime_gone("it closed the connection before it had answered", taken=True))

    def data_received(self, data: bytes) -> None:
        """Feed the parser and hand a complete answer over."""
        if self._exchange is None:
            self.cut()
            return
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.cut(runtime_gone(f"its answer is not HTTP: {error}"))
            return
        if self._surplus:
            self.cut(runtime_gone("it answered more than it was asked"))
        elif self._complete:
            self._hand_over()
        elif self._received_bytes > MAX_ANSWER_BYTES:
            self.cut(runtime_gone(f"its answer exceeds {MAX_ANSWER_BYTES} bytes"))

    def on_message_begin(self) -> None:
        """Notice a second answer in the same bytes."""
        self._surplus = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header."""
        self._headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        """Collect a piece of the body."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Note that the answer is whole."""
        self._complete = True
        self._keep_alive = self._parser.should_keep_alive()

    def _hand_over(self) -> None:
        reply = RuntimeReply(self._parser.get_status_code(), self._headers, b"".join(self._body))
        exchange, self._exchange = self._exchange, None
        self._headers, self._body, self._received_bytes = {}, [], 0
        self._complete, self._served = False, True
        if exchange is None or not self._keep_alive:
            self.cut()
        else:
            exchange.connection = None
            self._pool.put_back(self)
        if exchange is not None:
            exchange.finish(reply)


Protocols: TypeAlias = "Callable[[], RuntimeConnection]"
Dial: TypeAlias = "Callable[[Protocols], Awaitable[tuple[asyncio.BaseTransport, RuntimeConnection]]]"


def runtime_gone(why: str, *, taken: bool = False) -> RequestError:
    """Return the error for a runtime that can't be spoken to; `taken` = it had the request already."""
    message = f"the runtime can't be reached ({why}); try again"
    return RequestError(ErrorCode.RELEASE_UNAVAILABLE, message, retry_after_seconds=1, taken=taken)


def deadline_passed() -> RequestError:
    """Return the error for an answer that did not come in time."""
    return RequestError(
        ErrorCode.DEADLINE_EXCEEDED, "no answer before the deadline; raise deadline_ms or limits.requestTimeout"
    )


class ConnectionPool:
    """Connections that one dialler makes, kept alive between requests.

    `patience_seconds` is how long a refused connection is tried again; 0 = whoever refuses is gone.
    `on_idle_end` is called when the other side ends a connection that nobody uses: it may be gone, and no
    request fails that would tell.
    """

    def __init__(
        self, dial: Dial, *, patience_seconds: float = 0, on_idle_end: Callable[[], None] | None = None
    ) -> None:
        self._dial = dial
        self._on_idle_end = on_idle_end
        self._patience_seconds = patience_seconds
        self._loop = asyncio.get_running_loop()
        self._idle: list[RuntimeConnection] = []

    def search(self, body: bytes, *, deadline: float, done: Done) -> SocketExchange:
        """Begin a search."""
        return self.send(b"POST /v1/search", body, deadline=deadline, done=done)

    def send(self, line: bytes, body: bytes, *, deadline: float, done: Done, fields: bytes = b"") -> SocketExchange:
        """Begin a request; `line` is method and path, `fields` further header lines. `done` is called later, never from here."""
        payload = b"%b HTTP/1.1\r\nhost: runtime\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
        exchange = SocketExchange(payload % (line, len(body), fields, body), deadline, done)
        while self._idle:
            if self._idle.pop().try_send(exchange):
                return exchange
        self.connect(exchange)
        return exchange

    def connect(self, exchange: SocketExchange) -> None:
        """Send `exchange` over a new connection."""
        connector = self._loop.create_task(self._connect(exchange.deadline))
        exchange.connector = connector
        connector.add_done_callback(partial(_connected, exchange))

    def may_repeat(self, ended: Exception | None) -> bool:
        """Return whether a request that met the end of its connection, and no byte of an answer, is sent again."""
        return isinstance(ended, BrokenPipeError) or self._patience_seconds > 0

    def put_back(self, connection: RuntimeConnection) -> None:
        """Keep a connection whose exchange ended cleanly."""
        self._idle.append(connection)

    def discard(self, connection: RuntimeConnection) -> None:
        """Drop a connection that has ended."""
        if connection in self._idle:
            self._idle.remove(connection)
            if self._on_idle_end is not None:
                self._on_idle_end()

    def close(self) -> None:
        """Close every pooled connection."""
        while self._idle:
            self._idle.pop().cut()

    async def _connect(self, deadline: float) -> RuntimeConnection:
        give_up = self._loop.time() + self._patience_seconds
        async with asyncio.timeout_at(deadline):
            while True:
                try:
                    _, connection = await self._dial(lambda: RuntimeConnection(self))
                except BlockingIOError:
                    # A Unix socket whose queue of callers is full: the runtime is busy, not gone.
                    await asyncio.sleep(BUSY_SECONDS)
                except ConnectionRefusedError:
                    if self._loop.time() >= give_up:
                        raise
                    await asyncio.sleep(REFUSED_SECONDS)
                else:
                    return connection


def _connected(exchange: SocketExchange, connector: "asyncio.Task[RuntimeConnection]") -> None:
    exchange.connector = None
    if connector.cancelled():
        return
    match connector.exception():
        case None:
            if not connector.result().try_send(exchange):
                exchange.finish(runtime_gone("it closed a new connection at once"))
        case TimeoutError():
            exchange.finish(deadline_passed())
        case OSError(strerror=why):
            exchange.finish(runtime_gone(why or "connection refused"))
        case unforeseen:
            exchange.finish(
                RequestError(ErrorCode.INTERNAL, "the sidecar failed; its log says why", detail=repr(unforeseen))
            )


class RuntimeSocket(ConnectionPool):
    """Connections to the runtime that listens on a Unix socket."""

    def __init__(self, path: str, *, on_idle_end: Callable[[], None] | None = None) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(lambda protocols: loop.create_unix_connection(protocols, path), on_idle_end=on_idle_end)

    def metrics(self, *, deadline: float, done: Done) -> SocketExchange:
        """Begin to read the runtime's metrics."""
        return self.send(b"GET /metrics", b"", deadline=deadline, done=done)


class PeerSocket(ConnectionPool):
    """Connections to the sidecars behind one Service."""

    def __init__(self, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            lambda protocols: loop.create_connection(protocols, host, port), patience_seconds=ENDPOINTS_SETTLE_SECONDS
        )
