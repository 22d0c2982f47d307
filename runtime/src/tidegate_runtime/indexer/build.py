"""The loop put together, and one synchronous pass of it for whoever needs an index and no process.

Benchmarks and tests build with the very parts that an indexer runs with, so what they measure and
compare is what is deployed.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate_api.config import IndexerConfig, IndexerState, SourceConfig
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.indexer.clock import SystemClock
from tidegate_runtime.indexer.config_source import ConfigSource
from tidegate_runtime.indexer.histories import FolderHistories
from tidegate_runtime.indexer.loop import IndexLoop, Parts
from tidegate_runtime.indexer.report import Report
from tidegate_runtime.indexer.revisions import EmbeddedRevisions
from tidegate_runtime.indexer.roster import Roster
from tidegate_runtime.indexer.snapshot import SourceReader
from tidegate_runtime.indexer.sources import ListedFile, read_file
from tidegate_runtime.indexer.state import StateFile, claimed
from tidegate_runtime.indexer.stopping import HeedingEmbedder, StopSign
from tidegate_runtime.indexer.watching import SourceWatch
from tidegate_runtime.indexer.work import OpenEmbedder
from tidegate_runtime.ports import Embedder


def make_loop(
    root: Path,
    *,
    configs: ConfigSource,
    open_embedder: OpenEmbedder,
    publish: Callable[[IndexerState], None],
    watch: bool = False,
    stop: StopSign | None = None,
    locate: Callable[[SourceConfig], SourceConfig] = lambda source: source,
) -> IndexLoop:
    """Put a loop together over the revisions in `root`, which this process must have claimed; `stop` ends it.

    `locate` says where a source's newest content lies.

    Raises:
        StateVersionError: the folder is of another version.
    """
    clock, store = SystemClock(), EmbeddedRevisions(root)
    store.sweep()
    stop = stop or StopSign()

    def read_unless_stopped(file: ListedFile) -> bytes:
        stop.heed()
        return read_file(file)

    def open_unless_stopped(fingerprint: EmbedderFingerprint) -> Embedder:
        stop.heed()  # asked for with each document that is cut
        return HeedingEmbedder(open_embedder(fingerprint), stop)

    roster = Roster(store, file=StateFile(root), now=clock.now)
    histories = FolderHistories(root, new=not roster.kept.revisions)
    reader = SourceReader(read=read_unless_stopped, histories=histories, locate=locate)
    parts = Parts(
        configs=configs,
        sources=SourceWatch(reader, watch=watch, monotonic=clock.monotonic),
        store=store,
        roster=roster,
        open_embedder=open_unless_stopped,
        clock=clock,
        stop=stop,
    )
    return IndexLoop(parts, report=Report(process=uuid.uuid4().hex, sync=roster.kept.sync), publish=publish)


@dataclass(frozen=True, slots=True)
class GivenConfig:
    """A config that does not change."""

    config: IndexerConfig
    problem: str = ""

    def read(self) -> IndexerConfig:
        """Return the config."""
        return self.config


def build_revision(root: Path, config: IndexerConfig, embedder: Embedder) -> None:
    """Make the revisions of `config` below `root` agree with its sources, in one pass.

    Raises:
        RevisionUnavailableError: a revision is not ready afterwards; the message says why.
        FolderBusyError: an indexer runs there.
    """
    states: list[IndexerState] = []
    with claimed(root):
        loop = make_loop(root, configs=GivenConfig(config), open_embedder=lambda _: embedder, publish=states.append)
        loop.tick()
        loop.close()
    told = states[-1]
    for revision in told.revisions:
        if revision.phase != "Ready":
            raise RevisionUnavailableError(f"revision {revision.name}: {revision.message or told.message}")
