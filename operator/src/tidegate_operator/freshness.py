"""Is the watch blind? What direct reads find must come by the watch, too, within a while.

An idle cluster sends no events, so their age proves nothing. But when a read shows a version of an
object that the watch has not delivered minutes later, the watch is dead although it looks alive; then
the liveness probe fails and a new process lists everything anew.
"""

import time
from collections.abc import Callable

from tidegate_operator.core.keys import Key

BLIND_AFTER_SECONDS = 180.0


class Freshness:
    """Compares reads with deliveries, by key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._delivered: dict[Key, str] = {}
        self._overdue: dict[Key, float] = {}

    def delivered(self, key: Key, resource_version: str) -> None:
        """The watch has told about an object: it sees."""
        self._delivered[key] = resource_version
        self._overdue.pop(key, None)

    def forgotten(self, key: Key) -> None:
        """The object is gone."""
        self._delivered.pop(key, None)
        self._overdue.pop(key, None)

    def read(self, key: Key, resource_version: str | None) -> None:
        """A direct read has found this version, None = nothing.

        A read that began before a deletion may end after the watch has told of it; the next one puts that right.
        """
        if resource_version is None:
            self.forgotten(key)
        elif self._delivered.get(key) == resource_version:
            self._overdue.pop(key, None)
        else:
            self._overdue.setdefault(key, self._clock())

    def blind(self) -> bool:
        """Return whether a change has been overdue for too long."""
        oldest = min(self._overdue.values(), default=None)
        return oldest is not None and self._clock() - oldest > BLIND_AFTER_SECONDS
