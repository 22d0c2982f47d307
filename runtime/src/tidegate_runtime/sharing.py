"""Things that are opened once, used by many and closed with their last user.

Several releases read the same index revision and the same encoder; opening is slow and memory is
scarce. Lives on one event loop. A thread that loads a file cannot be cancelled, so an opening that everybody
has given up on goes on: whoever comes meanwhile waits for that one, there is never a second beside it, and
where nobody comes it ends in a close.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

# Called by an opening whenever it has got on.
GotOn: TypeAlias = Callable[[], None]


class StalledError(Exception):
    """An opening has not got on for too long. It goes on: a later call may find it done."""


@dataclass(slots=True)
class _Entry(Generic[T]):
    opening: "asyncio.Task[T]" = field(init=False)
    users: int = 0
    got_on_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def got_on(self) -> None:
        self.got_on_at = asyncio.get_running_loop().time()


class Shared(Generic[K, T]):
    """Values by key, counted. An opening may take any time, as long as it gets on within `patience_seconds`."""

    def __init__(self, close: Callable[[T], None], *, patience_seconds: float) -> None:
        self._close = close
        self._patience_seconds = patience_seconds
        self._entries: dict[K, _Entry[T]] = {}

    async def acquire(self, key: K, opener: Callable[[GotOn], Awaitable[T]]) -> T:
        """Return the value of `key`, opened by the first caller. An error of the opening reaches all who wait for it.

        Raises:
            StalledError: it has been silent for too long.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            entry.opening = asyncio.ensure_future(_opened(opener, entry.got_on))
        entry.users += 1
        with ExitStack() as undo:
            undo.callback(self._release, key, entry)
            value = await self._awaited(entry)
            undo.pop_all()
        return value

    def release(self, key: K) -> None:
        """Give up one use that `acquire` returned; the last one closes the value."""
        self._release(key, self._entries[key])

    async def _awaited(self, entry: _Entry[T]) -> T:
        loop = asyncio.get_running_loop()
        while not entry.opening.done():
            left_seconds = entry.got_on_at + self._patience_seconds - loop.time()
            if left_seconds <= 0:
                raise StalledError
            await asyncio.wait([entry.opening], timeout=left_seconds)
        return entry.opening.result()

    def _release(self, key: K, entry: _Entry[T]) -> None:
        entry.users -= 1
        if entry.users == 0:
            entry.opening.add_done_callback(partial(self._discard, key, entry))

    def _discard(self, key: K, entry: _Entry[T], opening: "asyncio.Task[T]") -> None:
        if entry.users or self._entries.get(key) is not entry:
            return  # somebody has come meanwhile, or it is discarded already
        del self._entries[key]
        if not opening.cancelled() and opening.exception() is None:
            self._close(opening.result())


async def _opened(opener: Callable[[GotOn], Awaitable[T]], got_on: GotOn) -> T:
    return await opener(got_on)
