"""What an indexer must remember over a restart, and its claim to be the only one in a folder.

`state.json` holds what the stores and the sources cannot tell again: when revisions came about,
which sources were found suddenly empty and under which sync token, and the outcome of the last
look. It is replaced atomically and carries a format number: a folder of another version is
refused with the next step, never guessed at. The lock is `flock`, so the kernel frees it with the
process, however that ends.
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field, ValidationError

from tidegate_api.config import SyncState
from tidegate_api.model import Model
from tidegate_runtime.errors import RuntimePlaneError, StateVersionError, StoreFullError, is_no_room
from tidegate_runtime.indexer.replacing import replace_file

STATE_FORMAT = 1
_STATE_FILE = "state.json"
_LOCK_FILE = "lock"


class FolderBusyError(RuntimePlaneError):
    """Another indexer holds the folder."""


class KeptRevision(Model):
    """A revision that this indexer has made; only such folders are ever removed."""

    created_at: str
    ready_at: str | None = None


class KeptState(Model):
    """The content of `state.json`."""

    format: int = STATE_FORMAT
    knowledge_base: str = Field(default="", description="whose folder this is; empty = nobody's yet")
    namespace: str = ""
    revisions: dict[str, KeptRevision] = Field(default_factory=dict)
    holds: dict[str, str] = Field(
        default_factory=dict, description="sources found suddenly empty, with the sync token of that moment"
    )
    sync: SyncState = Field(default_factory=SyncState)


class _Format(Model):
    format: int


class StateFile:
    """Reads and replaces `state.json` of one root."""

    def __init__(self, root: Path) -> None:
        self._path = root / _STATE_FILE

    def read(self) -> KeptState:
        """Return what was kept; nothing in a new folder.

        Raises:
            StateVersionError: the file is of another version, or damaged.
        """
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return KeptState()
        try:
            found = _Format.model_validate_json(content).format
            if found == STATE_FORMAT:
                return KeptState.model_validate_json(content)
        except ValidationError as error:
            raise StateVersionError(
                f"{self._path} is damaged; remove it together with the folders beside it, they are rebuilt from the sources"
            ) from error
        raise StateVersionError(
            f"{self._path} has format {found}, this version reads {STATE_FORMAT}; "
            "run the version that wrote it, or start with an empty folder and let it be rebuilt"
        )

    def write(self, state: KeptState) -> None:
        """Replace the file; after a crash it is the old one or the new one.

        Raises:
            StoreFullError: the volume has no room.
        """
        try:
            replace_file(self._path, state.model_dump_json(by_alias=True, indent=1).encode())
        except OSError as error:
            if is_no_room(error):
                raise StoreFullError(
                    f"no room to write {self._path}; enlarge the volume or free space on it"
                ) from error
            raise


@contextmanager
def claimed(root: Path) -> Iterator[None]:
    """Hold the folder for this process alone.

    Raises:
        FolderBusyError: another process holds it.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / _LOCK_FILE).open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            raise FolderBusyError(
                f"{root} is held by {holder}; stop it, or give this indexer a folder of its own"
            ) from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        yield
