"""A search that another Deployment's pods hold the release of: over a real port, signed, to a played runtime."""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.sidecar_lab import Call, PlayedRuntime, call, reply, until

from tidegate_api.wire import ErrorCode, Scope, SearchRequest
from tidegate_sidecar.adapters import runtime_socket
from tidegate_sidecar.adapters.runtime_socket import PeerSocket, RuntimeSocket
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.hop import TAKEN_HEADER
from tidegate_sidecar.http1 import HttpServer
from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.peers import Dispatcher, HopReceiver
from tidegate_sidecar.ports import RuntimeReply
from tidegate_sidecar.routes import Router

SEARCH = SearchRequest(query_id="q1", release="rel-b", query="leave", scope=Scope(tenant="acme"), deadline_ms=5000)
BODY = SEARCH.model_dump_json().encode()


@dataclass
class Pair:
    """A sender, and a receiver in front of the runtime that holds `rel-b`."""

    dispatcher: Dispatcher
    remote: PlayedRuntime
    port: int
    in_flight: InFlight
    sender_keys: list[bytes]

    async def ask(self, *, release: str = "rel-b", seconds: float = 5.0) -> RuntimeReply | RequestError:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[RuntimeReply | RequestError] = loop.create_future()
        self.dispatcher(release).search(BODY, deadline=loop.time() + seconds, done=answer.set_result)
        return await asyncio.wait_for(answer, 10)


@contextlib.asynccontextmanager
async def running_pair(tmp_path: Path) -> AsyncIterator[Pair]:
    loop = asyncio.get_running_loop()
    sender_keys, receiver_keys = [b"one"], [b"two", b"one"]
    async with (
        PlayedRuntime(tmp_path / "remote.sock").listening() as remote,
        PlayedRuntime(tmp_path / "here.sock").listening(),
    ):
        in_flight = InFlight()
        receiver = HopReceiver(
            RuntimeSocket(str(tmp_path / "remote.sock")),
            keys=lambda: receiver_keys,
            in_flight=in_flight,
            maximum=lambda: 1,
            loop_time=loop.time,
        )
        server = HttpServer(Router({(b"POST", b"/v1/hop"): receiver}))
        port = await server.start("127.0.0.1", 0)
        dispatcher = Dispatcher(
            RuntimeSocket(str(tmp_path / "here.sock")),
            elsewhere=lambda: {"rel-b": "0123456789", "rel-c": "gone"},
            connect=lambda deployment: PeerSocket("127.0.0.1", port if deployment == "0123456789" else 1),
            keys=lambda: sender_keys,
            loop_time=loop.time,
        )
        yield Pair(dispatcher, remote, port, in_flight, sender_keys)
        await server.drain(1.0)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with running_pair(tmp_path) as running:
        yield running


async def test_a_peer_answers_with_the_runtimes_own_words(pair: Pair) -> None:
    answer = await pair.ask()
    assert isinstance(answer, RuntimeReply)
    assert json.loads(answer.body)["results"] == [{"content": "leave", "tenant": "acme"}]
    assert answer.headers[b"x-tidegate-results"] == b"1"
    assert pair.remote.searches[0].body["release"] == "rel-b"


async def test_a_release_that_is_here_does_not_leave_the_pod(pair: Pair) -> None:
    assert isinstance(await pair.ask(release="rel-a"), RuntimeReply)
    assert pair.remote.searches == []


async def test_a_key_of_another_pipeline_is_our_fault_not_the_callers(pair: Pair) -> None:
    pair.sender_keys[:] = [b"stolen"]
    answer = await pair.ask()
    assert isinstance(answer, RequestError)
    assert answer.code is ErrorCode.INTERNAL
    assert "signature" in (answer.detail or "")
    assert pair.remote.searches == []


async def test_without_a_key_no_hop_is_sent(pair: Pair) -> None:
    pair.sender_keys.clear()
    with pytest.raises(RequestError, match="no key to ask them with"):
        pair.dispatcher("rel-b")


async def test_an_unsigned_call_from_outside_is_refused(pair: Pair) -> None:
    answer = await call(pair.port, "POST", "/v1/hop", BODY)
    assert answer.status == 401
    assert pair.remote.searches == []


async def test_peers_that_are_gone_are_unavailable(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_socket, "ENDPOINTS_SETTLE_SECONDS", 0.2)
    answer = await pair.ask(release="rel-c")
    assert isinstance(answer, RequestError)
    assert answer.code is ErrorCode.RELEASE_UNAVAILABLE


@contextlib.asynccontextmanager
async def answering(port: int = 0, *, answers_each: int = 100) -> AsyncIterator[int]:
    """Answer on a port with the connection's number; a connection ends unanswered after `answers_each` requests."""
    counter, tasks = itertools.count(), set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        connection = next(counter)
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for _ in range(answers_each):
                await reader.readuntil(BODY)
                writer.write(reply({"connection": connection}))
            await reader.readuntil(BODY)

    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        yield int(server.sockets[0].getsockname()[1])
        await asyncio.wait(tasks)


async def hop(pool: PeerSocket) -> object:
    """Return what the peer answers."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[RuntimeReply | RequestError] = loop.create_future()
    pool.send(b"POST /v1/hop", BODY, deadline=loop.time() + 5, done=answer.set_result)
    outcome = await asyncio.wait_for(answer, 10)
    assert isinstance(outcome, RuntimeReply), outcome
    return json.loads(outcome.body)


async def test_peers_that_refuse_until_they_are_known_are_asked_again() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = int(reserved.getsockname()[1])
    pool = PeerSocket("127.0.0.1", port)
    asked = asyncio.ensure_future(hop(pool))
    done, _ = await asyncio.wait({asked}, timeout=3 * runtime_socket.REFUSED_SECONDS)
    assert not done

    async with answering(port):
        assert await asked == {"connection": 0}
        pool.close()


async def test_a_peer_that_ends_with_a_request_in_its_hands_is_not_the_requests_end() -> None:
    async with answering(answers_each=1) as port:
        pool = PeerSocket("127.0.0.1", port)
        assert [await hop(pool) for _ in range(2)] == [{"connection": 0}, {"connection": 1}]
        pool.close()


async def test_a_hop_that_ended_the_runtime_says_so(pair: Pair) -> None:
    async def crash(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.close()

    pair.remote.play = crash
    answer = await pair.ask()
    assert isinstance(answer, RuntimeReply)
    assert (answer.status, answer.headers.get(TAKEN_HEADER)) == (503, b"1")


async def test_errors_of_the_runtime_are_passed_on(pair: Pair) -> None:
    async def refuse(_: Call, writer: asyncio.StreamWriter) -> None:
        error = {"error": {"code": "invalid_request", "message": "unknown filter key"}}
        writer.write(reply(error, status="400 Bad Request"))

    pair.remote.play = refuse
    answer = await pair.ask()
    assert isinstance(answer, RuntimeReply)
    assert answer.status == 400
    assert b"unknown filter key" in answer.body


async def test_a_sender_that_gives_up_stops_the_runtime(pair: Pair) -> None:
    async def never(_: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    pair.remote.play = never
    answer = await pair.ask(seconds=0.2)
    assert isinstance(answer, RequestError)
    assert answer.code is ErrorCode.DEADLINE_EXCEEDED
    await until(lambda: pair.remote.abandoned == 1, "the runtime was told to stop")
    await until(lambda: pair.in_flight.of("rel-b") == 0, "nothing is under way")
