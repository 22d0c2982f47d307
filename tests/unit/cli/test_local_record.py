"""Decisions that outlive a run, and state folders that must not be touched."""

from pathlib import Path

import pytest

from tidegate_cli.local_record import LocalRecord, StateFolderError, open_state_folder, replace_text, write_record


def test_a_new_folder_is_made_and_kept_out_of_git(tmp_path: Path) -> None:
    assert open_state_folder(tmp_path / "state") == LocalRecord()
    assert (tmp_path / "state" / ".gitignore").read_text() == "*\n"


def test_decisions_survive(tmp_path: Path) -> None:
    record = open_state_folder(tmp_path / "state").model_copy(
        update={"languages": {"docs": "zh"}, "table_versions": {"docs": 7}}
    )
    write_record(tmp_path / "state", record)
    assert open_state_folder(tmp_path / "state") == record


def test_a_folder_that_is_somebody_elses_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StateFolderError, match="not a state folder; choose another with --state"):
        open_state_folder(tmp_path)


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
        open_state_folder(tmp_path)


def test_equal_text_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "config.json"
    assert replace_text(path, "one")
    assert not replace_text(path, "one")
    assert replace_text(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["config.json"]
