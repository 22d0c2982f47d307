"""When to look at which source. Pure: the time comes in.

A change of the config, its sync token included, makes every source due at once. A ConfigMap is watched:
the kubelet brings its edits to the mount, and a look at that costs next to nothing. A source that could
not be read is tried again sooner than its refresh, with a growing pause; a refresh of 0 means that
nothing but the config asks for a look, so then only failures come back by themselves.
"""

import math
from collections.abc import Iterable

from tidegate_api.config import SourceConfig

WATCH_SECONDS = 1.0
_WATCH_SHARE = 10.0
_FIRST_RETRY_SECONDS = 1.0
_LAST_RETRY_SECONDS = 60.0


class Backoff:
    """A pause that doubles with every failure in a row."""

    def __init__(
        self, *, first_seconds: float = _FIRST_RETRY_SECONDS, last_seconds: float = _LAST_RETRY_SECONDS
    ) -> None:
        self._first_seconds = first_seconds
        self._last_seconds = last_seconds
        self._failures = 0

    def failed(self) -> float:
        """Count a failure and return the seconds to wait."""
        self._failures += 1
        return float(min(self._first_seconds * 2 ** min(self._failures - 1, 16), self._last_seconds))

    def succeeded(self) -> None:
        """Begin again with the shortest pause."""
        self._failures = 0


class LookSchedule:
    """Which sources are due."""

    def __init__(self, *, watch: bool) -> None:
        self._watch = watch
        self._due_at: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}

    def all_due(self) -> None:
        """Make every source due now."""
        self._due_at.clear()

    def due(self, sources: Iterable[SourceConfig], *, now: float) -> list[SourceConfig]:
        """Return the sources to look at."""
        return [source for source in sources if self._due_at.get(source.name, -math.inf) <= now]

    def watched(self, source: SourceConfig) -> bool:
        """Return whether edits are looked for all the time, not only at the refresh."""
        return self._watch or (source.config_map is not None and source.refresh_seconds > 0)

    def looked(self, source: SourceConfig, *, now: float, took_seconds: float) -> None:
        """Note a look that succeeded. Watching a large source takes a tenth of the time at most."""
        self._backoffs.pop(source.name, None)
        refresh = source.refresh_seconds or math.inf
        watch = max(WATCH_SECONDS, _WATCH_SHARE * took_seconds)
        self._due_at[source.name] = now + (min(watch, refresh) if self.watched(source) else refresh)

    def failed(self, source: SourceConfig, *, now: float) -> None:
        """Note a look that failed."""
        backoff = self._backoffs.setdefault(source.name, Backoff())
        self._due_at[source.name] = now + backoff.failed()
