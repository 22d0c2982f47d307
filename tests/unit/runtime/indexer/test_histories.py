"""Records of what files of many documents may hold."""

import errno
from pathlib import Path

import pytest

from tidegate_runtime.indexer import replacing
from tidegate_runtime.indexer.histories import FolderHistories, Histories, MemoryHistories


@pytest.fixture(params=["folder", "memory"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Histories:
    return FolderHistories(tmp_path, new=True) if request.param == "folder" else MemoryHistories()


def test_the_last_ids_of_a_file_are_read_back(kept: Histories) -> None:
    kept.write("docs", "sub/a.jsonl", {"x", "年假"})
    kept.write("docs", "sub/a.jsonl", {"y", "年假"})
    kept.write("more", "sub/a.jsonl", {"z"})

    assert kept.read("docs", "sub/a.jsonl") == {"y", "年假"}


def test_files_and_sources_are_forgotten(kept: Histories) -> None:
    for source, file in (("docs", "a"), ("docs", "b"), ("more", "a")):
        kept.write(source, file, {"x"})

    kept.keep_only("docs", {"b"})
    kept.forget({"docs"})

    held = [bool(kept.read(source, file)) for source, file in (("docs", "a"), ("docs", "b"), ("more", "a"))]
    assert held == [False, True, False]


def test_a_record_outlives_the_process_and_a_new_file_has_held_nothing(tmp_path: Path) -> None:
    FolderHistories(tmp_path, new=True).write("docs", "a.jsonl", {"x"})

    again = FolderHistories(tmp_path, new=False)

    assert (again.read("docs", "a.jsonl"), again.read("docs", "new.jsonl")) == ({"x"}, frozenset())


def test_below_a_root_that_was_indexed_without_records_a_file_may_hold_anything(tmp_path: Path) -> None:
    assert FolderHistories(tmp_path, new=False).read("docs", "a.jsonl") is None


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_record_that_finds_no_room_leaves_no_older_one_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = FolderHistories(tmp_path, new=True)
    kept.write("docs", "a.jsonl", {"x"})
    with monkeypatch.context() as volume:
        volume.setattr(replacing.os, "fsync", full)
        kept.write("docs", "a.jsonl", {"x", "y"})

    assert kept.read("docs", "a.jsonl") is None
    kept.write("docs", "a.jsonl", {"x", "y"})
    assert kept.read("docs", "a.jsonl") == {"x", "y"}


def test_a_start_on_a_full_volume_trusts_no_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as volume:
        volume.setattr(replacing.os, "fsync", full)
        kept = FolderHistories(tmp_path, new=True)

    assert kept.read("docs", "a.jsonl") is None


def test_any_other_error_of_the_volume_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    kept = FolderHistories(tmp_path, new=True)
    monkeypatch.setattr(replacing.os, "fsync", broken)

    with pytest.raises(OSError, match="Input/output"):
        kept.write("docs", "a.jsonl", {"x"})
