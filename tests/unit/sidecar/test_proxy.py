"""The path of a request, with a runtime that the test plays."""

import asyncio
import json
import random
from typing import Any

import pytest
from tests.unit.sidecar.builders import config, key_entry, table
from tests.unit.sidecar.fakes import FakeSearcher

from tidegate_api.config import HeaderMatch, LimitsConfig, PinConfig, RuleConfig
from tidegate_api.wire import DEFAULT_TOP_K, ErrorCode, SearchRequest
from tidegate_sidecar.answers import Response
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.http1 import Request
from tidegate_sidecar.identity import Identity, build_identity
from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.metrics import Recorder
from tidegate_sidecar.policy import compile_table
from tidegate_sidecar.ports import RuntimeReply
from tidegate_sidecar.proxy import Retrieval
from tidegate_sidecar.settings import Settings

ANONYMOUS = build_identity(anonymous=True, key_entries=None, proxy_secret=None, trusts_proxy=False)


def keyed(**entries: bytes) -> Identity:
    return build_identity(anonymous=False, key_entries=entries, proxy_secret=None, trusts_proxy=False)


class Path:
    """The handler with its surroundings; answers are collected in order."""

    def __init__(self, tables=None, *, identity: Identity = ANONYMOUS, limits: LimitsConfig | None = None) -> None:
        self.searcher = FakeSearcher()
        self.in_flight = InFlight()
        self.recorder = Recorder("handbook")
        self.index = compile_table(tables or table("rel-a", version=41))
        self.settings = Settings(config(limits=limits), "hash", identity)
        self.unavailable = 0
        self.answers: list[Response] = []
        self.retrieval = Retrieval(
            settings=lambda: self.settings,
            table=lambda: self.index,
            searcher=lambda _: self.searcher,
            in_flight=self.in_flight,
            recorder=self.recorder,
            on_unavailable=self.note_unavailable,
        )

    def note_unavailable(self) -> None:
        self.unavailable += 1

    def ask(self, headers: dict[str, str] | None = None, /, **members: object):
        said = {name.encode(): value.encode() for name, value in (headers or {}).items()}
        body = json.dumps({"query": "how many days of leave", **members}).encode()
        return self.retrieval(Request(b"POST", b"/v1/retrieve", said, body), self.answers.append)

    @property
    def search(self):
        return self.searcher.searches[-1]

    @property
    def answer(self) -> dict[str, Any]:
        return json.loads(self.answers[-1].body)

    @property
    def fields(self) -> dict[str, str]:
        return dict(line.split(": ") for line in self.answers[-1].fields.decode().splitlines())

    def counted(self, name: str) -> list[str]:
        lines = self.recorder.exposition().decode().splitlines()
        return [line for line in lines if line.startswith(name + "{")]


async def test_an_answer_is_the_runtimes_with_the_route_in_front():
    path = Path()
    path.ask()
    path.search.answer()
    answer = path.answer
    assert list(answer) == ["query_id", "release", "arm", "route", "results", "degraded", "timings_ms"]
    assert answer["query_id"] == path.search.body["query_id"]
    assert (answer["release"], answer["arm"]) == ("rel-a", "stable")
    assert answer["route"] == {"rule": "stable", "unit": "request", "bucket": None, "table": 41}
    assert answer["results"] == [{"content": "how many days of leave"}]
    assert path.fields == {
        "x-tidegate-release": "rel-a",
        "x-tidegate-arm": "stable",
        "x-tidegate-rule": "stable",
        "x-tidegate-table": "41",
    }


async def test_the_runtime_is_asked_for_what_the_caller_may_see():
    path = Path(identity=keyed(web=key_entry("k", "acme", groups=["staff"], scopes=["query", "explain"])))
    filters = {"type": "eq", "key": "year", "value": 2026}
    path.ask({"authorization": "Bearer k"}, knowledge_bases=["handbook"], top_k=3, filters=filters, explain=True)
    asked = path.search.body
    assert SearchRequest.model_validate(asked, strict=True).model_dump() == asked
    assert asked["scope"] == {"tenant": "acme", "groups": ["staff"]}
    assert asked["release"] == "rel-a"
    assert (asked["knowledge_bases"], asked["top_k"], asked["filters"], asked["explain"]) == (
        ["handbook"],
        3,
        filters,
        True,
    )


@pytest.mark.parametrize(("limit", "wanted"), [(3, 3), (100, DEFAULT_TOP_K)], ids=["limit", "default"])
async def test_without_a_top_k_the_runtime_is_asked_for_the_default_within_the_pipelines_limit(limit, wanted):
    path = Path(limits=LimitsConfig(max_top_k=limit))
    path.ask()
    assert path.search.body["top_k"] == wanted


async def test_a_filter_with_a_number_beyond_64_bits_is_the_callers_error():
    path = Path()
    path.ask(filters={"type": "eq", "key": "year", "value": 2**64})
    assert path.answer["error"]["code"] == "invalid_request"
    assert "needs more than 64 bits; write it as a text" in path.answer["error"]["message"]
    assert path.searcher.searches == []


