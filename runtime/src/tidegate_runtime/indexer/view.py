"""What a pass compares revisions with: the sources as they were last seen, and the rules for them. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_api.config import IndexerConfig
from tidegate_runtime.indexer.changes import held_sources
from tidegate_runtime.indexer.snapshot import SourceSnapshot
from tidegate_runtime.ports import SourceRules


@dataclass(frozen=True, slots=True)
class SourcesView:
    """The sources at one moment. A configured source without a snapshot cannot be read now."""

    config: IndexerConfig
    snapshots: Mapping[str, SourceSnapshot]
    held: frozenset[str]

    @staticmethod
    def of(
        config: IndexerConfig, *, snapshots: Mapping[str, SourceSnapshot], holds: Mapping[str, str]
    ) -> "SourcesView":
        """Return the view of a config's sources."""
        configured = {source.name for source in config.sources}
        known = {name: snapshot for name, snapshot in snapshots.items() if name in configured}
        return SourcesView(config, known, held_sources(holds, sync=config.sync) & configured)

    @property
    def configured(self) -> frozenset[str]:
        """Return the names of all sources of the config."""
        return frozenset(source.name for source in self.config.sources)

    @property
    def readable(self) -> bool:
        """Whether every source could be read."""
        return self.configured == self.snapshots.keys()

    @property
    def complete(self) -> bool:
        """Whether agreeing with this view means agreeing with the sources."""
        return self.readable and not self.held

    @property
    def documents(self) -> int:
        """Return how many documents the readable sources hold."""
        return sum(len(snapshot.documents) for snapshot in self.snapshots.values())

    def rules(self) -> dict[str, SourceRules]:
        """Return what holds for every document of a source."""
        return {
            source.name: SourceRules(tenants=tuple(source.tenants), metadata=dict(source.metadata))
            for source in self.config.sources
        }

    def scripts(self) -> Counter[str]:
        """Return the characters per script of all documents."""
        total: Counter[str] = Counter()
        for snapshot in self.snapshots.values():
            total.update(snapshot.scripts)
        return total
