"""The client of the runtime's socket: reuse, retries, deadlines, giving up."""

import asyncio
import socket as socketlib
from pathlib import Path

import pytest
import uvloop
from tests.integration.sidecar_lab import Call, PlayedRuntime, echo, reply, until
from tests.unit.sidecar.builders import release

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.adapters import runtime_socket
from tidegate_sidecar.adapters.runtime_admin import SocketRuntimeAdmin
from tidegate_sidecar.adapters.runtime_socket import RuntimeSocket, SocketExchange
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.ports import RuntimeReply

BODY = b'{"query": "q", "scope": {"tenant": null}}'


class Asked:
    """One search and its outcome."""

    def __init__(self, socket: RuntimeSocket, *, seconds: float = 10) -> None:
        loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[RuntimeReply | RequestError] = loop.create_future()
        self.times_done = 0
        self.exchange: SocketExchange = socket.search(BODY, deadline=loop.time() + seconds, done=self._done)

    def _done(self, outcome: RuntimeReply | RequestError) -> None:
        self.times_done += 1
        self._outcome.set_result(outcome)

    async def reply(self) -> RuntimeReply:
        outcome = await self._outcome
        assert isinstance(outcome, RuntimeReply), outcome
        return outcome

    async def error(self) -> RequestError:
        outcome = await self._outcome
        assert isinstance(outcome, RequestError), outcome
        return outcome


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runtime.sock"


async def hang(_: Call, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def test_one_connection_serves_one_request_after_another(path):
    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path))
        for _ in range(5):
            answer = await Asked(socket).reply()
            assert (answer.status, answer.headers[b"x-tidegate-results"]) == (200, b"1")
        assert runtime.connections == 1
        socket.close()


async def test_requests_at_once_use_connections_of_their_own_and_are_not_mixed_up(path):
    async def reverse(call: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.02 * (3 - call.body["n"]))
        writer.write(reply({"n": call.body["n"]}))

    async with PlayedRuntime(path, play=reverse).listening() as runtime:
        socket, loop = RuntimeSocket(str(path)), asyncio.get_running_loop()
        answers: list[asyncio.Future[object]] = []
        for n in range(3):
            answers.append(loop.create_future())
            socket.search(b'{"n": %d}' % n, deadline=loop.time() + 10, done=answers[n].set_result)
        found = [answer.body for answer in await asyncio.gather(*answers)]
        assert found == [b'{"n": 0}', b'{"n": 1}', b'{"n": 2}']
        assert runtime.connections == 3
        socket.close()


async def test_the_end_of_an_idle_connection_is_told_and_that_of_our_own_giving_up_is_not(path):
    told: list[str] = []
    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path), on_idle_end=lambda: told.append("ended"))
        await Asked(socket).reply()
        await runtime.drop_connections()
        await until(lambda: told == ["ended"], "the end is told")
        runtime.play = hang
        await Asked(socket, seconds=0.05).error()
        runtime.play = echo
        await Asked(socket).reply()
        socket.close()
        await runtime.drop_connections()
    assert told == ["ended"]


async def test_a_pooled_connection_that_died_is_replaced(path):
    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path))
        await Asked(socket).reply()
        await runtime.drop_connections()
        assert (await Asked(socket).reply()).status == 200
        assert runtime.connections == 2
        assert len(runtime.searches) == 2
        socket.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_request_of_which_nothing_was_sent_is_sent_again(path, run):
    """The runtime closes while our loop is busy: we learn of it only by writing."""

    async def play() -> None:
        listener = socketlib.socket(socketlib.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        socket = RuntimeSocket(str(path))
        for _ in range(2):
            asked = Asked(socket)
            taken, _ = await asyncio.to_thread(listener.accept)
            await asyncio.to_thread(taken.recv, 65_536)
            taken.sendall(reply({"a": 1}))
            assert (await asked.reply()).status == 200
            taken.close()  # and on to the next request without a turn of the loop
        listener.close()
        socket.close()

    run(play())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_runtime_that_hangs_up_on_everybody_is_not_tried_for_ever(path, run):
    async def play() -> None:
        accepted = 0

        def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal accepted
            accepted += 1
            writer.transport.abort()

        async with await asyncio.start_unix_server(hang_up, str(path)):
            error = await Asked(RuntimeSocket(str(path))).error()
        assert error.code is ErrorCode.RELEASE_UNAVAILABLE
        assert accepted == 1

    run(play())


async def test_a_request_that_the_runtime_took_is_not_sent_twice(path):
    async def crash(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path))
        await Asked(socket).reply()
        runtime.play = crash
        error = await Asked(socket).error()
        assert error.code is ErrorCode.RELEASE_UNAVAILABLE
        assert "closed the connection" in error.message
        assert len(runtime.searches) == 2


async def test_a_runtime_that_is_not_there_is_told(path):
    error = await Asked(RuntimeSocket(str(path))).error()
    assert error.code is ErrorCode.RELEASE_UNAVAILABLE
    assert "No such file" in error.message
    assert str(path) not in error.message
    assert error.retry_after_seconds == 1


