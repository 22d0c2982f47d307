"""The few file operations that the store is made of, as a port.

Crash safety is an argument about the order of these operations, so tests replace them by ones that
stop, or find the disk full, at any chosen operation. Names are relative to the revision's folder.
"""

import fcntl
import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

SEGMENT_SUFFIX = ".segment"
DELETIONS_SUFFIX = ".deletions"
PARTIAL_SUFFIX = ".partial"


class Files(Protocol):
    """The folder of one revision."""

    def create(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        """Write a file that does not exist yet and force its content to the disk."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name in one step, replacing what had that name."""

    def remove(self, name: str) -> None:
        """Remove a file; absent is fine."""

    def sync(self) -> None:
        """Force names, as opposed to contents, to the disk."""

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""

    def read(self, name: str) -> bytes:
        """Return the content of a file."""

    def map(self, name: str) -> mmap.mmap | bytes:
        """Return the content of a file without reading it; it stays valid after the file is removed."""

    def lock(self) -> bool:
        """Become the only writer; False when another process is."""

    def unlock(self) -> None:
        """Let others write."""


class LocalFiles:
    """A folder of the local file system."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock: int | None = None

    def create(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        with (self._directory / name).open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        (self._directory / old).replace(self._directory / new)

    def remove(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)

    def sync(self) -> None:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def names(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self._directory) if entry.is_file())

    def read(self, name: str) -> bytes:
        return (self._directory / name).read_bytes()

    def map(self, name: str) -> mmap.mmap | bytes:
        with (self._directory / name).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def lock(self) -> bool:
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
