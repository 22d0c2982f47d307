"""The HTTP front on a transport without a socket: framing, order, limits, ends."""

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.sidecar.fakes import FakeTransport
from tests.unit.sidecar.smuggling.corpus import load_corpus

from tidegate_sidecar.answers import Response
from tidegate_sidecar.http1 import Connection, FrontLimits, HttpServer, Phase

POST = b"POST /v1/retrieve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


class Front:
    """One connection, its requests and its answers. With `hold` the test answers by itself."""

    def __init__(self, *, limits: FrontLimits | None = None, hold: bool = False) -> None:
        self.requests = []
        self.cancelled = 0
        self.hold = hold
        self.server = HttpServer(self.handle, limits=limits)
        self.transport = FakeTransport()
        self.connection = Connection(self.server)
        self.connection.connection_made(self.transport)

    def handle(self, request, respond):
        self.requests.append(request)
        self.respond = respond
        if not self.hold:
            respond(Response(200, b"{}"))
        return self.cancel

    def cancel(self):
        self.cancelled += 1

    def feed(self, *pieces: bytes) -> "Front":
        for piece in pieces:
            self.connection.data_received(piece)
        return self

    @property
    def statuses(self) -> list[int]:
        return [int(part[:3]) for part in self.transport.written.split(b"HTTP/1.1 ")[1:]]

    @property
    def error(self) -> dict[str, str]:
        return json.loads(self.transport.written.rpartition(b"\r\n\r\n")[2])["error"]


async def test_a_request_is_handed_over_whole_and_answered():
    front = Front().feed(POST)
    (request,) = front.requests
    assert (request.method, request.target, request.body) == (b"POST", b"/v1/retrieve", b"hello")
    assert request.headers == {b"host": b"localhost", b"content-length": b"5"}
    assert front.transport.written.startswith(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
    )
    assert front.transport.written.endswith(b"\r\n\r\n{}")
    assert not front.transport.closed


async def test_a_connection_serves_one_request_after_another():
    front = Front().feed(POST, GET, CHUNKED, POST)
    assert front.statuses == [200, 200, 200, 200]
    assert [request.body for request in front.requests] == [b"hello", b"", b"hello", b"hello"]


