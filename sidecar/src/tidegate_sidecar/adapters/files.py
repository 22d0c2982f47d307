"""Files and mounted directories that change while we run.

A kubelet replaces a mount by swapping the symlink `..data`, an editor or `tidegate local` by renaming:
both change what `stat` says, so a look costs a few calls and nothing is read until it changed.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from tidegate_sidecar.ports import TableOrigin

LOOK_SECONDS = 0.5
MAX_ENTRY_BYTES = 65_536

# What `stat` tells of one file: device, inode, size and time of the last change.
Stamp = tuple[int, int, int, int]


def file_stamp(path: Path) -> Stamp | None:
    """Return what changes whenever the file does; None = there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def directory_stamp(path: Path) -> tuple[tuple[str, Stamp | None], ...] | None:
    """Return what changes whenever an entry of a mounted directory does; None = there is no directory."""
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return None
    return tuple((name, file_stamp(path / name)) for name in names)


def read_file(path: Path) -> bytes | None:
    """Return the file's content; None = it can't be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def read_entries(path: Path) -> dict[str, bytes] | None:
    """Return the entries of a mounted Secret, cut at 64 KiB; None = there is no directory.

    Names that begin with a dot are the mount's own.
    """
    try:
        names = sorted(name for name in os.listdir(path) if not name.startswith("."))
    except OSError:
        return None
    entries: dict[str, bytes] = {}
    for name in names:
        content = read_file(path / name)
        if content is not None:
            entries[name] = content[:MAX_ENTRY_BYTES]
    return entries


async def on_every_change(
    stamp: Callable[[], object], act: Callable[[], Awaitable[None]], *, look_seconds: float
) -> None:
    """Act once at the start and whenever `stamp`, taken in a thread, is another; until cancelled."""
    seen: object = act  # equal to no stamp
    while True:
        found = await asyncio.to_thread(stamp)
        if found != seen:
            seen = found
            await act()
        await asyncio.sleep(look_seconds)


class TableFile:
    """A routing table in a file that is replaced atomically."""

    def __init__(self, path: Path, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._path = path
        self._look_seconds = look_seconds

    async def follow(self, offer: Callable[[bytes | None, TableOrigin], Awaitable[None]]) -> None:
        """Offer the file's content now and whenever it changes."""

        async def offer_it() -> None:
            await offer(await asyncio.to_thread(read_file, self._path), "file")

        await on_every_change(lambda: file_stamp(self._path), offer_it, look_seconds=self._look_seconds)
