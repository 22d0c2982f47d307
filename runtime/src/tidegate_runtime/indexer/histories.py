"""Which documents a file of many may hold, kept over restarts: what cannot be read now is not deleted.

A file of JSON lines with a broken line shows only a part of itself. Its missing documents must stay,
those missing from other files must go; so the ids that each such file has shown are remembered. A
record is on the disk before a document that it names is committed. Where a record may be missing
for another reason than that the file is new, `read` answers None: then the file may hold anything.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Set
from pathlib import Path
from typing import Protocol

from tidegate_runtime.errors import is_no_room
from tidegate_runtime.indexer.replacing import replace_file

_FOLDER = ".histories"
_COMPLETE = "complete"


class Histories(Protocol):
    """Remembers ids by source and file."""

    def read(self, source: str, file: str) -> frozenset[str] | None:
        """Return the ids that a file may hold; None = any."""

    def write(self, source: str, file: str, ids: Set[str]) -> None:
        """Replace the ids that a file may hold."""

    def keep_only(self, source: str, files: Set[str]) -> None:
        """Forget the files of a source that are not among `files`."""

    def forget(self, configured: Set[str]) -> None:
        """Forget the sources that are not among `configured`."""


class MemoryHistories:
    """For a process that indexes once; it has seen no file whole before."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], frozenset[str]] = {}

    def read(self, source: str, file: str) -> frozenset[str] | None:
        return self._ids.get((source, file))

    def write(self, source: str, file: str, ids: Set[str]) -> None:
        self._ids[source, file] = frozenset(ids)

    def keep_only(self, source: str, files: Set[str]) -> None:
        self._ids = {key: ids for key, ids in self._ids.items() if key[0] != source or key[1] in files}

    def forget(self, configured: Set[str]) -> None:
        self._ids = {key: ids for key, ids in self._ids.items() if key[0] in configured}


class FolderHistories:
    """Below an indexer's root, one record a file. `new` = nothing was ever indexed below this root."""

    def __init__(self, root: Path, *, new: bool) -> None:
        self._folder = root / _FOLDER
        self._marker = self._folder / _COMPLETE
        if new:
            _has_room(lambda: _replace(self._marker, b""))

    def read(self, source: str, file: str) -> frozenset[str] | None:
        try:
            return frozenset(json.loads(self._record(source, file).read_bytes()))
        except FileNotFoundError:
            return frozenset() if self._marker.exists() else None
        except ValueError:
            return None

    def write(self, source: str, file: str, ids: Set[str]) -> None:
        record, content = self._record(source, file), json.dumps(sorted(ids)).encode()
        if record.exists() and record.read_bytes() == content:
            return
        if not _has_room(lambda: _replace(record, content)):
            # An old record would let newer documents be deleted; without it, and without the marker, none is.
            self._marker.unlink(missing_ok=True)
            record.unlink(missing_ok=True)

    def keep_only(self, source: str, files: Set[str]) -> None:
        kept = {self._record(source, file).name for file in files}
        for record in (self._folder / source).glob("*.json"):
            if record.name not in kept:
                record.unlink()

    def forget(self, configured: Set[str]) -> None:
        for folder in self._folder.glob("*/"):
            if folder.name not in configured:
                shutil.rmtree(folder)

    def _record(self, source: str, file: str) -> Path:
        digest = hashlib.sha256(file.encode("utf-8", "surrogateescape")).hexdigest()
        return self._folder / source / f"{digest[:32]}.json"


def _has_room(write: Callable[[], object]) -> bool:
    """Write something; False when the volume has no room for it."""
    try:
        write()
    except OSError as error:
        if not is_no_room(error):
            raise
        return False
    return True


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)
