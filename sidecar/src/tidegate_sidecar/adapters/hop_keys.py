"""The keys that sign hops, from a mounted Secret. The first by name signs, every one is believed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from tidegate_sidecar.adapters.files import directory_stamp, read_entries

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
        seen: object = None
        while self._folder is not None:
            stamp = await asyncio.to_thread(directory_stamp, self._folder)
            if stamp != seen:
                seen = stamp
                self._keys = await asyncio.to_thread(self._read)
            await asyncio.sleep(LOOK_SECONDS)

    def _read(self) -> tuple[bytes, ...]:
        entries = {} if self._folder is None else read_entries(self._folder) or {}
        return tuple(value for _, value in sorted(entries.items()) if value)
