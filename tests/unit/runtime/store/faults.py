"""File systems that die or are full: fakes of the store's own port.

`DyingFiles` stops at a chosen operation as `kill -9` does, leaving half of what was being written;
`FullFiles` has room for a number of bytes. Both do everything else for real, in a real folder.
"""

import errno
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from tidegate_runtime.stores.embedded.files import LocalFiles


class Killed(BaseException):
    """The process ended here. No handler of the code under test may see it."""


class DyingFiles:
    """Dies at the `operations`-th change of the folder, before or halfway through it."""

    def __init__(self, directory: Path, *, operations: int) -> None:
        self._real = LocalFiles(directory)
        self._directory = directory
        self._left = operations

    @property
    def survived(self) -> bool:
        return self._left > 0

    def create(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        if self._last():
            content = b"".join(bytes(part) for part in parts)
            (self._directory / name).write_bytes(content[: len(content) // 2])
            self._die()
        self._real.create(name, parts)

    def rename(self, old: str, new: str) -> None:
        if self._last():
            self._die()
        self._real.rename(old, new)

    def remove(self, name: str) -> None:
        if self._last():
            self._die()
        self._real.remove(name)

    def sync(self) -> None:
        if self._last():
            self._die()
        self._real.sync()

    def names(self) -> list[str]:
        return self._real.names()

    def read(self, name: str) -> bytes:
        return self._real.read(name)

    def map(self, name: str) -> mmap.mmap | bytes:
        return self._real.map(name)

    def lock(self) -> bool:
        return self._real.lock()

    def unlock(self) -> None:
        self._real.unlock()

    def _last(self) -> bool:
        self._left -= 1
        return self._left <= 0

    def _die(self) -> None:
        self._real.unlock()  # the system does that for a dead process
        raise Killed


class FullFiles(LocalFiles):
    """A volume with room for `free_bytes` more; removing gives nothing back."""

    def __init__(self, directory: Path, *, free_bytes: int) -> None:
        super().__init__(directory)
        self._directory_of_files = directory
        self.free_bytes = free_bytes

    def create(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        content = b"".join(bytes(part) for part in parts)
        if len(content) > self.free_bytes:
            (self._directory_of_files / name).write_bytes(content[: self.free_bytes])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        self.free_bytes -= len(content)
        super().create(name, [content])


class FailingFiles(LocalFiles):
    """A disk that refuses to write with `error_number`."""

    def __init__(self, directory: Path, *, error_number: int) -> None:
        super().__init__(directory)
        self.error_number: int | None = error_number

    def create(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        if self.error_number is not None:
            raise OSError(self.error_number, os.strerror(self.error_number), name)
        super().create(name, parts)
