"""What `tidegate local` must remember between runs: decisions that may not be taken twice.

The language of a knowledge base is decided once from its documents, and versions of a routing
table only grow. The record is one JSON file, replaced atomically; a folder written by another
version of the format is refused, never guessed at.
"""

from pathlib import Path

from pydantic import Field, ValidationError

from tidegate_api.model import Model
from tidegate_api.shape import Language

FORMAT = "tidegate-local/1"


class StateFolderError(Exception):
    """The state folder cannot be used; the text says what to do."""


class LocalRecord(Model):
    """Decisions of earlier runs."""

    format: str = FORMAT
    languages: dict[str, Language] = Field(default_factory=dict, description="by knowledge base")
    table_versions: dict[str, int] = Field(default_factory=dict, description="by pipeline")


def open_state_folder(folder: Path) -> LocalRecord:
    """Return the record in `folder`, which is made when it does not exist.

    Raises:
        StateFolderError: the folder holds something else, or another version's state.
    """
    path = folder / "local.json"
    if not path.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise StateFolderError(f"{folder}: is not empty and not a state folder; choose another with --state")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        write_record(folder, LocalRecord())
        return LocalRecord()
    try:
        record = LocalRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise StateFolderError(f"{path}: is damaged; remove {folder} to build its indexes anew") from error
    if record.format != FORMAT:
        raise StateFolderError(
            f"{folder}: was written as {record.format!r}, this version reads {FORMAT!r}; use another --state, "
            f"or remove {folder} to build its indexes anew"
        )
    return record


def write_record(folder: Path, record: LocalRecord) -> None:
    """Replace the record in `folder`."""
    replace_text(folder / "local.json", record.model_dump_json(by_alias=True, indent=1))


def replace_text(path: Path, text: str) -> bool:
    """Replace a file's content atomically; return whether it changed."""
    if path.is_file() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    replacement = path.with_name(f".{path.name}.new")
    replacement.write_text(text)
    replacement.replace(path)
    return True
