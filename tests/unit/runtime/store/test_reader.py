"""Following a revision, and what a reader says when it cannot."""

import gc
import json
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.unit.runtime.store.samples import PUBLIC, lexical_hits, make_document, make_shape, vector_of

from tidegate_runtime.errors import (
    InvalidQueryError,
    RevisionUnavailableError,
    StateVersionError,
    UnusableVectorError,
)
from tidegate_runtime.ports import Permission
from tidegate_runtime.stores.embedded import MANIFEST_NAME, EmbeddedReader, EmbeddedWriter

SHAPE = make_shape()


@pytest.fixture
def writer(tmp_path: Path) -> EmbeddedWriter:
    opened = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)
    opened.commit(upserts=[make_document("a", ["leave rules"]), make_document("b", ["pump"])], rules=PUBLIC)
    opened.mark_ready(dense=True)
    return opened


def test_a_reader_follows_commits(writer: EmbeddedWriter, tmp_path: Path) -> None:
    reader = EmbeddedReader.open(tmp_path)
    first = reader.snapshot()
    assert reader.snapshot() is first
    writer.commit(upserts=[make_document("c", ["leave again"])])
    second = reader.snapshot()
    assert second.content_generation == first.content_generation + 1
    assert {document for document, _ in lexical_hits(second, "leave")} == {"a", "c"}


def test_a_snapshot_keeps_its_generation_through_merges_and_a_closed_reader(
    writer: EmbeddedWriter, tmp_path: Path
) -> None:
    reader = EmbeddedReader.open(tmp_path)
    snapshot = reader.snapshot()
    before = lexical_hits(snapshot, "leave pump")
    writer.commit(deletes=[make_document("a", []).key], upserts=[make_document("b", ["other"])])
    writer.compact(purge=True)
    reader.close()
    assert lexical_hits(snapshot, "leave pump") == before
    assert lexical_hits(reader.snapshot(), "leave pump") == []


def test_a_mirrored_folder_needs_only_the_manifest_and_the_files_it_names(
    writer: EmbeddedWriter, tmp_path: Path
) -> None:
    writer.commit(deletes=[make_document("a", []).key])
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    manifest = json.loads((tmp_path / MANIFEST_NAME).read_bytes())
    for segment in manifest["segments"]:
        for file in (segment["file"], segment["deletions"]):
            (mirror / file["name"]).write_bytes((tmp_path / file["name"]).read_bytes())
    (mirror / MANIFEST_NAME).write_bytes((tmp_path / MANIFEST_NAME).read_bytes())
    assert lexical_hits(EmbeddedReader.open(mirror).snapshot(), "leave pump") == [("b", "pump")]


def test_nothing_is_there_until_a_revision_is_ready(tmp_path: Path) -> None:
    reader = EmbeddedReader.open(tmp_path / "r")
    with pytest.raises(RevisionUnavailableError, match="no revision is here yet"):
        reader.snapshot()
    writer = EmbeddedWriter.open(tmp_path / "r", revision="r", shape=SHAPE)
    with pytest.raises(RevisionUnavailableError, match="still being built"):
        reader.snapshot()
    writer.mark_ready(dense=False)
    assert reader.snapshot().provides == {"bm25"}


def test_an_empty_revision_answers_nothing(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)
    writer.mark_ready(dense=True)
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    selection = snapshot.select(Permission(), None)
    query, nothing = snapshot.analyse("leave"), np.zeros(0, dtype=np.int64)
    assert len(snapshot.lexical(query, selection, top_k=5).rows) == 0
    assert len(snapshot.dense(vector_of("leave"), selection, top_k=5).rows) == 0
    assert len(snapshot.idf_coverage(query, nothing)) == 0
    assert snapshot.chunks(nothing) == []


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _other_magic(path: Path) -> None:
    path.write_bytes(b"elephant" + path.read_bytes()[8:])


def _flip_table(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)


def _longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize("damage", [_cut, _empty, _other_magic, _flip_table, _longer, Path.unlink])
@pytest.mark.parametrize("suffix", ["segment", "deletions"])
def test_a_damaged_file_makes_the_revision_unavailable(
    writer: EmbeddedWriter, tmp_path: Path, suffix: str, damage: Callable[[Path], None]
) -> None:
    writer.commit(deletes=[make_document("a", []).key])
    (path,) = tmp_path.glob(f"*.{suffix}")
    if suffix == "deletions" and damage in (_other_magic, _flip_table):
        return  # one byte of bits: any value of it is a valid file, and digests are the puller's to check
    damage(path)
    with pytest.raises(RevisionUnavailableError):
        EmbeddedReader.open(tmp_path).snapshot()
    writer.close()
    with pytest.raises(RevisionUnavailableError, match="remove the"):
        EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": "x"}', b"\xff"])
