"""Scores of the dense leg: integer dot products, exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.runtime.store.samples import DIMENSION, PUBLIC, SCALE, make_document, make_shape, vector_of

from tidegate_runtime.ports import DocumentRecord, FloatVector, IndexSnapshot, Permission
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter
from tidegate_runtime.stores.embedded.quantise import quantise


def snapshot_of(folder: Path, documents: list[DocumentRecord], *, batch: int = 10_000) -> IndexSnapshot:
    writer = EmbeddedWriter.open(folder, revision="r", shape=make_shape())
    for first in range(0, len(documents), batch):
        writer.commit(upserts=documents[first : first + batch], rules=PUBLIC)
    writer.mark_ready(dense=True)
    return EmbeddedReader.open(folder).snapshot()


def without_vector(document: DocumentRecord) -> DocumentRecord:
    return replace(document, chunks=tuple(replace(chunk, vector=None) for chunk in document.chunks))


def with_vector(document: DocumentRecord, vector: FloatVector) -> DocumentRecord:
    return replace(document, chunks=tuple(replace(chunk, vector=vector) for chunk in document.chunks))


def test_levels_are_the_nearest_of_255_and_cut_at_the_scale() -> None:
    vector = np.array([0.8, -0.8, 0.4, 0.0, 0.0031, 2.0, -2.0], dtype=np.float32)
    assert quantise(vector, scale=0.8).tolist() == [127, -127, 64, 0, 0, 127, -127]
    assert quantise(np.zeros(0, dtype=np.float32), scale=0.8).tolist() == []


@pytest.mark.parametrize("batch", [10_000, 700])
def test_the_best_of_thousands_are_exactly_those_of_integer_arithmetic(tmp_path: Path, batch: int) -> None:
    documents = [make_document(f"{i}", [f"text {i}"]) for i in range(3000)]
    snapshot = snapshot_of(tmp_path, documents, batch=batch)
    selection, query = snapshot.select(Permission(), None), vector_of("question")
    vectors = np.stack([vector_of(f"text {i}") for i in range(3000)])
    levels = np.rint(vectors.astype(np.float64) * (127 / SCALE)).clip(-127, 127).astype(np.int64)
    dots = levels @ np.rint(query.astype(np.float64) * (127 / SCALE)).clip(-127, 127).astype(np.int64)
    for top_k in (1, 50, 500, 3000, 5000):
        found = snapshot.dense(query, selection, top_k=top_k)
        expected = np.sort(dots)[::-1][:top_k] * (SCALE / 127) ** 2
        assert found.scores.tobytes() == expected.tobytes()
        shown = [int(chunk.document_id) for chunk in snapshot.chunks(found.rows)]
        assert dots[shown].tolist() == np.sort(dots)[::-1][:top_k].tolist()


def test_chunks_without_a_vector_have_no_dense_score_and_are_found_by_words(tmp_path: Path) -> None:
    documents = [make_document(f"{i}", [f"pump {i}"]) for i in range(20)]
    mixed = [without_vector(document) if i % 2 else document for i, document in enumerate(documents)]
    for batch in (20, 1):  # in one segment, and in segments of their own
        snapshot = snapshot_of(tmp_path / str(batch), mixed, batch=batch)
        selection = snapshot.select(Permission(), None)
        found = snapshot.dense(vector_of("pump"), selection, top_k=50)
        assert {int(chunk.document_id) for chunk in snapshot.chunks(found.rows)} == set(range(0, 20, 2))
        lexical = snapshot.lexical(snapshot.analyse("pump"), selection, top_k=50)
        assert len(lexical.rows) == 20
        scores = snapshot.dense_scores(vector_of("pump"), lexical.rows).tolist()
        assert sum(score == 0 for score in scores) == 10


def test_merging_segments_with_and_without_vectors_keeps_both(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape())
    writer.commit(upserts=[without_vector(make_document("bare", ["pump"]))], rules=PUBLIC)
    writer.commit(upserts=[make_document("full", ["pump"])])
    writer.commit(upserts=[without_vector(make_document("bare2", ["pump"]))])
    writer.compact()
    writer.mark_ready(dense=True)
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    found = snapshot.dense(vector_of("pump"), snapshot.select(Permission(), None), top_k=9)
    assert [chunk.document_id for chunk in snapshot.chunks(found.rows)] == ["full"]


def test_a_revision_without_vectors_answers_by_words(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, [without_vector(make_document("a", ["pump"]))])
    selection = snapshot.select(Permission(), None)
    assert len(snapshot.dense(vector_of("pump"), selection, top_k=5).rows) == 0
    assert len(snapshot.lexical(snapshot.analyse("pump"), selection, top_k=5).rows) == 1


def test_ties_are_ordered_by_chunk_id_whatever_the_cut(tmp_path: Path) -> None:
    same, other = vector_of("same"), vector_of("other")
    documents = [with_vector(make_document(f"{i}", ["x"]), same if i < 300 else other) for i in range(2500)]
    snapshot = snapshot_of(tmp_path, documents, batch=900)
    selection = snapshot.select(Permission(), None)
    every = snapshot.chunk_ids(snapshot.dense(same, selection, top_k=300).rows)
    assert every == sorted(every)
    for top_k in (1, 50, 299):
        assert snapshot.chunk_ids(snapshot.dense(same, selection, top_k=top_k).rows) == every[:top_k]


def test_opposite_directions_score_below_zero_and_are_returned(tmp_path: Path) -> None:
    vector = vector_of("pump")
    snapshot = snapshot_of(tmp_path, [make_document("a", ["pump"])])
    found = snapshot.dense(-vector, snapshot.select(Permission(), None), top_k=5)
    assert found.scores.tolist() == [pytest.approx(-1, abs=0.02)]
    assert vector.shape == (DIMENSION,)
