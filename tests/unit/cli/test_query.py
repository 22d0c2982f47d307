"""An answer as a person reads it, and refusals in the server's own words."""

import pytest

from tidegate_cli.query import QueryError, Question, ask, render

RESULT = {
    "title": "Leave",
    "document_id": "leave.md",
    "location": {"start": 12, "end": 64},
    "score": 0.8312,
    "score_kind": "fused",
    "content": "Everybody has\n25 days " + "of leave " * 100,
}


def test_chunks_show_their_source_and_the_release_that_answered() -> None:
    text = render(
        {
            "release": "rel-1",
            "arm": "stable",
            "route": {"rule": "stable"},
            "results": [{**RESULT, "scores": {"bm25": 7.1, "dense": 0.71}}],
            "degraded": [{"node": "dense", "reason": "error", "after_ms": 3.0}],
            "timings_ms": {"total": 9.44},
        }
    )
    lines = text.splitlines()
    assert lines[0] == "1. Leave  [leave.md:12-64]  fused 0.831"
    assert lines[1] == "   bm25 7.1000  dense 0.7100"
    assert "Everybody has 25 days" in lines[2]
    assert lines[-2] == "degraded: dense (error after 3 ms)"
    assert lines[-1] == "-- rel-1 (stable by rule stable), 9.4 ms"


def test_an_empty_answer_says_so() -> None:
    assert render({"release": "rel-1", "arm": "stable", "results": []}).startswith("nothing found")


def test_only_http_is_spoken() -> None:
    with pytest.raises(QueryError, match="must begin with http"):
        ask(Question("q", url="file:///etc/passwd"))
