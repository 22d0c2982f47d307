"""A runtime played over a Unix socket, and a client that sees every byte of an answer."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Play = Callable[["Call", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Call:
    """One request that the runtime got."""

    line: str
    body: dict[str, Any]


def reply(document: object, *, status: str = "200 OK", **headers: str) -> bytes:
    """An answer as the runtime writes it."""
    body = json.dumps(document).encode()
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return head.encode() + body


async def echo(call: Call, writer: asyncio.StreamWriter) -> None:
    """Answer a search with its own query."""
    results = [{"content": call.body["query"], "tenant": call.body["scope"]["tenant"]}]
    writer.write(reply({"results": results, "degraded": [], "timings_ms": {"total": 1.0}}, x_tidegate_results="1"))


@dataclass
class PlayedRuntime:
    """Holds releases in memory; the test decides how searches are answered."""

    path: Path
    play: Play = echo
    play_admin: Play | None = None
    phases: dict[str, str] = field(default_factory=dict)
    opens_as: str = "Warm"
    calls: list[Call] = field(default_factory=list)
    connections: int = 0
    abandoned: int = 0

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["PlayedRuntime"]:
        """Listen on the socket."""
        self.path.unlink(missing_ok=True)
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_unix_server(self._serve, str(self.path))
        try:
            yield self
        finally:
            server.close()
            await self.drop_connections()

    async def drop_connections(self) -> None:
        """Close every connection, as a runtime that restarts."""
        for writer in list(self._writers):
            writer.close()
        await until(lambda: not self._writers, "the connections are closed")

    @property
    def searches(self) -> list[Call]:
        return [call for call in self.calls if call.line == "POST /v1/search"]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0] or 0)
                body = await reader.readexactly(length)
                call = Call(head.rpartition(" HTTP/1.1\r\n")[0].partition(" HTTP")[0], json.loads(body or b"{}"))
                self.calls.append(call)
                await self._answer(call, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Play one call; a caller who hangs up meanwhile is noticed, as a real server would."""
        play = self.play if call.line == "POST /v1/search" else self.play_admin or self._admin
        playing = asyncio.ensure_future(play(call, writer))
        hung_up = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({playing, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not playing.done():
            self.abandoned += 1
        playing.cancel()
        hung_up.cancel()
        await asyncio.gather(playing, hung_up, return_exceptions=True)

    async def _admin(self, call: Call, writer: asyncio.StreamWriter) -> None:
        match call.line:
            case "POST /v1/open":
                self.phases.setdefault(call.body["name"], self.opens_as)
                writer.write(reply({}, status="202 Accepted"))
            case "POST /v1/close":
                self.phases.pop(call.body["release"], None)
                writer.write(reply({}, status="202 Accepted"))
            case "GET /metrics":
                counted = b'tidegate_node_seconds_count{node="dense"} 1.0\n'
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(counted), counted))
            case _:
                releases = [{"name": name, "phase": phase} for name, phase in self.phases.items()]
                writer.write(reply({"process": "p1", "releases": releases}))


@dataclass
class Answer:
    """One answer, taken apart."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer from a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *fields = head.strip().split("\r\n")
    headers = dict(each.split(": ", 1) for each in fields)
    return Answer(int(line.split(" ")[1]), headers, await reader.readexactly(int(headers["content-length"])))


def request_bytes(method: str, target: str, document: object = None, /, **headers: str) -> bytes:
    """A request as a client writes it."""
    body = document if isinstance(document, bytes) else b"" if document is None else json.dumps(document).encode()
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode() + body
    )


async def call(port: int, method: str, target: str, document: object = None, /, **headers: str) -> Answer:
    """Send one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes(method, target, document, **headers))
        async with asyncio.timeout(15):
            return await read_answer(reader)
    finally:
        writer.transport.abort()  # what the sidecar refused to read is not sent for ever
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def until(condition: Callable[[], Awaitable[bool]] | Callable[[], bool], what: str) -> None:
    """Wait for a condition; says what was waited for when it does not come."""
    try:
        async with asyncio.timeout(20):
            while True:
                found = condition()
                if found if isinstance(found, bool) else await found:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited too long until {what}") from None
