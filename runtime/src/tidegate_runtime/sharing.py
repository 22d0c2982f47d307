"""Things that are opened once, used by many and closed with their last user.

Several releases read the same index revision and the same encoder; opening is slow and memory is
scarce. Lives on one event loop. An opening that everybody has given up on still ends in a close,
because a thread that loads a file cannot be cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True)
class _Entry(Generic[T]):
    opening: "asyncio.Task[T]"
    users: int = 0


class Shared(Generic[K, T]):
    """Values by key, counted."""

    def __init__(self, close: Callable[[T], None]) -> None:
        self._close = close
        self._entries: dict[K, _Entry[T]] = {}

    async def acquire(self, key: K, opener: Callable[[], Awaitable[T]]) -> T:
        """Return the value of `key`, opened by the first caller. An error of the opening reaches all who wait for it."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(asyncio.ensure_future(_opened(opener)))
        entry.users += 1
        with ExitStack() as undo:
            undo.callback(self._release, key, entry)
            value = await asyncio.shield(entry.opening)
            undo.pop_all()
        return value

    def release(self, key: K) -> None:
        """Give up one use that `acquire` returned; the last one closes the value."""
        self._release(key, self._entries[key])

    def _release(self, key: K, entry: _Entry[T]) -> None:
        entry.users -= 1
        if entry.users == 0:
            del self._entries[key]
            entry.opening.add_done_callback(self._discard)

    def _discard(self, opening: "asyncio.Task[T]") -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._close(opening.result())


async def _opened(opener: Callable[[], Awaitable[T]]) -> T:
    return await opener()
