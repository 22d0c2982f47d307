"""The keys that sign hops, from a mounted Secret. The first by name signs, every one is believed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tidegate_sidecar.adapters.files import directory_stamp, on_every_change, read_entries

LOOK_SECONDS = 5.0


class HopKeys:
    """Follows the folder; without one there are no keys, and no hop is sent or believed."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._keys: tuple[bytes, ...] = self._read()

    def live(self) -> Sequence[bytes]:
        """Return the keys, the one that signs first."""
        return self._keys

    async def follow(self) -> None:
        """Reload whenever the Secret changes, until cancelled."""
        folder = self._folder
        if folder is not None:
            await on_every_change(lambda: directory_stamp(folder), self._reload, look_seconds=LOOK_SECONDS)

    async def _reload(self) -> None:
        self._keys = await asyncio.to_thread(self._read)

    def _read(self) -> tuple[bytes, ...]:
        entries = {} if self._folder is None else read_entries(self._folder) or {}
        return tuple(value for _, value in sorted(entries.items()) if value)
