"""What a look remembers: unchanged files are not read again, failures do not look like deletions."""

import os
from pathlib import Path

import pytest

from tidegate_api.config import SourceConfig, VolumeFrom
from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.snapshot import SourceReader
from tidegate_runtime.indexer.sources import ListedFile, read_file

SETTLED = 10**19


@pytest.fixture
def source(tmp_path: Path) -> SourceConfig:
    (tmp_path / "docs").mkdir()
    return SourceConfig(name="docs", volume=VolumeFrom(claim_name="claim", path=str(tmp_path / "docs")))


class Reads:
    """Reads files and remembers which; all of them count as old."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failure: UnreadableDocumentError | None = None
        self.reader = SourceReader(now_ns=lambda: SETTLED, read=self.read)

    def read(self, file: ListedFile) -> bytes:
        self.names.append(file.name)
        if self.failure is not None:
            raise self.failure
        return read_file(file)


@pytest.fixture
def reads() -> Reads:
    return Reads()


def write(source: SourceConfig, name: str, text: str) -> Path:
    assert source.volume is not None
    path = Path(source.volume.path) / name
    path.write_text(text, encoding="utf-8")
    return path


def test_an_unchanged_file_is_read_once_and_the_snapshot_stays_the_same(source: SourceConfig, reads: Reads) -> None:
    write(source, "a.md", "one")
    first = reads.reader.look(source)

    assert reads.reader.look(source) is first
    assert reads.names == ["a.md"]


def test_only_a_changed_file_is_read_again(source: SourceConfig, reads: Reads) -> None:
    write(source, "a.md", "one")
    write(source, "b.md", "two")
    first = reads.reader.look(source)
    reads.names.clear()
    write(source, "a.md", "other")

    second = reads.reader.look(source)

    assert reads.names == ["a.md"]
    assert first.documents["a.md"] != second.documents["a.md"]
    assert first.documents["b.md"] == second.documents["b.md"]


def test_a_file_written_just_now_is_read_again_though_its_signature_is_the_same(
    source: SourceConfig, reads: Reads
) -> None:
    path = write(source, "a.md", "one")
    reader = SourceReader(now_ns=lambda: path.stat().st_mtime_ns, read=reads.read)
    first = reader.look(source)

    assert reader.look(source) is first
    assert reads.names == ["a.md", "a.md"]


def test_a_touched_file_has_the_same_documents(source: SourceConfig) -> None:
    reader = SourceReader(now_ns=lambda: SETTLED)
    path = write(source, "a.md", "one")
    first = reader.look(source)
    os.utime(path, ns=(1, 1))

    assert reader.look(source).documents == first.documents


def test_a_file_that_fails_may_hold_what_it_held(source: SourceConfig) -> None:
    reader = SourceReader(now_ns=lambda: SETTLED)
    path = write(source, "a.md", "one")
    reader.look(source)
    path.write_bytes(b"\x00")

    looked = reader.look(source)

    assert "a.md" not in looked.documents
    assert looked.may_hold("a.md")
    assert not looked.may_hold("b.md")
    assert [failure.document for failure in looked.failures] == ["a.md"]


def test_what_a_file_held_is_remembered_over_several_failures(source: SourceConfig) -> None:
    reader = SourceReader(now_ns=lambda: SETTLED)
    write(source, "a.jsonl", '{"id": "x", "text": "one"}\n{"id": "y", "text": "two"}\n')
    reader.look(source)
    for broken in ('{"id": "x", "text": "one"}\n{', "{"):
        write(source, "a.jsonl", broken)
        looked = reader.look(source)

    assert looked.may_hold("x")
    assert looked.may_hold("y")
    assert not looked.may_hold("z")


def test_a_file_that_is_whole_again_holds_what_it_says(source: SourceConfig) -> None:
    reader = SourceReader(now_ns=lambda: SETTLED)
    for text in ('{"id": "x", "text": "one"}\n', "{", '{"id": "y", "text": "two"}\n'):
        write(source, "a.jsonl", text)
        looked = reader.look(source)

    assert not looked.may_hold("x")


def test_a_broken_file_never_seen_whole_may_hold_anything(source: SourceConfig) -> None:
    write(source, "a.jsonl", '{"id": "x", "text": "one"}\n{')
    write(source, "b.md", "words")

    assert SourceReader(now_ns=lambda: SETTLED).look(source).may_hold("z")


def test_a_refused_file_may_hold_the_document_of_its_name(source: SourceConfig, tmp_path: Path) -> None:
    assert source.volume is not None
    (tmp_path / "outside.md").write_text("words")
    (Path(source.volume.path) / "a.md").symlink_to(tmp_path / "outside.md")

    looked = SourceReader(now_ns=lambda: SETTLED).look(source)

    assert looked.may_hold("a.md")
    assert [failure.document for failure in looked.failures] == ["a.md"]


def test_a_file_that_can_no_longer_be_loaded_is_read_again_at_the_next_look(source: SourceConfig, reads: Reads) -> None:
    write(source, "a.md", "one")
    reads.reader.look(source)
    reads.failure = UnreadableDocumentError("cannot be read: Input/output error")

    assert reads.reader.load("docs", "a.md").documents == ()
    looked = reads.reader.look(source)
    assert [failure.reason for failure in looked.failures] == ["cannot be read: Input/output error"]
    assert looked.may_hold("a.md")


def test_scripts_are_counted_over_all_files(source: SourceConfig) -> None:
    write(source, "a.md", "abc")
    write(source, "b.md", "年假")

    assert SourceReader().look(source).scripts == {"Latin": 3, "Han": 2}


def test_a_forgotten_source_is_read_anew(source: SourceConfig, reads: Reads) -> None:
    write(source, "a.md", "one")
    reads.reader.look(source)
    reads.reader.forget(frozenset())

    reads.reader.look(source)

    assert reads.names == ["a.md", "a.md"]
