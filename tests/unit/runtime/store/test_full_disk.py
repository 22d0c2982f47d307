"""A disk that is full or fails in mid-commit: the revision stays as it was and works again later."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.runtime.store.faults import FailingFiles, FullFiles
from tests.unit.runtime.store.samples import PUBLIC, lexical_hits, make_document, make_shape

from tidegate_runtime.errors import RevisionUnavailableError, StoreFullError
from tidegate_runtime.ports import DocumentRecord
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter

SHAPE = make_shape()
FIRST = make_document("a", ["leave rules"])
SECOND = make_document("b", ["pump manual"])


def begin(folder: Path) -> None:
    writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE)
    writer.commit(upserts=[FIRST], rules=PUBLIC)
    writer.mark_ready(dense=True)
    writer.close()


def bytes_of_the_commit(folder: Path) -> int:
    begin(folder)
    files = FullFiles(folder, free_bytes=1_000_000)
    writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE, files=files)
    writer.commit(upserts=[SECOND], deletes=[FIRST.key])
    return 1_000_000 - files.free_bytes


@pytest.mark.parametrize("share", [0, 0.2, 0.4, 0.6, 0.8, 0.999])
def test_a_commit_without_room_changes_nothing_and_leaves_nothing_behind(tmp_path: Path, share: float) -> None:
    folder = tmp_path / "full"
    begin(folder)
    files = FullFiles(folder, free_bytes=int(share * bytes_of_the_commit(tmp_path / "roomy")))
    writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE, files=files)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreFullError, match="full"):
        writer.commit(upserts=[SECOND], deletes=[FIRST.key])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert writer.documents() == {FIRST.key: FIRST.content_hash}
    assert lexical_hits(EmbeddedReader.open(folder).snapshot(), "leave") == [("a", "leave rules")]


def test_the_same_writer_goes_on_once_there_is_room(tmp_path: Path) -> None:
    begin(tmp_path)
    files = FullFiles(tmp_path, free_bytes=0)
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE, files=files)
    with pytest.raises(StoreFullError):
        writer.commit(upserts=[SECOND])
    files.free_bytes = 1_000_000
    assert writer.commit(upserts=[SECOND]) == 2
    writer.compact()
    assert lexical_hits(EmbeddedReader.open(tmp_path).snapshot(), "pump") == [("b", "pump manual")]


def test_a_merge_without_room_changes_nothing(tmp_path: Path) -> None:
    begin(tmp_path)
    files = FullFiles(tmp_path, free_bytes=1_000_000)
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE, files=files)
    writer.commit(upserts=[SECOND])
    files.free_bytes = 0
    with pytest.raises(StoreFullError):
        writer.compact()
    assert set(writer.documents()) == {FIRST.key, SECOND.key}


def test_another_failure_of_the_disk_is_told(tmp_path: Path) -> None:
    begin(tmp_path)
    files = FailingFiles(tmp_path, error_number=errno.EIO)
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE, files=files)
    with pytest.raises(RevisionUnavailableError, match="cannot be used"):
        writer.commit(upserts=[SECOND])
    files.error_number = None
    assert writer.commit(upserts=[SECOND]) == 2


def test_a_place_that_is_no_folder_is_told(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(RevisionUnavailableError, match="cannot be used"):
        EmbeddedWriter.open(place, revision="r", shape=SHAPE)


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a volume needs root")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"this machine refuses to mount: {mounted.stderr.decode()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_real_volume_that_fills_up_keeps_the_last_commit(small_volume: Path) -> None:
    writer = EmbeddedWriter.open(small_volume, revision="r", shape=SHAPE)
    writer.commit(rules=PUBLIC)
    writer.mark_ready(dense=True)
    documents = (make_document(f"{number}", [f"chapter{number} " + "words " * 500]) for number in range(1000))
    stored: list[DocumentRecord] = []
    with pytest.raises(StoreFullError):
        stored.extend(document for document in documents if writer.commit(upserts=[document]))
    assert stored
    assert len(writer.documents()) == len(stored)
    snapshot = EmbeddedReader.open(small_volume).snapshot()
    for document in stored:
        assert lexical_hits(snapshot, f"chapter{document.key.document_id}")[0][0] == document.key.document_id
    writer.commit(deletes=[document.key for document in stored[:-1]])
    assert set(writer.documents()) == {stored[-1].key}


def test_a_manifest_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(RevisionUnavailableError, match="cannot be used"):
        EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE)
