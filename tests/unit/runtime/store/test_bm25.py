"""Scores of the lexical leg, by hand and against what they are defined by."""

import math
from pathlib import Path

import numpy as np
import pytest
from tests.unit.runtime.store.samples import PUBLIC, make_document, make_shape

from tidegate_runtime.ports import IndexSnapshot, LexicalQuery, Permission
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter


def snapshot_of(folder: Path, contents: list[str], *, deleted: list[str] | None = None) -> IndexSnapshot:
    writer = EmbeddedWriter.open(folder, revision="r", shape=make_shape())
    documents = [make_document(f"{i}", [content]) for i, content in enumerate(contents)]
    gone = [make_document(f"gone{i}", [content]) for i, content in enumerate(deleted or [])]
    writer.commit(upserts=documents + gone, rules=PUBLIC)
    writer.commit(deletes=[document.key for document in gone])
    writer.mark_ready(dense=True)
    return EmbeddedReader.open(folder).snapshot()


def scores_of(snapshot: IndexSnapshot, query: LexicalQuery) -> dict[str, float]:
    found = snapshot.lexical(query, snapshot.select(Permission(), None), top_k=50)
    return {
        chunk.document_id: score
        for chunk, score in zip(snapshot.chunks(found.rows), found.scores.tolist(), strict=True)
    }


def test_a_score_is_the_textbook_s(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump pump valve", "valve", "gasket seal ring"])
    idf = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 3 / (7 / 3)))
    assert scores_of(snapshot, snapshot.analyse("pump")) == {"0": pytest.approx(expected, abs=1e-9)}


def test_statistics_are_those_of_live_documents(tmp_path: Path) -> None:
    alone = snapshot_of(tmp_path / "alone", ["pump valve", "valve seal"])
    with_dead = snapshot_of(tmp_path / "dead", ["pump valve", "valve seal"], deleted=["pump pump ring " * 9, "pump"])
    query = alone.analyse("pump valve")
    assert scores_of(alone, query) == scores_of(with_dead, query)


def test_each_occurrence_in_a_query_counts(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump valve", "valve seal", "ring"])
    once, twice = snapshot.analyse("pump"), snapshot.analyse("pump pumps")
    assert twice == LexicalQuery(terms=("pump",), counts=(2,))
    assert scores_of(snapshot, twice)["0"] == 2 * scores_of(snapshot, once)["0"]


def test_rows_that_match_nothing_are_left_out(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump valve", "seal"])
    assert set(scores_of(snapshot, snapshot.analyse("pump"))) == {"0"}
    assert scores_of(snapshot, snapshot.analyse("unknown words only")) == {}
    assert scores_of(snapshot, snapshot.analyse("the of and")) == {}


def test_title_and_heading_are_found_too(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape())
    writer.commit(upserts=[make_document("a", ["text"], title="Gasket"), make_document("b", ["text"])], rules=PUBLIC)
    writer.mark_ready(dense=True)
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    assert set(scores_of(snapshot, snapshot.analyse("gaskets"))) == {"a"}


def test_ties_are_ordered_by_chunk_id_whatever_the_cut(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump"] * 300 + ["valve"] * 3000)
    query, selection = snapshot.analyse("pump"), snapshot.select(Permission(), None)
    every = snapshot.chunk_ids(snapshot.lexical(query, selection, top_k=300).rows)
    assert every == sorted(every)
    for top_k in (1, 7, 50, 299):
        assert snapshot.chunk_ids(snapshot.lexical(query, selection, top_k=top_k).rows) == every[:top_k]


def test_a_cut_keeps_exactly_the_best(tmp_path: Path) -> None:
    dice = np.random.default_rng(5)
    contents = [
        " ".join(dice.choice(["pump", "valve", "seal", "x", "y"], size=dice.integers(1, 30))) for _ in range(3000)
    ]
    snapshot = snapshot_of(tmp_path, contents)
    query, selection = snapshot.analyse("pump valve seal"), snapshot.select(Permission(), None)
    every = snapshot.lexical(query, selection, top_k=3000)
    scores = every.scores.tolist()
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    for top_k in (1, 10, 50, 500):
        best = snapshot.lexical(query, selection, top_k=top_k)
        assert best.rows.tolist() == every.rows[:top_k].tolist()
        assert best.scores.tobytes() == every.scores[:top_k].tobytes()


def test_coverage_is_the_share_of_the_query_s_idf_mass(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump valve", "valve", "seal"])
    rows = np.array([0, 1, 2])
    pump, valve = (math.log(1 + (3 - df + 0.5) / (df + 0.5)) for df in (1, 2))
    unknown = math.log(1 + 3.5 / 0.5)
    covered = snapshot.idf_coverage(snapshot.analyse("valve pump pump"), rows).tolist()
    assert covered == pytest.approx([1, valve / (pump + valve), 0], abs=1e-9)
    covered = snapshot.idf_coverage(snapshot.analyse("pump unheard"), rows).tolist()
    assert covered == pytest.approx([pump / (pump + unknown), 0, 0], abs=1e-9)
    assert snapshot.idf_coverage(snapshot.analyse("the"), rows).tolist() == [0, 0, 0]


def test_scores_of_given_rows_are_those_of_the_leg(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump valve", "seal", "valve valve"])
    query = snapshot.analyse("valve pump")
    found = snapshot.lexical(query, snapshot.select(Permission(), None), top_k=9)
    rows = np.array([2, 1, 0, 2])
    expected = dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
    assert snapshot.lexical_scores(query, rows).tolist() == [expected.get(row, 0.0) for row in rows.tolist()]


def test_a_count_that_a_small_integer_cannot_hold_is_kept(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, ["pump " * 70_000, "pump valve"])
    assert set(scores_of(snapshot, snapshot.analyse("pump"))) == {"0", "1"}
