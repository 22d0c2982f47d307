"""Which revisions exist: opens those that should, drops those that are wanted no more, remembers both.

A revision is remembered before its folder is made, and only remembered ones are ever removed, so a
foreign folder under the root is safe. A config without any revision drops nothing: it says that the
language is not known yet, not that all work is void.
"""

from collections.abc import Callable, Mapping, Set

from tidegate_api.config import IndexerConfig, RevisionConfig, SyncState
from tidegate_runtime.errors import StateVersionError
from tidegate_runtime.indexer.live import LiveRevision
from tidegate_runtime.indexer.revisions import RevisionStore
from tidegate_runtime.indexer.state import KeptRevision, StateFile
from tidegate_runtime.ports import IndexWriter


class Roster:
    """The revisions of one knowledge base on this volume. Used by one thread."""

    def __init__(self, store: RevisionStore, *, file: StateFile, now: Callable[[], str]) -> None:
        self._store = store
        self._file = file
        self._now = now
        self._live: dict[str, LiveRevision] = {}
        self.kept = file.read()

    def adopt(self, config: IndexerConfig) -> None:
        """Make the roster that of `config`.

        Raises:
            StateVersionError: the folder belongs to another knowledge base.
            StoreFullError: the volume has no room.
        """
        owner = self.kept.namespace, self.kept.knowledge_base
        if owner not in (("", ""), (config.namespace, config.knowledge_base)):
            raise StateVersionError(
                f"the folder belongs to knowledge base {'/'.join(owner)}, the config is for "
                f"{config.namespace}/{config.knowledge_base}; give each knowledge base a folder of its own"
            )
        wanted = {revision.name: revision for revision in config.revisions}
        if wanted:
            self._drop_unwanted(wanted.keys())
        added = {name: KeptRevision(created_at=self._now()) for name in wanted if name not in self.kept.revisions}
        self._remember(
            knowledge_base=config.knowledge_base,
            namespace=config.namespace,
            revisions={**self.kept.revisions, **added},
        )
        for name, revision in wanted.items():
            known = self._live.get(name)
            if known is None or known.config != revision:
                self._begin(revision)

    def remember_holds(self, holds: Mapping[str, str]) -> None:
        """Write which sources were found suddenly empty."""
        self._remember(holds=dict(holds))

    def remember_sync(self, sync: SyncState) -> None:
        """Write the outcome of the last look."""
        self._remember(sync=sync)

    def remember_ready(self, revision: LiveRevision) -> None:
        """Write since when a revision has been ready."""
        record = KeptRevision(created_at=revision.created_at, ready_at=revision.ready_at)
        self._remember(revisions={**self.kept.revisions, revision.name: record})

    def writer(self, revision: LiveRevision) -> IndexWriter:
        """Return the writer of a revision, opened when needed.

        Raises:
            StateVersionError: what is there is of another version or another shape.
            RevisionUnavailableError: it is damaged, or another process writes it.
            StoreFullError: the volume has no room.
        """
        if revision.writer is None:
            revision.writer = self._store.open(revision.config)
            # The store knows best: its folder may have been removed to have it built again.
            revision.phase, revision.dense = (
                ("Ready", revision.writer.dense) if revision.writer.ready else ("Pending", False)
            )
            revision.ready_at = (revision.ready_at or self._now()) if revision.writer.ready else None
        return revision.writer

    def in_order(self) -> list[LiveRevision]:
        """Return the revisions, those that serve first."""
        return sorted(self._live.values(), key=lambda revision: revision.phase != "Ready")

    def lead(self) -> LiveRevision | None:
        """Return the revision whose changes are told as those of the knowledge base: the newest ready one."""
        ready = [revision for revision in self._live.values() if revision.ready_at is not None]
        return (
            max(ready, key=lambda revision: revision.ready_at or "") if ready else next(iter(self._live.values()), None)
        )

    def indexed_sources(self) -> frozenset[str]:
        """Return the sources of which some open revision holds a document."""
        writers = [revision.writer for revision in self._live.values() if revision.writer is not None]
        return frozenset(key.source for writer in writers for key in writer.documents())

    def close(self) -> None:
        """Release every revision."""
        for revision in self._live.values():
            _close(revision)
        self._live.clear()

    def _begin(self, revision: RevisionConfig) -> None:
        if revision.name in self._live:
            _close(self._live[revision.name])
        kept = self.kept.revisions[revision.name]
        self._live[revision.name] = LiveRevision(revision, created_at=kept.created_at, ready_at=kept.ready_at)

    def _drop_unwanted(self, wanted: Set[str]) -> None:
        for name in sorted(self.kept.revisions.keys() - wanted):
            if name in self._live:
                _close(self._live.pop(name))
            self._store.drop(name)
            self._remember(revisions={known: kept for known, kept in self.kept.revisions.items() if known != name})

    def _remember(self, **changes: object) -> None:
        kept = self.kept.model_copy(update=changes)
        if kept != self.kept:
            self._file.write(kept)
            self.kept = kept


def _close(revision: LiveRevision) -> None:
    if revision.writer is not None:
        revision.writer.close()
        revision.writer = None