def test_a_runtime_that_is_slow_to_accept_is_waited_for_until_the_deadline(path):
    """On uvloop, which production uses; asyncio's own loop takes a full queue for a connection."""

    async def play() -> None:
        with socketlib.socket(socketlib.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(0)
            socket = RuntimeSocket(str(path))
            waiting = [Asked(socket, seconds=20) for _ in range(4)]
            late = Asked(socket, seconds=0.2)
            assert (await late.error()).code is ErrorCode.DEADLINE_EXCEEDED
            taken = [(await asyncio.to_thread(listener.accept))[0] for _ in waiting]
            for connection in taken:
                await asyncio.to_thread(connection.recv, 65_536)
                connection.sendall(reply({"a": 1}))
            assert [(await each.reply()).status for each in waiting] == [200] * 4
            for connection in taken:
                connection.close()
            socket.close()

    uvloop.run(play())


async def test_a_passed_deadline_closes_the_connection_so_that_the_runtime_stops(path):
    async with PlayedRuntime(path, play=hang).listening() as runtime:
        socket = RuntimeSocket(str(path))
        asked = Asked(socket, seconds=0.05)
        assert (await asked.error()).code is ErrorCode.DEADLINE_EXCEEDED
        await until(lambda: runtime.abandoned == 1, "the runtime noticed")
        assert asked.times_done == 1


async def test_deadlines_hold_on_a_reused_connection_whichever_comes_first(path):
    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path))
        for first, second in ((10, 0.05), (0.05, 0.2)):
            runtime.play = echo
            await Asked(socket, seconds=first).reply()
            runtime.play = hang
            started = asyncio.get_running_loop().time()
            assert (await Asked(socket, seconds=second).error()).code is ErrorCode.DEADLINE_EXCEEDED
            assert asyncio.get_running_loop().time() - started >= second


async def test_giving_up_tells_the_runtime_and_nobody_else(path):
    async with PlayedRuntime(path, play=hang).listening() as runtime:
        asked = Asked(RuntimeSocket(str(path)))
        await until(lambda: len(runtime.searches) == 1, "the search arrived")
        asked.exchange.cancel()
        await until(lambda: runtime.abandoned == 1, "the runtime noticed")
        assert asked.times_done == 0


async def test_giving_up_before_the_connection_is_there_sends_nothing(path):
    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path))
        Asked(socket).exchange.cancel()
        await Asked(socket).reply()
        assert len(runtime.searches) == 1
        socket.close()


BAD_ANSWERS = {
    "no HTTP": b"hello\r\n\r\n",
    "more than announced": reply({"a": 1}) + b"x",
    "bytes that nobody asked for": reply({"a": 1}) + reply({"a": 2}),
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_a_connection_with_a_bad_answer_is_never_used_again(path, answer):
    async def play(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with PlayedRuntime(path, play=play).listening() as runtime:
        socket = RuntimeSocket(str(path))
        first = await Asked(socket)._outcome
        assert isinstance(first, RequestError) or first.body == b'{"a": 1}'
        runtime.play = echo
        assert (await Asked(socket).reply()).body.startswith(b'{"results"')
        assert runtime.connections == 2
        socket.close()


async def test_a_runtime_that_closes_after_its_answer_is_not_pooled(path):
    async def play(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(reply({"a": 1}, connection="close"))

    async with PlayedRuntime(path, play=play).listening() as runtime:
        socket = RuntimeSocket(str(path))
        for _ in range(2):
            assert (await Asked(socket).reply()).status == 200
        assert runtime.connections == 2


async def test_an_answer_without_end_is_cut(path, monkeypatch):
    monkeypatch.setattr(runtime_socket, "MAX_ANSWER_BYTES", 100_000)

    async def play(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 200_000)
        await asyncio.Event().wait()

    async with PlayedRuntime(path, play=play).listening():
        error = await Asked(RuntimeSocket(str(path))).error()
        assert "exceeds 100000 bytes" in error.message


async def test_admin_calls_open_close_and_read_the_state(path):
    async with PlayedRuntime(path).listening() as runtime:
        socket = RuntimeSocket(str(path))
        admin = SocketRuntimeAdmin(socket)
        await admin.open(release("rel-a"))
        assert [each.name for each in (await admin.state()).releases] == ["rel-a"]
        await admin.close("rel-a")
        assert (await admin.state()).releases == []
        assert runtime.calls[0].body["pipeline"]["knowledgeBases"] == ["handbook"]
        socket.close()


async def test_admin_calls_end_by_themselves(path):
    async with PlayedRuntime(path, play_admin=hang).listening():
        with pytest.raises(RequestError) as late:
            await SocketRuntimeAdmin(RuntimeSocket(str(path)), call_seconds=0.05).state()
        assert late.value.code is ErrorCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            reply({"error": {"code": "invalid_request", "message": "no such node"}}, status="400 Bad Request"),
            "no such node",
        ),
        (reply([1]), "the runtime's state is not what this sidecar can read"),
    ],
    ids=["refused", "unreadable"],
)
async def test_admin_calls_fail_with_the_runtimes_words(path, answer, message):
    async def play(_: Call, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    async with PlayedRuntime(path, play_admin=play).listening():
        socket = RuntimeSocket(str(path))
        with pytest.raises(RequestError, match=message):
            await SocketRuntimeAdmin(socket).state()
        socket.close()
