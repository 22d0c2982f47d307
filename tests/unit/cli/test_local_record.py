"""Decisions that outlive a run, and state folders that must not be touched."""

from pathlib import Path

import pytest

from tidegate_cli.local_record import LocalRecord, StateFolderError, claimed_state_folder, replace_text, write_record


def test_a_new_folder_is_made_and_kept_out_of_git(tmp_path: Path) -> None:
    with claimed_state_folder(tmp_path / "state") as record:
        assert record == LocalRecord()
    assert (tmp_path / "state" / ".gitignore").read_text() == "*\n"


def test_decisions_survive(tmp_path: Path) -> None:
    with claimed_state_folder(tmp_path) as record:
        changed = record.model_copy(update={"languages": {"docs": "zh"}, "table_versions": {"docs": 7}})
        write_record(tmp_path, changed)
    with claimed_state_folder(tmp_path) as record:
        assert record == changed


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with (
        claimed_state_folder(tmp_path),
        pytest.raises(StateFolderError, match="in use by another `tidegate local`"),
        claimed_state_folder(tmp_path),
    ):
        pass
    with claimed_state_folder(tmp_path):
        pass


def test_a_kill_while_the_folder_is_made_does_not_spoil_it(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / ".local.json.new").write_text("{")
    with claimed_state_folder(tmp_path) as record:
        assert record == LocalRecord()


def test_a_folder_that_is_somebody_elses_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StateFolderError, match="not a state folder; choose another with --state"):
        _open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateFolderError, match="is a file; choose a folder"):
        _open(tmp_path / "file")
    with pytest.raises(StateFolderError, match="Not a directory; choose another folder"):
        _open(tmp_path / "file" / "below")


def test_a_full_disk_is_said_with_the_way_out_and_more_room_is_all_it_takes(tmp_path: Path) -> None:
    for written in (tmp_path / ".local.json.new", tmp_path / "..gitignore.new"):
        written.symlink_to("/dev/full")
        with pytest.raises(StateFolderError) as caught:
            _open(tmp_path)
        assert str(caught.value) == f"{tmp_path}: has no room left; free some, or choose another folder with --state"
        written.unlink()
        write_record(tmp_path, LocalRecord())
    _open(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_whatever_cannot_be_laid_down_in_the_folder_is_named(tmp_path: Path) -> None:
    _open(tmp_path)
    (tmp_path / "logs").rmdir()
    (tmp_path / "logs").touch()
    with pytest.raises(StateFolderError, match=f"{tmp_path}/logs: File exists; choose another folder with --state"):
        _open(tmp_path)


def test_what_happens_while_the_folder_is_held_is_not_blamed_on_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="later"), claimed_state_folder(tmp_path):
        raise OSError("later")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": "tidegate-local/0"}', "was written as 'tidegate-local/0'"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
    ],
)
def test_another_version_or_damage_is_refused_with_the_way_out(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "local.json").write_text(content)
    with pytest.raises(StateFolderError, match=f"{message}.*remove"):
        _open(tmp_path)


def _open(folder: Path) -> None:
    with claimed_state_folder(folder):
        pass


def test_equal_text_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.json"
    assert replace_text(path, "one")
    assert not replace_text(path, "one")
    assert replace_text(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["config.json"]


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff{")
    assert replace_text(path, '{"a": "表"}')
    assert path.read_text(encoding="utf-8") == '{"a": "表"}'
