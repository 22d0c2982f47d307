"""Revisions as folders, and a look inside them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate_api.config import RevisionConfig
from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.indexer.proof import MAX_SAMPLE, prove
from tidegate_runtime.indexer.revisions import EmbeddedRevisions
from tidegate_runtime.models.fake import FakeEmbedder
from tidegate_runtime.ports import ChunkRecord, DocumentKey, DocumentRecord, FloatVector, SourceRules

TEXTS = [f"alpha{number} beta{number} gamma{number} delta{number}" for number in range(120)]


def record(number: int, vector: FloatVector | None, *, text: str | None = None) -> DocumentRecord:
    content = TEXTS[number] if text is None else text
    chunk = ChunkRecord(ordinal=0, start=0, end=len(content), content=content, heading="", vector=vector)
    return DocumentRecord(key=DocumentKey("docs", f"{number}.md"), content_hash="h", title="", chunks=(chunk,))


@pytest.fixture
def revision(shape: Any) -> RevisionConfig:
    return RevisionConfig(name="kb-1", shape=shape())


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedRevisions:
    return EmbeddedRevisions(tmp_path)


def stored(store: EmbeddedRevisions, revision: RevisionConfig, records: Sequence[DocumentRecord]) -> None:
    writer = store.open(revision)
    writer.commit(upserts=records, rules={"docs": SourceRules(tenants=("nobody",), metadata={})})
    writer.close()


def good_records() -> list[DocumentRecord]:
    return [record(number, vector) for number, vector in enumerate(FakeEmbedder().embed_passages(TEXTS))]


def proof(store: EmbeddedRevisions, *, language: Any = "en", chunks: int = len(TEXTS)) -> str | None:
    return prove(store.inspect("kb-1"), language=language, embedder=FakeEmbedder(), chunks=chunks)


def test_a_dropped_revision_is_gone_and_dropping_it_again_is_fine(
    store: EmbeddedRevisions, revision: RevisionConfig, tmp_path: Path
) -> None:
    store.open(revision).close()

    store.drop("kb-1")
    store.drop("kb-1")

    assert list(tmp_path.iterdir()) == []


def test_what_an_interrupted_drop_left_is_swept(
    store: EmbeddedRevisions, revision: RevisionConfig, tmp_path: Path
) -> None:
    store.open(revision).close()
    (tmp_path / "kb-1").rename(tmp_path / ".dropped-kb-1")

    store.sweep()

    assert list(tmp_path.iterdir()) == []


def test_a_revision_can_be_dropped_over_the_leftover_of_an_earlier_one(
    store: EmbeddedRevisions, revision: RevisionConfig, tmp_path: Path
) -> None:
    (tmp_path / ".dropped-kb-1").mkdir()
    store.open(revision).close()

    store.drop("kb-1")

    assert list(tmp_path.iterdir()) == []


def test_a_writer_says_whether_its_revision_is_ready(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    writer = store.open(revision)
    assert (writer.ready, writer.dense) == (False, False)

    writer.mark_ready(dense=True)
    writer.close()

    again = store.open(revision)
    assert (again.ready, again.dense) == (True, True)
    again.close()


def test_an_inspection_sees_every_live_row_whoever_may_read_it(
    store: EmbeddedRevisions, revision: RevisionConfig
) -> None:
    stored(store, revision, good_records())
    writer = store.open(revision)
    writer.commit(deletes=[DocumentKey("docs", "3.md")])
    writer.close()

    inspection = store.inspect("kb-1")

    assert len(list(inspection.contents())) == len(TEXTS) - 1
    assert all(key.document_id != "3.md" for key, _ in inspection.contents())
    sample = inspection.sample(10)
    assert [chunk.content in TEXTS for chunk in sample] == [True] * 10
    assert [chunk.row for chunk in store.inspect("kb-1").sample(10)] == [chunk.row for chunk in sample]


def test_an_inspection_of_nothing_is_an_error(store: EmbeddedRevisions) -> None:
    with pytest.raises(RevisionUnavailableError, match="no revision is here yet"):
        store.inspect("kb-1")


def test_an_inspection_of_a_damaged_revision_is_an_error(
    store: EmbeddedRevisions, revision: RevisionConfig, tmp_path: Path
) -> None:
    stored(store, revision, good_records())
    next((tmp_path / "kb-1").glob("*.segment")).unlink()

    with pytest.raises(RevisionUnavailableError, match="which is missing; remove the folder"):
        store.inspect("kb-1")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sound_revision_is_proven(store: EmbeddedRevisions, revision: RevisionConfig, language: str) -> None:
    stored(store, revision, good_records())

    assert proof(store, language=language) is None


def test_an_empty_revision_is_proven(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    stored(store, revision, [])

    assert proof(store, chunks=0) is None


def test_equal_texts_do_not_fail_a_proof(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    vector = FakeEmbedder().embed_passages(["the same everywhere"])[0]
    stored(store, revision, [record(number, vector, text="the same everywhere") for number in range(120)])

    assert proof(store) is None


def test_shifted_vectors_are_found_out(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    vectors = np.roll(FakeEmbedder().embed_passages(TEXTS), 1, axis=0)
    stored(store, revision, [record(number, vector) for number, vector in enumerate(vectors)])

    assert "not found by its own vector" in str(proof(store))


def test_a_missing_vector_is_found_out(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    stored(store, revision, [*good_records()[1:], record(0, None)])

    assert "no usable vector" in str(proof(store))


def test_without_a_dense_leg_vectors_are_not_asked_for(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    stored(store, revision, [record(0, None)])

    assert prove(store.inspect("kb-1"), language="en", embedder=None, chunks=1) is None


def test_an_encoder_that_fails_now_is_found_out(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    class Broken(FakeEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> FloatVector:
            return np.full((len(texts), 64), np.nan, dtype=np.float32)

    stored(store, revision, good_records())

    problem = prove(store.inspect("kb-1"), language="en", embedder=Broken(), chunks=len(TEXTS))

    assert "check its device" in str(problem)


def test_a_proof_embeds_a_small_share_of_the_chunks(store: EmbeddedRevisions, revision: RevisionConfig) -> None:
    embedded: list[str] = []

    class Counting(FakeEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> FloatVector:
            embedded.extend(texts)
            return super().embed_passages(texts)

    stored(store, revision, good_records())
    prove(store.inspect("kb-1"), language="en", embedder=Counting(), chunks=len(TEXTS))
    assert len(embedded) == 2

    prove(store.inspect("kb-1"), language="en", embedder=Counting(), chunks=100_000)
    assert len(embedded) == 2 + MAX_SAMPLE
