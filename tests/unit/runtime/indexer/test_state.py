"""What survives a restart, and the claim to a folder."""

import os
from pathlib import Path

import pytest

from tidegate_runtime.errors import StateVersionError, StoreFullError
from tidegate_runtime.indexer.state import FolderBusyError, KeptRevision, KeptState, StateFile, claimed


def test_a_new_folder_holds_nothing(tmp_path: Path) -> None:
    assert StateFile(tmp_path).read() == KeptState()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    state = KeptState(
        knowledge_base="kb",
        namespace="ns",
        revisions={"kb-1": KeptRevision(created_at="2026-01-01T00:00:00Z")},
        holds={"docs": "t1"},
    )

    StateFile(tmp_path).write(state)

    assert StateFile(tmp_path).read() == state
    assert os.listdir(tmp_path) == ["state.json"]


def test_another_format_is_refused_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"format": 99, "somethingElse": 1}')

    with pytest.raises(StateVersionError, match="has format 99, this version reads 1; run the version that wrote it"):
        StateFile(tmp_path).read()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1, "holds": 3}'])
def test_a_damaged_file_is_refused_with_the_next_step(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)

    with pytest.raises(StateVersionError, match="is damaged; remove it together with the folders beside it"):
        StateFile(tmp_path).read()


def test_a_full_volume_leaves_what_was_there(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    file.write(KeptState(knowledge_base="kb"))
    (tmp_path / "state.new").symlink_to("/dev/full")

    with pytest.raises(StoreFullError, match="no room to write .*; enlarge the volume or free space on it"):
        file.write(KeptState(knowledge_base="other"))

    assert file.read() == KeptState(knowledge_base="kb")


def test_a_second_indexer_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    with (
        claimed(tmp_path / "root"),
        pytest.raises(FolderBusyError, match=f"is held by process {os.getpid()} on .*; stop it"),
        claimed(tmp_path / "root"),
    ):
        pass


def test_a_folder_is_free_again_when_its_holder_ends(tmp_path: Path) -> None:
    with claimed(tmp_path):
        pass
    with claimed(tmp_path):
        assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} on ")