DEADLINES = {"none": ({}, 10_000), "shorter": ({"deadline_ms": 300}, 300), "longer": ({"deadline_ms": 60_000}, 10_000)}


@pytest.mark.parametrize(("members", "allowed_ms"), DEADLINES.values(), ids=DEADLINES)
async def test_the_deadline_is_the_callers_within_the_pipelines_and_the_runtime_has_a_little_less(members, allowed_ms):
    path = Path()
    before = asyncio.get_running_loop().time()
    path.ask(**members)
    assert path.search.body["deadline_ms"] == allowed_ms - 5
    assert 0 <= path.search.deadline - before - allowed_ms / 1000 < 0.5


async def test_a_session_in_the_body_wins_over_the_header():
    path = Path(table("rel-a", "rel-b", candidate="rel-b", share=50))
    routes = []
    for headers, members in (
        ({"x-tidegate-session": "one"}, {"session_id": "two"}),
        ({"x-tidegate-session": "two"}, {}),
        ({}, {"session_id": "two"}),
    ):
        path.ask(headers, **members)
        path.search.answer()
        routes.append(path.answer["route"])
    assert routes[0]["unit"] == "session"
    assert routes[0] == routes[1] == routes[2]


async def test_rules_see_the_headers_they_name():
    rule = RuleConfig(name="beta", headers=[HeaderMatch(name="X-Beta", exact="1")], release="rel-b")
    path = Path(table("rel-a", "rel-b", rules=[rule]))
    for headers, expected in (({"x-beta": "1"}, "beta"), ({"x-beta": "2"}, "stable"), ({}, "stable")):
        path.ask(headers)
        path.search.answer()
        assert path.fields["x-tidegate-rule"] == expected


# --- refusals ------------------------------------------------------------------------------------


def refused(path: Path) -> tuple[int, str]:
    assert not path.searcher.searches
    error = path.answer["error"]
    assert error["query_id"]
    return path.answers[-1].status, error["code"]


async def test_without_a_credential_nothing_is_asked():
    path = Path(identity=keyed(web=key_entry("k", "acme")))
    assert path.ask() is None
    assert refused(path) == (401, "unauthenticated")
    assert b"www-authenticate: Bearer\r\n" in path.answers[-1].fields


SCOPES = {
    "explain": ({}, {"explain": True}, ["query"]),
    "force": ({"x-tidegate-release": "rel-a"}, {}, ["query"]),
    "query": ({}, {}, ["feedback"]),
}


@pytest.mark.parametrize(("headers", "members", "scopes"), SCOPES.values(), ids=SCOPES)
async def test_what_needs_a_scope_is_forbidden_without_it(headers, members, scopes):
    path = Path(identity=keyed(web=key_entry("k", "acme", scopes=scopes)))
    path.ask({"authorization": "Bearer k", **headers}, **members)
    assert refused(path) == (403, "forbidden")


async def test_a_malformed_body_is_refused_after_the_caller_is_known():
    path = Path()
    path.ask(top_k=-1)
    assert refused(path) == (400, "invalid_request")


async def test_no_table_is_an_error_of_its_own():
    path = Path()

    def missing():
        raise RequestError(ErrorCode.RELEASE_UNAVAILABLE, "no routing table yet", retry_after_seconds=1)

    path.retrieval._table = missing
    path.ask()
    assert refused(path) == (503, "release_unavailable")
    assert path.fields == {"retry-after": "1"}


async def test_more_than_the_concurrent_requests_allowed_are_refused_until_one_ends():
    path = Path(limits=LimitsConfig(max_concurrent=1))
    path.ask()
    first = path.search
    path.ask()
    assert (path.answers[-1].status, path.answer["error"]["code"]) == (503, "overloaded")
    assert path.fields["retry-after"] == "1"
    assert len(path.searcher.searches) == 1
    first.answer()
    path.ask()
    assert len(path.searcher.searches) == 2


async def test_a_tenant_over_its_rate_is_told_when_to_come_back():
    path = Path(limits=LimitsConfig(requests_per_second_per_tenant=0.5))
    path.ask()
    path.ask()
    assert (path.answers[-1].status, path.answer["error"]["code"]) == (429, "rate_limited")
    assert path.fields == {"retry-after": "2"}


# --- ends ----------------------------------------------------------------------------------------

RUNTIME_ERRORS = {
    "passed on": (400, "invalid_request", "filter key year is not declared", "filter key year is not declared"),
    "deadline": (504, "deadline_exceeded", "no time left", "no time left"),
    "internal": (500, "internal", "KeyError in /srv/index", "the runtime failed; its log says why"),
    "a code that is not ours": (418, "teapot", "short and stout", "the runtime failed; its log says why"),
}


