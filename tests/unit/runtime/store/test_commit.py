"""What a commit stores, replaces, leaves alone and refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.runtime.store.samples import (
    DIMENSION,
    PUBLIC,
    lexical_hits,
    make_document,
    make_shape,
    vector_of,
    visible_documents,
)

from tidegate_runtime.errors import (
    RevisionUnavailableError,
    StateVersionError,
    UnreadableDocumentError,
    UnusableVectorError,
)
from tidegate_runtime.ports import DocumentKey, DocumentRecord, FloatVector, Permission, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter

SHAPE = make_shape(schema={"year": "number"})


@pytest.fixture
def writer(tmp_path: Path) -> EmbeddedWriter:
    opened = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)
    opened.commit(rules=PUBLIC)
    opened.mark_ready(dense=True)
    return opened


def test_a_commit_that_changes_nothing_is_none(writer: EmbeddedWriter) -> None:
    document = make_document("a", ["leave rules"], metadata={"year": 2026}, tenants=("x", "y"), groups=("g", "h"))
    generation = writer.commit(upserts=[document])
    again = replace(document, tenants=("y", "x"), groups=("h", "g"))
    assert writer.commit(upserts=[document, again], deletes=[DocumentKey("s", "unknown")], rules=PUBLIC) == generation


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Leave"},
        {"metadata": {"year": 2027}},
        {"metadata": {"year": 2026.5}},
        {"tenants": ("x",)},
        {"tenants": ()},
        {"groups": ("g",)},
        {"content_hash": "other"},
        {"chunks": make_document("a", ["leave", "rules"]).chunks},
        {"chunks": (replace(make_document("a", ["leave rules"]).chunks[0], truncated=True),)},
        {"chunks": (replace(make_document("a", ["leave rules"]).chunks[0], vector=vector_of("other")),)},
        {"chunks": (replace(make_document("a", ["leave rules"]).chunks[0], vector=None),)},
        {"chunks": (replace(make_document("a", ["leave rules"]).chunks[0], heading="H"),)},
    ],
    ids=str,
)
def test_every_part_of_a_record_counts_as_content(writer: EmbeddedWriter, change: dict[str, object]) -> None:
    document = make_document("a", ["leave rules"], metadata={"year": 2026})
    generation = writer.commit(upserts=[document])
    changed: DocumentRecord = replace(document, **change)  # type: ignore[arg-type]
    assert writer.commit(upserts=[changed]) == generation + 1
    assert writer.commit(upserts=[changed]) == generation + 1


def test_an_upsert_replaces_the_whole_document(writer: EmbeddedWriter, tmp_path: Path) -> None:
    reader = EmbeddedReader.open(tmp_path)
    writer.commit(upserts=[make_document("a", [f"leave part{i}" for i in range(10)])])
    writer.commit(upserts=[make_document("a", [f"leave part{i}" for i in range(4)])])
    hits = lexical_hits(reader.snapshot(), "leave")
    assert sorted(content for _, content in hits) == [f"leave part{i}" for i in range(4)]
    assert writer.stats().chunks == 4


def test_cutting_again_in_another_way_gives_other_ids_and_no_leftovers(tmp_path: Path) -> None:
    """The same 30 documents, cut at 400, 200 and 400: three folders, since chunking is part of the shape."""
    ids = []
    for number, size in enumerate([400, 200, 400]):
        shape = make_shape(size_tokens=size)
        folder = tmp_path / str(number)
        writer = EmbeddedWriter.open(folder, revision="r", shape=shape)
        for _ in range(3):
            writer.commit(upserts=[make_document(f"{i}", [f"rule {i}", "end"]) for i in range(30)], rules=PUBLIC)
        writer.mark_ready(dense=True)
        snapshot = EmbeddedReader.open(folder).snapshot()
        selection = snapshot.select(Permission(), None)
        rows = snapshot.lexical(snapshot.analyse("rule end"), selection, top_k=100).rows
        assert len(rows) == 60 == writer.stats().chunks
        ids.append(set(snapshot.chunk_ids(rows)))
    assert ids[0] == ids[2]
    assert not ids[0] & ids[1]


def test_one_id_in_two_sources_is_two_documents(writer: EmbeddedWriter, tmp_path: Path) -> None:
    rules = {name: SourceRules(tenants=("*",), metadata={}) for name in ("s", "t")}
    writer.commit(
        upserts=[make_document("a", ["leave here"]), make_document("a", ["leave there"], source="t")], rules=rules
    )
    writer.commit(deletes=[DocumentKey("s", "a")])
    assert set(writer.documents()) == {DocumentKey("t", "a")}
    assert lexical_hits(EmbeddedReader.open(tmp_path).snapshot(), "leave") == [("a", "leave there")]


def test_a_key_that_is_deleted_and_written_in_one_batch_is_written(writer: EmbeddedWriter) -> None:
    document = make_document("a", ["leave"])
    generation = writer.commit(upserts=[document], deletes=[document.key])
    assert writer.documents() == {document.key: document.content_hash}
    assert writer.commit(upserts=[document], deletes=[document.key]) == generation


def test_a_deleted_document_comes_back_when_it_is_written_again(writer: EmbeddedWriter, tmp_path: Path) -> None:
    document = make_document("a", ["leave"])
    for _ in range(3):
        writer.commit(upserts=[document])
        writer.commit(deletes=[document.key])
        assert writer.documents() == {}
    writer.commit(upserts=[document])
    assert lexical_hits(EmbeddedReader.open(tmp_path).snapshot(), "leave") == [("a", "leave")]


def test_a_document_without_chunks_is_remembered(writer: EmbeddedWriter, tmp_path: Path) -> None:
    document = make_document("blank", [])
    writer.commit(upserts=[document])
    writer.compact()
    writer.close()
    reopened = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)
    assert reopened.documents() == {document.key: document.content_hash}


def test_what_was_cut_out_is_shown_as_it_was(writer: EmbeddedWriter, tmp_path: Path) -> None:
    content = "５㎏ ﬁsh 🐟 e\u0301 \ud800 ＲＴＸ４０９０\x00"
    writer.commit(upserts=[make_document("a", [content], title="Ｔ", metadata={"note": "\udfff", "list": [1, "x"]})])
    writer.compact(purge=True)
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    rows = snapshot.lexical(snapshot.analyse("rtx4090"), snapshot.select(Permission(), None), top_k=1).rows
    chunk = snapshot.chunks(rows)[0]
    assert (chunk.content, chunk.title) == (content, "Ｔ")
    assert chunk.metadata == {"note": "\udfff", "list": [1, "x"]}
    assert (chunk.start, chunk.end) == (0, len(content))


def test_chunks_may_come_in_any_order_and_stand_in_order_of_ordinal(writer: EmbeddedWriter, tmp_path: Path) -> None:
    document = make_document("a", ["leave one", "leave two", "leave three"])
    generation = writer.commit(upserts=[document])
    assert writer.commit(upserts=[replace(document, chunks=document.chunks[::-1])]) == generation


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
        np.full(DIMENSION, np.inf, dtype=np.float32),
        np.ones(DIMENSION + 1, dtype=np.float32),
        np.ones((1, DIMENSION), dtype=np.float32),
    ],
    ids=["zero", "nan", "infinite", "longer", "matrix"],
)
def test_an_unusable_vector_is_refused_by_the_document_s_name(writer: EmbeddedWriter, vector: FloatVector) -> None:
    good = make_document("good", ["leave"])
    bad = make_document("bad.md", ["first", "second"])
    bad = replace(bad, chunks=(bad.chunks[0], replace(bad.chunks[1], vector=vector)))
    generation = writer.stats().content_generation
    with pytest.raises(UnusableVectorError, match=r"'bad\.md' of source 's', chunk 1"):
        writer.commit(upserts=[good, bad])
    assert writer.stats().content_generation == generation
    assert writer.documents() == {}


def test_two_chunks_with_one_ordinal_are_refused(writer: EmbeddedWriter) -> None:
    document = make_document("a.md", ["first", "second"])
    document = replace(document, chunks=(document.chunks[0], document.chunks[0]))
    with pytest.raises(UnreadableDocumentError, match=r"'a\.md'.*ordinal"):
        writer.commit(upserts=[document])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1.0, float("nan")]])
def test_metadata_that_json_cannot_say_is_refused(writer: EmbeddedWriter, value: float | list[float]) -> None:
    document = make_document("a.md", ["x"], metadata={"year": value})  # type: ignore[dict-item]
    with pytest.raises(UnreadableDocumentError, match=r"'a\.md'.*'year'"):
        writer.commit(upserts=[document])


def test_metadata_that_does_not_fit_the_schema_is_refused(writer: EmbeddedWriter) -> None:
    document = make_document("a.md", ["x"], metadata={"year": [2026, "next"], "note": "next"})
    with pytest.raises(UnreadableDocumentError, match=r"'a\.md'.*: metadata\.year: \"next\" is no number"):
        writer.commit(upserts=[document])
    assert writer.documents() == {}


def test_rules_change_at_once_and_touch_no_segment(writer: EmbeddedWriter, tmp_path: Path) -> None:
    writer.commit(upserts=[make_document("a", ["leave"])])
    segments = sorted(tmp_path.glob("*.segment"))
    reader = EmbeddedReader.open(tmp_path)
    generation = reader.snapshot().content_generation
    assert writer.commit(rules={"s": SourceRules(tenants=("acme",), metadata={})}) == generation + 1
    assert visible_documents(reader.snapshot()) == set()
    assert visible_documents(reader.snapshot(), permission=Permission(tenant="acme")) == {"a"}
    assert sorted(tmp_path.glob("*.segment")) == segments


def test_figures_count_what_is_live(writer: EmbeddedWriter) -> None:
    long = make_document("long", ["one", "two", "three"])
    long = replace(long, chunks=(replace(long.chunks[0], truncated=True), *long.chunks[1:]))
    writer.commit(upserts=[long, make_document("short", ["four"])])
    stats = writer.stats()
    assert (stats.documents, stats.chunks, stats.truncated_chunks) == (2, 4, 1)
    assert 0 < stats.size_bytes < stats.load_bytes
    writer.commit(deletes=[long.key])
    stats = writer.stats()
    assert (stats.documents, stats.chunks, stats.truncated_chunks) == (1, 1, 0)


def test_readiness_is_kept_and_needs_no_second_write(writer: EmbeddedWriter, tmp_path: Path) -> None:
    before = (tmp_path / "manifest.json").stat().st_mtime_ns
    writer.mark_ready(dense=True)
    assert (tmp_path / "manifest.json").stat().st_mtime_ns == before
    assert (writer.ready, writer.dense) == (True, True)
    writer.commit(upserts=[make_document("a", ["leave"])])
    assert writer.ready
    writer.mark_ready(dense=False)
    assert EmbeddedReader.open(tmp_path).snapshot().provides == {"bm25"}


def test_a_second_writer_is_refused_until_the_first_has_closed(writer: EmbeddedWriter, tmp_path: Path) -> None:
    with pytest.raises(RevisionUnavailableError, match="another process"):
        EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)
    writer.close()
    EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE).close()


def test_a_folder_of_another_revision_is_refused(writer: EmbeddedWriter, tmp_path: Path) -> None:
    writer.close()
    for revision, shape in (("other", SHAPE), ("r", make_shape())):
        with pytest.raises(StateVersionError, match="folder of its own"):
            EmbeddedWriter.open(tmp_path, revision=revision, shape=shape)
    EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE).close()  # refusing left no lock behind
