"""A process may end at any file operation; the next one finds the state before or after a commit.

The script below is run once for every operation it makes, dying at that operation. What is left in
the folder afterwards is exactly what the manifest names.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from tests.unit.runtime.store.faults import DyingFiles, Killed
from tests.unit.runtime.store.samples import PUBLIC, lexical_hits, make_document, make_shape

from tidegate_runtime.ports import DocumentKey
from tidegate_runtime.stores.embedded import MANIFEST_NAME, EmbeddedReader, EmbeddedWriter
from tidegate_runtime.stores.embedded.files import LocalFiles
from tidegate_runtime.stores.embedded.manifest import read_manifest

SHAPE = make_shape()
OLD = make_document("a", ["old leave rules", "second part"])
NEW = make_document("a", ["new leave rules"])
KEPT = make_document("b", ["pump manual"])


def begin(folder: Path) -> None:
    writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE)
    writer.commit(upserts=[OLD, KEPT], rules=PUBLIC)
    writer.mark_ready(dense=True)
    writer.close()


def replace_document(writer: EmbeddedWriter) -> None:
    writer.commit(upserts=[NEW])


def delete_document(writer: EmbeddedWriter) -> None:
    writer.commit(deletes=[OLD.key])


def delete_and_purge(writer: EmbeddedWriter) -> None:
    writer.commit(deletes=[OLD.key])
    writer.compact(purge=True)


def named_files(folder: Path) -> set[str]:
    manifest = read_manifest(LocalFiles(folder), place="here")
    assert manifest is not None
    return {MANIFEST_NAME, *(file.name for file in manifest.files())}


@pytest.mark.parametrize("script", [replace_document, delete_document, delete_and_purge])
def test_a_kill_at_any_operation_leaves_the_state_before_or_after(
    tmp_path: Path, script: Callable[[EmbeddedWriter], None]
) -> None:
    outcomes = set()
    for operations in count(1):
        folder = tmp_path / str(operations)
        begin(folder)
        files = DyingFiles(folder, operations=operations)
        with suppress(Killed):
            script(EmbeddedWriter.open(folder, revision="r", shape=SHAPE, files=files))
        files.unlock()
        seen_by_reader = lexical_hits(EmbeddedReader.open(folder).snapshot(), "leave rules pump")
        writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE)
        after_restart = lexical_hits(EmbeddedReader.open(folder).snapshot(), "leave rules pump")
        assert seen_by_reader == after_restart
        assert {path.name for path in folder.iterdir()} == named_files(folder)
        script(writer)  # the next pass of the loop does the rest
        outcomes.add(tuple(sorted(after_restart)))
        final = sorted(lexical_hits(EmbeddedReader.open(folder).snapshot(), "leave rules pump"))
        if files.survived:
            break
    assert operations > 5
    assert outcomes == {(("a", "old leave rules"), ("b", "pump manual")), tuple(final)}


def test_a_kill_while_the_folder_is_made_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    for operations in range(1, 5):
        folder = tmp_path / str(operations)
        with pytest.raises(Killed):
            EmbeddedWriter.open(folder, revision="r", shape=SHAPE, files=DyingFiles(folder, operations=operations))
        writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE)
        assert writer.documents() == {}
        writer.commit(upserts=[KEPT])
        assert writer.documents() == {DocumentKey("s", "b"): KEPT.content_hash}


class RecordingFiles(LocalFiles):
    """Tells in which order the folder was changed."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.log: list[tuple[str, str]] = []

    def rename(self, old: str, new: str) -> None:
        self.log.append(("rename", new.partition(".")[2]))
        super().rename(old, new)

    def remove(self, name: str) -> None:
        self.log.append(("remove", name.partition(".")[2]))
        super().remove(name)

    def sync(self) -> None:
        self.log.append(("sync", ""))
        super().sync()


def test_the_manifest_is_replaced_after_what_it_names_is_safe_and_before_anything_is_removed(tmp_path: Path) -> None:
    begin(tmp_path)
    files = RecordingFiles(tmp_path)
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=SHAPE, files=files)
    writer.commit(upserts=[NEW])
    files.log.clear()
    writer.compact(purge=True)
    commit, removals = files.log[:4], files.log[4:]
    assert commit == [("rename", "segment"), ("sync", ""), ("rename", "json"), ("sync", "")]
    assert sorted(removals) == [("remove", "deletions"), ("remove", "segment"), ("remove", "segment")]
