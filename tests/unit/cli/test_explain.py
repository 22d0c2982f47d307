"""What `kubectl rag explain` shows of a decision and of an answer, and that it needs no cluster for a table in a file."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.test_decision import HALF, INTERNAL, table

from tidegate_cli.decision import Request, replay
from tidegate_cli.explain import decision_text, legs_text
from tidegate_cli.kubectl_rag import main


def result(chunk: str, fused: float, **scores: float) -> dict:
    return {
        "chunk_id": chunk,
        "document_id": f"{chunk}.md",
        "location": {"start": 0, "end": 9},
        "score": fused,
        "score_kind": "fused",
        "scores": scores or None,
    }


ANSWER = {
    "results": [result("a", 0.9, bm25=2.0, dense=0.5), result("b", 0.4, dense=0.7)],
    "degraded": [{"node": "lexical", "reason": "timeout", "after_ms": 300.4}],
    "timings_ms": {"dense": 6.14, "total": 21.4},
    "release": "rel-new",
    "route": {"rule": "percentage", "unit": "user", "bucket": 2508, "table": 41},
}


def test_the_decision_is_told_with_everything_that_was_passed_over() -> None:
    text = decision_text(replay(table(rules=(INTERNAL,)), Request(tenant="globex", user="u-11")))
    assert text.splitlines() == [
        "release     rel-new (candidate)",
        "because     percentage: user u-11 is in bucket 2508; the candidate takes 0-2999 (30 %)",
        "table       41",
        "passed over forced release: no x-tidegate-release was sent",
        "passed over pins: tenant globex is not pinned",
        "passed over rule internal: tenant globex is not among acme, initech, hooli and 1 more",
    ]


def test_rules_pins_stable_and_refusals_are_told_in_words() -> None:
    assert "because     rule half matches; user u-3 is in bucket" in decision_text(
        replay(table(rules=(HALF,)), Request(user="u-3"))
    )
    assert "because     pin: the tenant is pinned to it" in decision_text(replay(table(), Request(tenant="bank-a")))
    alone = decision_text(replay(table(candidate=None), Request(user="u-11")))
    assert "because     stable: nothing else decided, and stable serves everybody else" in alone
    assert decision_text(replay(table(), Request(release="rel-x"))).startswith("refused     header")


def test_a_pod_that_decided_otherwise_is_named_with_the_likely_cause() -> None:
    same = replay(table(), Request(user="u-11"))
    assert "answered by" not in decision_text(same, ANSWER)
    other = decision_text(replay(table(), Request(user="u-1")), ANSWER)
    assert "answered by rel-new by rule percentage, user in bucket 2508, table 41" in other


def test_each_chunk_shows_its_score_and_rank_in_each_leg_and_what_was_skipped() -> None:
    assert legs_text(ANSWER).splitlines() == [
        "#   CHUNK      FUSED    BM25         DENSE",
        "1   a.md:0-9   0.9000   2.0000 (1)   0.5000 (2)",
        "2   b.md:0-9   0.4000   -            0.7000 (1)",
        "(n) = place in that leg among the chunks shown",
        "skipped     node lexical: timeout after 300 ms",
        "took        dense 6.1 ms, total 21.4 ms",
    ]


def test_without_the_scope_the_legs_are_left_out_with_the_reason() -> None:
    text = legs_text({**ANSWER, "results": [result("a", 0.9)], "degraded": []})
    assert "keys with scope `explain` only" in text
    assert "skipped     nothing" in text
    assert legs_text({"results": []}).startswith("nothing found")


def test_a_table_in_a_file_is_replayed_without_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    path = tmp_path / "table.json"
    path.write_text(table(rules=(INTERNAL,)).model_dump_json(by_alias=True))
    arguments = ["explain", "docs", "when is high water", "--table", str(path)]
    assert main([*arguments, "--user", "u-11", "--header", "x-beta=1"]) == 0
    assert "release     rel-new (candidate)" in capsys.readouterr().out
    assert main([*arguments, "--tenant", "acme", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["decision"]["rule"], told["answer"]) == ("internal", None)
    assert main(["explain", "other", "--table", str(path)]) == 1
    assert "the table is of pipeline docs, not of other" in capsys.readouterr().err
    assert main(["explain", "docs", "--table", str(tmp_path / "gone")]) == 1
    assert "No such file" in capsys.readouterr().err
    assert main([*arguments, "--release", "rel-gone"]) == 1


def test_a_header_without_a_value_is_a_usage_error() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["explain", "docs", "--header", "x-beta"])
