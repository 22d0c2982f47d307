"""Keeps what the sources held when they were last seen, and looks again when they are due.

A source that cannot be read has no snapshot, and a sentence that says why and what to do.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate_api.config import IndexerConfig, SourceConfig
from tidegate_runtime.errors import UnreadableSourceError
from tidegate_runtime.indexer.loaders import LoadedFile
from tidegate_runtime.indexer.schedule import LookSchedule
from tidegate_runtime.indexer.snapshot import SourceReader, SourceSnapshot


@dataclass(frozen=True, slots=True)
class Look:
    """Whether a refresh was due, which watching is not, and whether a source is not as it was."""

    refreshed: bool
    changed: bool


class SourceWatch:
    """The sources of the present config. Used by one thread."""

    def __init__(self, reader: SourceReader, *, watch: bool, monotonic: Callable[[], float]) -> None:
        self._reader = reader
        self._schedule = LookSchedule(watch=watch)
        self._monotonic = monotonic
        self.snapshots: dict[str, SourceSnapshot] = {}
        self.unreadable: dict[str, str] = {}

    def adopt(self, config: IndexerConfig) -> None:
        """Follow the sources of another config; all of them are due."""
        configured = {source.name for source in config.sources}
        self._reader.forget(configured)
        for known in (self.snapshots, self.unreadable):
            for name in known.keys() - configured:
                del known[name]
        self._schedule.all_due()

    def load(self, source: str, file: str) -> LoadedFile:
        """Return what a file of the last look holds now."""
        return self._reader.load(source, file)

    def all_due(self) -> None:
        """Look at every source the next time."""
        self._schedule.all_due()

    def look(self, config: IndexerConfig) -> Look:
        """Look at every source that is due."""
        due = self._schedule.due(config.sources, now=self._monotonic())
        changes = [self._look(source) for source in due]
        refreshed = any(not self._schedule.watched(source) for source in due)
        return Look(refreshed=refreshed, changed=any(changes))

    def _look(self, source: SourceConfig) -> bool:
        before = self.snapshots.get(source.name), self.unreadable.get(source.name)
        began = self._monotonic()
        try:
            self.snapshots[source.name] = self._reader.look(source)
            self.unreadable.pop(source.name, None)
            now = self._monotonic()
            self._schedule.looked(source, now=now, took_seconds=now - began)
        except UnreadableSourceError as error:
            self.snapshots.pop(source.name, None)
            self.unreadable[source.name] = str(error)
            self._schedule.failed(source, now=self._monotonic())
        after = self.snapshots.get(source.name), self.unreadable.get(source.name)
        return before[0] is not after[0] or before[1] != after[1]