@pytest.mark.parametrize(("status", "code", "message", "shown"), RUNTIME_ERRORS.values(), ids=RUNTIME_ERRORS)
async def test_errors_of_the_runtime_are_passed_on_without_its_inside(status, code, message, shown, caplog):
    path = Path()
    path.ask()
    path.search.refuse(status, code, message)
    error = path.answer["error"]
    assert error["message"] == shown
    assert error["code"] == ("internal" if code == "teapot" else code)
    assert error["query_id"] == path.search.body["query_id"]
    assert [record.query_id for record in caplog.records] == (
        [error["query_id"]] if error["code"] == "internal" else []
    )
    assert path.fields["x-tidegate-release"] == "rel-a"
    assert path.in_flight.of("rel-a") == 0


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"oops"])
async def test_an_answer_that_is_no_object_with_members_is_an_internal_error(body):
    path = Path()
    path.ask()
    path.search.done(RuntimeReply(200, {}, body))
    assert (path.answers[-1].status, path.answer["error"]["code"]) == (500, "internal")


async def test_an_unavailable_runtime_wakes_whoever_keeps_its_releases():
    path = Path()
    path.ask()
    path.search.done(RequestError(ErrorCode.RELEASE_UNAVAILABLE, "gone", retry_after_seconds=1))
    assert path.unavailable == 1
    assert path.fields["retry-after"] == "1"
    path.ask()
    path.search.answer()
    assert path.unavailable == 1


async def test_a_caller_who_leaves_cancels_the_search_and_frees_its_place():
    path = Path(limits=LimitsConfig(max_concurrent=1))
    leave = path.ask()
    assert leave is not None
    leave()
    assert path.search.cancelled
    assert path.in_flight.of("rel-a") == 0
    assert path.answers == []
    assert path.recorder.by_release == {"rel-a": {"cancelled": 1}}


async def test_a_running_request_keeps_its_release_when_the_table_changes():
    path = Path(table("rel-a", version=1))
    path.ask()
    first = path.search
    path.index = compile_table(table("rel-b", version=2))
    path.ask()
    path.search.answer()
    assert (path.answer["release"], path.fields["x-tidegate-table"]) == ("rel-b", "2")
    first.answer()
    assert (path.answer["release"], path.fields["x-tidegate-table"]) == ("rel-a", "1")


async def test_every_end_is_counted_without_tenants_or_queries():
    path = Path(table("rel-a", "rel-b", pins=[PinConfig(tenants=["bank"], release="rel-b")]))
    path.ask()
    path.search.answer(results=0, degraded="dense=timeout,ranked=error")
    path.ask(top_k=0)
    path.ask()
    path.search.refuse(504, "deadline_exceeded", "late")
    assert path.counted("tidegate_requests_total") == [
        'tidegate_requests_total{arm="stable",outcome="ok",pipeline="handbook"} 1.0',
        'tidegate_requests_total{arm="none",outcome="invalid_request",pipeline="handbook"} 1.0',
        'tidegate_requests_total{arm="stable",outcome="deadline_exceeded",pipeline="handbook"} 1.0',
    ]
    assert path.counted("tidegate_degraded_total") == [
        'tidegate_degraded_total{node="dense",reason="timeout"} 1.0',
        'tidegate_degraded_total{node="ranked",reason="error"} 1.0',
    ]
    assert path.counted("tidegate_no_hit_total") == ['tidegate_no_hit_total{arm="stable"} 1.0']
    assert path.counted("tidegate_request_seconds_count")[0].endswith(" 2.0")
    assert path.recorder.by_release == {"rel-a": {"ok": 1, "deadline_exceeded": 1}}


async def test_two_hundred_requests_of_twenty_tenants_never_meet():
    entries = {f"key-{n}": key_entry(f"key-{n}", f"tenant-{n}") for n in range(20)}
    pins = [PinConfig(tenants=[f"tenant-{n}" for n in range(0, 20, 2)], release="rel-b")]
    path = Path(table("rel-a", "rel-b", pins=pins), identity=keyed(**entries), limits=LimitsConfig(max_concurrent=200))
    answers: dict[str, Response] = {}
    for number in range(200):
        tenant, token = number % 20, f"token-{number}"
        body = json.dumps({"query": token}).encode()
        said = {b"authorization": f"Bearer key-{tenant}".encode()}
        path.retrieval(
            Request(b"POST", b"/v1/retrieve", said, body), lambda answer, token=token: answers.update({token: answer})
        )
    searches = list(path.searcher.searches)
    random.shuffle(searches)
    for search in searches:
        search.answer()
    for number in range(200):
        answer = json.loads(answers[f"token-{number}"].body)
        search = path.searcher.searches[number]
        assert answer["results"] == [{"content": f"token-{number}"}]
        assert answer["query_id"] == search.body["query_id"]
        assert search.body["scope"]["tenant"] == f"tenant-{number % 20}"
        assert answer["release"] == search.body["release"] == ("rel-a" if number % 2 else "rel-b")
        assert f"x-tidegate-release: {answer['release']}\r\n".encode() in answers[f"token-{number}"].fields
    assert len({json.loads(answer.body)["query_id"] for answer in answers.values()}) == 200
