"""One synchronous pass over a real store, as benchmarks and tests use it."""

from pathlib import Path
from typing import Any

import pytest

from tidegate_api.config import IndexerConfig, RevisionConfig, SourceConfig, VolumeFrom
from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.indexer.build import build_revision
from tidegate_runtime.indexer.state import FolderBusyError, claimed
from tidegate_runtime.models.fake import FakeEmbedder
from tidegate_runtime.ports import Permission
from tidegate_runtime.stores.embedded import EmbeddedReader


@pytest.fixture
def config(tmp_path: Path, shape: Any) -> IndexerConfig:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "leave.html").write_text("<p>Nothing &amp; more</p><p>paid leave for everybody</p>")
    return IndexerConfig(
        knowledge_base="kb",
        namespace="ns",
        language="en",
        sources=[SourceConfig(name="docs", volume=VolumeFrom(claim_name="claim", path=str(tmp_path / "docs")))],
        revisions=[RevisionConfig(name="kb-1", shape=shape())],
    )


def test_what_was_built_can_be_asked(tmp_path: Path, config: IndexerConfig) -> None:
    build_revision(tmp_path / "root", config, FakeEmbedder())

    snapshot = EmbeddedReader.open(tmp_path / "root" / "kb-1").snapshot()
    everything = snapshot.select(Permission(), None)
    found = snapshot.chunks(snapshot.lexical(snapshot.analyse("paid leave"), everything, top_k=5).rows)
    assert [(chunk.source, chunk.document_id, chunk.title) for chunk in found] == [("docs", "leave.html", "leave")]
    assert snapshot.provides == {"bm25", "dense"}


def test_the_place_of_a_chunk_is_that_in_the_original_file(tmp_path: Path, config: IndexerConfig) -> None:
    build_revision(tmp_path / "root", config, FakeEmbedder())

    snapshot = EmbeddedReader.open(tmp_path / "root" / "kb-1").snapshot()
    rows = snapshot.lexical(snapshot.analyse("everybody"), snapshot.select(Permission(), None), top_k=1).rows
    (chunk,) = snapshot.chunks(rows)
    original = (tmp_path / "docs" / "leave.html").read_text()
    assert original[chunk.start : chunk.end] == "Nothing &amp; more</p><p>paid leave for everybody"


def test_a_second_build_commits_nothing(tmp_path: Path, config: IndexerConfig) -> None:
    build_revision(tmp_path / "root", config, FakeEmbedder())
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "root" / "kb-1").iterdir()}

    build_revision(tmp_path / "root", config, FakeEmbedder())

    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "root" / "kb-1").iterdir()} == before


def test_a_revision_that_cannot_be_ready_is_an_error_with_the_reason(tmp_path: Path, config: IndexerConfig) -> None:
    (tmp_path / "docs" / "leave.html").write_bytes(b"\x00")

    with pytest.raises(RevisionUnavailableError, match="kb-1: no document could be indexed"):
        build_revision(tmp_path / "root", config, FakeEmbedder())


def test_a_folder_that_an_indexer_holds_is_refused(tmp_path: Path, config: IndexerConfig) -> None:
    with claimed(tmp_path / "root"), pytest.raises(FolderBusyError):
        build_revision(tmp_path / "root", config, FakeEmbedder())