def test_a_damaged_manifest_makes_the_revision_unavailable(
    writer: EmbeddedWriter, tmp_path: Path, content: bytes
) -> None:
    writer.close()
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(RevisionUnavailableError, match="damaged"):
        EmbeddedReader.open(tmp_path).snapshot()
    with pytest.raises(RevisionUnavailableError, match="damaged"):
        EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)


@pytest.mark.parametrize(
    "changes", [{"format": 99}, {"shape": {"algorithms": {"analyzer": "analyzer/99"}}}], ids=["format", "analyzer"]
)
def test_another_version_says_what_to_do(
    writer: EmbeddedWriter, tmp_path: Path, changes: dict[str, int | dict[str, object]]
) -> None:
    writer.close()
    manifest = json.loads((tmp_path / MANIFEST_NAME).read_bytes())
    for key, value in changes.items():
        manifest[key] = {**manifest[key], **value} if isinstance(value, dict) else value
    (tmp_path / MANIFEST_NAME).write_text(json.dumps(manifest))
    with pytest.raises(StateVersionError, match="run the version that wrote it"):
        EmbeddedReader.open(tmp_path).snapshot()
    with pytest.raises(StateVersionError, match="run the version that wrote it"):
        EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)


def test_a_folder_that_cannot_be_read_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / MANIFEST_NAME).mkdir()
    with pytest.raises(RevisionUnavailableError, match="cannot be read"):
        EmbeddedReader.open(tmp_path).snapshot()


def test_a_file_that_went_while_it_was_opened_means_a_newer_manifest(writer: EmbeddedWriter, tmp_path: Path) -> None:
    """The reader below finds its manifest's segment gone once, as when a merge comes in between."""
    manifest = (tmp_path / MANIFEST_NAME).read_bytes()
    writer.commit(upserts=[make_document("c", ["leave too"])])
    writer.compact()
    newer = (tmp_path / MANIFEST_NAME).read_bytes()
    (tmp_path / MANIFEST_NAME).write_bytes(manifest)
    reader = EmbeddedReader.open(tmp_path)
    with pytest.raises(RevisionUnavailableError):
        reader.snapshot()
    (tmp_path / MANIFEST_NAME).write_bytes(newer)
    assert len(lexical_hits(reader.snapshot(), "leave")) == 2


def test_reading_goes_on_while_a_writer_commits_and_merges(writer: EmbeddedWriter, tmp_path: Path) -> None:
    reader, done, failures = EmbeddedReader.open(tmp_path), threading.Event(), []

    def read() -> None:
        while not done.is_set():
            snapshot = reader.snapshot()
            hits = lexical_hits(snapshot, "leave")
            # Generation g holds the documents d1 … dg beside the first one.
            if len(hits) != snapshot.content_generation:
                failures.append((snapshot.content_generation, hits))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        writer.commit(upserts=[make_document(f"d{number}", ["leave"])])
        writer.compact()
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_query_vector_must_fit(writer: EmbeddedWriter, tmp_path: Path) -> None:
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    selection = snapshot.select(Permission(), None)
    with pytest.raises(InvalidQueryError, match="components"):
        snapshot.dense(np.ones(3, dtype=np.float32), selection, top_k=1)
    with pytest.raises(UnusableVectorError, match="not finite"):
        snapshot.dense(vector_of("x") * np.float32(np.nan), selection, top_k=1)


def test_a_selection_of_another_store_is_refused(writer: EmbeddedWriter, tmp_path: Path) -> None:
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    with pytest.raises(TypeError, match="selection"):
        snapshot.lexical(snapshot.analyse("leave"), object(), top_k=1)


def test_a_dropped_snapshot_frees_its_files_at_once(writer: EmbeddedWriter, tmp_path: Path) -> None:
    """Reference cycles would keep mapped segments, and their disk space, until some later collection."""
    reader = EmbeddedReader.open(tmp_path)
    snapshot = reader.snapshot()
    selection = snapshot.select(Permission(), None)
    assert len(snapshot.lexical(snapshot.analyse("leave"), selection, top_k=3).rows) == 1
    dropped = weakref.ref(snapshot)
    gc.disable()
    try:
        del snapshot, selection
        reader.close()
        assert dropped() is None
    finally:
        gc.enable()
