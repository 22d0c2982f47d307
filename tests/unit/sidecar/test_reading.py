"""Bodies of `POST /v1/retrieve`: what is accepted, and what a refusal says."""

import json

import pytest

from tidegate_api.config import LimitsConfig
from tidegate_api.wire import Comparison, ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.reading import read_retrieve

LIMITS = LimitsConfig(max_query_bytes=100, max_top_k=10)


def body(**members: object) -> bytes:
    return json.dumps({"query": "how many days of leave", **members}).encode()


def test_a_request_is_read():
    asked = read_retrieve(body(top_k=10, filters={"type": "eq", "key": "year", "value": 2026}), LIMITS)
    assert asked.top_k == 10
    assert asked.filters == Comparison(type="eq", key="year", value=2026)


def test_a_query_is_measured_in_bytes_not_characters():
    assert read_retrieve(body(query="年" * 33), LIMITS).query == "年" * 33
    with pytest.raises(RequestError, match="query has 102 bytes"):
        read_retrieve(body(query="年" * 34), LIMITS)


INVALID = {
    "no body": (b"", "the body is not JSON"),
    "half a body": (b'{"query": "a', "the body is not JSON"),
    "not UTF-8": (b'{"query": "\xff"}', "the body is not JSON"),
    "half a surrogate": (rb'{"query": "\ud800"}', "the body is not JSON"),
    "something after": (body() + b"x", "the body is not JSON"),
    "very deep": (b'{"query": "a", "filters": ' + b"[" * 100_000, "the body is not JSON"),
    "a list": (b"[]", 'send {"query"'),
    "no query": (b"{}", "member query is missing; add it"),
    "query of another type": (body(query=["a"]), 'member query: ["a"]: input should be a valid string'),
    "empty query": (body(query=""), "member query: ''"),
    "blank query": (body(query=" \n\u3000"), "is empty; ask something"),
    "unknown member": (body(topk=3), "unknown member 'topk'; allowed are query, knowledge_bases, top_k"),
    "top_k too small": (body(top_k=0), "member top_k: 0: input should be greater than or equal to 1"),
    "top_k too large": (body(top_k=11), "top_k 11 is more than 10 (limits.maxTopK)"),
    "top_k of another type": (body(top_k="many"), "member top_k: 'many'"),
    "deadline": (body(deadline_ms=-1), "member deadline_ms: -1"),
    "filter operator": (body(filters={"type": "like"}), "'eq', 'in', 'and', 'or'"),
    "filter without a value": (body(filters={"type": "eq", "key": "a"}), "member filters.eq.value is missing"),
    "filter with more": (body(filters={"type": "eq", "key": "a", "value": 1, "z": 2}), "unknown member 'filters.eq.z'"),
    "a number that JSON lacks": (body(filters={"type": "eq", "key": "a", "value": float("nan")}), "NaN"),
}


@pytest.mark.parametrize(("content", "message"), INVALID.values(), ids=INVALID)
def test_a_refusal_names_the_member_the_value_and_the_next_step(content, message):
    with pytest.raises(RequestError) as refused:
        read_retrieve(content, LIMITS)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert message in refused.value.message


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(RequestError) as refused:
        read_retrieve(body(session_id="x" * 300), LIMITS)
    assert "x" * 63 + "…" in refused.value.message
    assert "x" * 64 not in refused.value.message


def test_a_query_over_its_limit_is_too_large_and_not_repeated():
    with pytest.raises(RequestError) as refused:
        read_retrieve(body(query="x" * 101), LIMITS)
    assert refused.value.code is ErrorCode.TOO_LARGE
    assert "limits.maxQueryBytes" in refused.value.message
    assert "xxx" not in refused.value.message