@given(st.sampled_from([POST, GET, CHUNKED]), st.sets(st.integers(1, 60)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_how_bytes_are_cut_into_reads_does_not_matter(message, cuts):
    edges = [0, *sorted(cut for cut in cuts if cut < len(message)), len(message)]
    front = Front().feed(*(message[a:b] for a, b in itertools.pairwise(edges)))
    whole = Front().feed(message)
    assert front.requests == whole.requests
    assert front.statuses == [200]


async def test_repeated_fields_are_joined_and_doubtful_ones_refused():
    joined = Front().feed(b"GET / HTTP/1.1\r\nHost: a\r\nX-Beta: 1\r\nx-beta: 2\r\n\r\n")
    assert joined.requests[0].headers[b"x-beta"] == b"1, 2"
    doubtful = Front().feed(b"GET / HTTP/1.1\r\nHost: a\r\nX-Tidegate-Tenant: a\r\nX-Tidegate-Tenant: b\r\n\r\n")
    assert doubtful.statuses == [400]
    assert "x-tidegate-tenant came more than once" in doubtful.error["message"]
    assert not doubtful.requests


async def test_what_is_refused_ends_the_connection_and_the_rest_is_not_read():
    front = Front().feed(b"BREW / HTTP/1.1\r\n", POST)
    assert front.statuses == [400]
    assert front.error["code"] == "invalid_request"
    assert front.error["query_id"]
    assert front.transport.ended
    assert not front.requests


@pytest.mark.parametrize("pieces", [(GET + GET,), (GET + b"G",), (POST + b"x",)])
async def test_a_second_request_in_the_same_bytes_is_refused_and_neither_is_begun(pieces):
    front = Front(hold=True).feed(*pieces)
    assert front.statuses == [400]
    assert not front.requests


async def test_bytes_before_the_answer_cancel_the_request_and_end_the_connection():
    front = Front(hold=True).feed(GET, b"G")
    assert front.statuses == [400]
    assert "one at a time" in front.error["message"]
    assert front.cancelled == 1
    front.respond(Response(200, b"{}"))
    assert front.statuses == [400]


async def test_an_empty_line_before_a_request_is_allowed():
    assert Front().feed(b"\r\n" + GET).statuses == [200]


LIMITS = FrontLimits(max_head_bytes=200, max_fields=4, max_body_bytes=10)
TOO_LARGE = {
    "head that never ends": b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 200,
    "head": b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 200 + b"\r\n\r\n",
    "fields": b"GET / HTTP/1.1\r\nHost: a\r\na: 1\r\nb: 1\r\nc: 1\r\nd: 1\r\n\r\n",
    "announced body": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n",
    "chunked body": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhellou\r\n6\r\nhellou\r\n",
}


@pytest.mark.parametrize("message", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_what_is_too_large_is_answered_so(message):
    front = Front(limits=LIMITS).feed(message)
    assert front.statuses == [413]
    assert front.error["code"] == "too_large"
    assert not front.requests


async def test_a_head_within_its_limit_may_come_with_a_body_beyond_it():
    limits = FrontLimits(max_head_bytes=100, max_body_bytes=500)
    message = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400\r\n\r\n" + b"x" * 400
    assert Front(limits=limits).feed(message).statuses == [200]


async def test_new_limits_hold_for_connections_that_are_open():
    front = Front().feed(POST)
    front.server.set_limits(FrontLimits(max_body_bytes=4))
    assert front.feed(POST).statuses == [200, 413]


async def test_a_body_is_asked_for_when_the_caller_waits_for_that():
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    front = Front().feed(head)
    assert front.transport.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    front.feed(b"hi")
    assert front.statuses == [100, 200]


async def test_a_body_that_is_too_large_is_not_asked_for():
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n"
    assert Front(limits=LIMITS).feed(head).statuses == [413]


@pytest.mark.parametrize(
    "message",
    [b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"],
)
async def test_a_caller_who_wants_the_connection_closed_gets_that(message):
    front = Front().feed(message)
    assert front.statuses == [200]
    assert b"connection: close\r\n" in front.transport.written
    assert front.transport.closed


async def test_a_caller_who_leaves_cancels_the_request():
    front = Front(hold=True).feed(GET)
    front.connection.connection_lost(None)
    assert front.cancelled == 1
    front.respond(Response(200, b"{}"))
    assert front.transport.written == b""


async def test_a_caller_who_leaves_after_the_answer_cancels_nothing():
    front = Front(hold=True).feed(GET)
    front.respond(Response(200, b"{}"))
    front.connection.connection_lost(None)
    assert front.cancelled == 0


async def test_a_fault_of_a_handler_is_answered_as_internal(caplog):
    def fail(request, respond):
        raise ZeroDivisionError

    front = Front()
    front.server.handler = fail
    front.feed(GET)
    assert front.statuses == [500]
    assert front.error["code"] == "internal"
    assert "ZeroDivisionError" in caplog.text
    assert "ZeroDivision" not in front.error["message"]


async def test_slow_heads_and_bodies_are_answered_and_idle_connections_cut():
    limits = FrontLimits(idle_seconds=5, head_seconds=1, body_seconds=2, linger_seconds=1)
    idle, head, body = Front(limits=limits), Front(limits=limits), Front(limits=limits)
    head.feed(b"GET / HT")
    body.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh")
    for seconds in (0.9, 0.2):
        for front in (idle, head, body):
            front.connection.grow_older(seconds)
        head.feed(b"T"[:0])
    assert head.statuses == [400]
    assert "the rest of the head" in head.error["message"]
    assert body.statuses == []
    body.connection.grow_older(1)
    assert "the rest of the body" in body.error["message"]
    assert not idle.transport.aborted
    idle.connection.grow_older(5)
    assert idle.transport.aborted
    assert idle.statuses == []
    head.connection.grow_older(2)
    assert head.transport.aborted


async def test_trickling_bytes_do_not_renew_the_time_for_a_head():
    front = Front(limits=FrontLimits(head_seconds=1))
    for byte in b"GET / HTTP":
        front.feed(bytes([byte]))
        front.connection.grow_older(0.15)
    assert front.statuses == [400]


async def test_an_answer_that_never_comes_is_ended_as_internal():
    front = Front(limits=FrontLimits(answer_seconds=1), hold=True).feed(GET)
    front.connection.grow_older(1.1)
    assert front.statuses == [500]
    assert front.cancelled == 1


async def test_draining_closes_idle_connections_and_lets_requests_finish():
    busy = Front(hold=True).feed(GET)
    idle = Connection(busy.server)
    idle_transport = FakeTransport()
    idle.connection_made(idle_transport)
    busy.server.draining = True
    idle.drain()
    busy.connection.drain()
    assert idle_transport.closed
    assert not busy.transport.closed
    busy.respond(Response(200, b"{}"))
    assert busy.statuses == [200]
    assert b"connection: close\r\n" in busy.transport.written
    assert busy.transport.closed


async def test_a_drain_cuts_what_does_not_finish_in_time():
    front = Front(hold=True).feed(GET)
    await front.server.drain(0.01)
    assert front.transport.aborted


async def test_connections_beyond_the_limit_are_cut():
    front = Front(limits=FrontLimits(max_connections=1))
    second = Connection(front.server)
    transport = FakeTransport()
    second.connection_made(transport)
    assert transport.aborted
    second.connection_lost(None)
    front.feed(GET)
    assert front.statuses == [200]


async def test_refused_connections_linger_without_reading():
    front = Front().feed(b"\x00")
    assert front.connection.phase is Phase.LINGER
    written = front.transport.written
    front.feed(POST)
    assert front.transport.written == written


CASES = load_corpus()


def test_the_corpus_is_large_and_its_names_are_unique():
    assert len(CASES) >= 50
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_the_corpus_byte_by_byte_while_answers_take_their_time(case):
    front = Front(hold=True).feed(*(case.raw[n : n + 1] for n in range(len(case.raw))))
    if case.status == 200:
        assert [request.target.decode() for request in front.requests] == list(case.seen)
        assert front.statuses == []
    else:
        assert front.statuses == [case.status]
        assert front.cancelled == len(front.requests) <= 1
        assert front.transport.ended


@given(st.sampled_from(CASES), st.integers(0, 400), st.binary(max_size=4), st.integers(0, 4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_bytes_whatsoever_get_more_than_one_answer_or_break_the_front(case, position, inserted, removed):
    raw = case.raw[:position] + inserted + case.raw[position + removed :]
    front = Front(hold=True).feed(raw)
    assert front.statuses in ([], [400], [413], [100], [100, 400])
    assert len(front.requests) <= 1
    if front.statuses and front.statuses != [100]:
        assert front.transport.ended
        assert front.cancelled == len(front.requests)
