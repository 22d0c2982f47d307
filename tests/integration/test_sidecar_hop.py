"""A search that another Deployment's pods hold the release of: over a real port, signed, to a played runtime."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.sidecar_lab import Call, PlayedRuntime, call, reply, until

from tidegate_api.wire import ErrorCode, Scope, SearchRequest
from tidegate_sidecar.adapters.runtime_socket import PeerSocket, RuntimeSocket
from tidegate_sidecar.errors import RequestError
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


async def test_peers_that_are_gone_are_unavailable(pair: Pair) -> None:
    answer = await pair.ask(release="rel-c")
    assert isinstance(answer, RequestError)
    assert answer.code is ErrorCode.RELEASE_UNAVAILABLE


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
