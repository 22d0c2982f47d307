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
}
SCALAR = "must be a text, a number, true or false"
INVALID_FILTERS = {
    "no object": ("year", "member filters: 'year': input should be an object"),
    "no type": ({"key": "a"}, "member filters.type is missing; add it"),
    "operator": ({"type": "like"}, "member filters.type: 'like': must be one of 'eq', 'in', 'and', 'or'; correct it"),
    "no value": ({"type": "eq", "key": "a"}, "member filters.value is missing; add it"),
    "more": ({"type": "eq", "key": "a", "value": 1, "z": 2}, "unknown member 'filters.z'; leave it out"),
    "key": ({"type": "eq", "key": 5, "value": 1}, "member filters.key: 5: input should be a valid string"),
    "object": ({"type": "eq", "key": "a", "value": {}}, f"member filters.value: {{}}: {SCALAR}; correct it"),
    "null": ({"type": "eq", "key": "a", "value": None}, f"member filters.value: null: {SCALAR}; correct it"),
    "list": ({"type": "eq", "key": "a", "value": [1]}, f"member filters.value: [1]: {SCALAR}; for several use `in`"),
    "no list": ({"type": "in", "key": "a", "value": 1}, "member filters.value: 1: input should be a valid array"),
    "item": ({"type": "in", "key": "a", "value": [1, [2]]}, f"member filters.value.1: [2]: {SCALAR}; correct it"),
    "NaN": ({"type": "eq", "key": "a", "value": float("nan")}, f"member filters.value: NaN: {SCALAR}; correct it"),
}


def nested(filters: object) -> object:
    """The same fault two levels down."""
    return {"type": "and", "filters": [{"type": "eq", "key": "a", "value": 1}, {"type": "or", "filters": [filters]}]}


@pytest.mark.parametrize(("filters", "message"), INVALID_FILTERS.values(), ids=INVALID_FILTERS)
def test_a_refused_filter_is_named_as_the_caller_wrote_it(filters, message):
    with pytest.raises(RequestError) as refused:
        read_retrieve(body(filters=filters), LIMITS)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.message.startswith(message)
    with pytest.raises(RequestError) as refused:
        read_retrieve(body(filters=nested(filters)), LIMITS)
    assert refused.value.message.startswith(message.replace("filters", "filters.filters.1.filters.0"))


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
