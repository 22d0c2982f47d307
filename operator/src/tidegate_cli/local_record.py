"""What `tidegate local` must remember between runs: decisions that may not be taken twice.

The language of a knowledge base is decided once from its documents, and versions of a routing
table only grow. The record is one JSON file, replaced atomically; a folder written by another
version of the format is refused, never guessed at. One process at a time holds the folder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import Field, ValidationError

from tidegate_api.model import Model
from tidegate_api.shape import Language
from tidegate_runtime.errors import is_no_room

FORMAT = "tidegate-local/1"
RECORD = "local.json"
LOGS = "logs"
# There is one namespace here; it is part of what is rendered and hashed.
NAMESPACE = "local"
_LOCK = "lock"
_GITIGNORE = ".gitignore"


class StateFolderError(Exception):
    """The state folder cannot be used; the text says what to do."""


class LocalRecord(Model):
    """Decisions of earlier runs."""

    format: str = FORMAT
    languages: dict[str, Language] = Field(default_factory=dict, description="by knowledge base")
    table_versions: dict[str, int] = Field(default_factory=dict, description="by pipeline")


@contextmanager
def claimed_state_folder(folder: Path) -> Iterator[LocalRecord]:
    """Hold `folder`, which is made when it does not exist, and yield the record in it.

    Everything that a start writes is written here, so that what cannot be written is said before anything runs.

    Raises:
        StateFolderError: it holds something else or another version's state, it cannot be written, or another
            process holds it.
    """
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_foreign(folder)
            # The kernel lets go of the lock when this process ends, however it ends.
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            held.callback(os.close, lock)
            _lock(lock, folder)
            record = _record(folder)
            if not (folder / _GITIGNORE).exists():
                replace_text(folder / _GITIGNORE, "*\n")
            (folder / LOGS).mkdir(exist_ok=True)
        except OSError as error:
            raise _unusable(folder, error) from error
        yield record


def _unusable(folder: Path, error: OSError) -> StateFolderError:
    if is_no_room(error):
        return StateFolderError(f"{folder}: has no room left; free some, or choose another folder with --state")
    if isinstance(error, FileExistsError) and error.filename == str(folder):
        return StateFolderError(f"{folder}: is a file; choose a folder with --state")
    return StateFolderError(f"{error.filename or folder}: {error.strerror}; choose another folder with --state")


def _lock(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StateFolderError(
            f"{folder}: is in use by another `tidegate local`; stop that one, or choose another folder with --state"
        ) from error


def _refuse_foreign(folder: Path) -> None:
    found = {entry.name for entry in folder.iterdir()} - {_LOCK, _new(folder / RECORD).name}
    if found and RECORD not in found:
        raise StateFolderError(f"{folder}: is not empty and not a state folder; choose another with --state")


def _record(folder: Path) -> LocalRecord:
    path = folder / RECORD
    if not path.is_file():
        write_record(folder, LocalRecord())
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
    replace_text(folder / RECORD, record.model_dump_json(by_alias=True, indent=1))


def replace_text(path: Path, text: str) -> bool:
    """Replace a file's content atomically; return whether it changed."""
    content = text.encode()
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    replacement = _new(path)
    replacement.write_bytes(content)
    replacement.replace(path)
    return True


def _new(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
