"""A small world for the loop: folders as sources, stores in memory, time that stands still until it is moved."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig, RevisionState, SourceConfig, VolumeFrom
from tidegate_api.shape import ALGORITHMS, ChunkingShape, EmbedderFingerprint, RevisionShape
from tidegate_runtime.errors import StoreFullError
from tidegate_runtime.indexer.histories import FolderHistories
from tidegate_runtime.indexer.loop import IndexLoop, Parts
from tidegate_runtime.indexer.report import Report
from tidegate_runtime.indexer.roster import Roster
from tidegate_runtime.indexer.snapshot import SourceReader
from tidegate_runtime.indexer.state import KeptState, StateFile
from tidegate_runtime.indexer.watching import SourceWatch
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.ports import (
    DocumentKey,
    DocumentRecord,
    FloatVector,
    RevisionInspection,
    RevisionStats,
    SourceRules,
)


class FakeClock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> str:
        return f"2026-01-01T00:{int(self.seconds) // 60:02d}:{int(self.seconds) % 60:02d}Z"


class FakeConfigs:
    """A config that a test replaces."""

    def __init__(self) -> None:
        self.config: IndexerConfig | None = None
        self.problem = ""

    def read(self) -> IndexerConfig | None:
        return self.config


class FakeWriter:
    """An `IndexWriter` in memory. `before_commit` runs first and may raise."""

    def __init__(self) -> None:
        self.records: dict[DocumentKey, DocumentRecord] = {}
        self.rules: Mapping[str, SourceRules] = {}
        self.generation = 0
        self.ready = False
        self.dense = False
        self.closed = False
        self.commits: list[tuple[tuple[DocumentRecord, ...], tuple[DocumentKey, ...]]] = []
        self.before_commit: Callable[[Sequence[DocumentRecord]], None] = lambda _: None

    def documents(self) -> dict[DocumentKey, str]:
        return {key: record.content_hash for key, record in self.records.items()}

    def commit(
        self,
        *,
        upserts: Sequence[DocumentRecord] = (),
        deletes: Sequence[DocumentKey] = (),
        rules: Mapping[str, SourceRules] | None = None,
    ) -> int:
        self.before_commit(upserts)
        before = dict(self.records), self.rules
        for key in deletes:
            self.records.pop(key, None)
        self.records.update({record.key: record for record in upserts})
        self.rules = self.rules if rules is None else dict(rules)
        if (self.records, self.rules) != before:
            self.generation += 1
        if upserts or deletes:
            self.commits.append((tuple(upserts), tuple(deletes)))
        return self.generation

    def mark_ready(self, *, dense: bool) -> None:
        self.ready, self.dense = True, dense

    def stats(self) -> RevisionStats:
        chunks = [chunk for record in self.records.values() for chunk in record.chunks]
        return RevisionStats(len(self.records), len(chunks), 0, 0, sum(c.truncated for c in chunks), self.generation)

    def compact(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class FakeInspection:
    """Finds nothing wrong, or an analyzer that is; what `prove` does with a real store is tested with a real store."""

    everything = None

    def __init__(self, writer: FakeWriter, *, sound: bool) -> None:
        self._writer = writer
        self.snapshot = SimpleNamespace(analyse=lambda text: SimpleNamespace(terms=("term",) if sound else (text,)))

    def sample(self, count: int) -> list[object]:
        return []

    def contents(self) -> Iterator[tuple[DocumentKey, str]]:
        for key, record in self._writer.records.items():
            for chunk in record.chunks:
                yield key, chunk.content

    def rows_without_vector(self) -> int:
        return 0


class FakeStore:
    """Revisions in memory; they outlive a loop, as folders outlive a process."""

    def __init__(self) -> None:
        self.writers: dict[str, FakeWriter] = {}
        self.dropped: list[str] = []
        self.sound = True
        self.before_open: Callable[[RevisionConfig], None] = lambda _: None

    def open(self, revision: RevisionConfig) -> FakeWriter:
        self.before_open(revision)
        return self.writers.setdefault(revision.name, FakeWriter())

    def inspect(self, name: str) -> RevisionInspection:
        return cast(RevisionInspection, FakeInspection(self.writers[name], sound=self.sound))

    def drop(self, name: str) -> None:
        self.writers.pop(name, None)
        self.dropped.append(name)


class FakeStateFile(StateFile):
    """A state file on a volume that may be full."""

    full = False

    def write(self, state: KeptState) -> None:
        if self.full:
            raise StoreFullError("no room to write state.json; enlarge the volume")
        super().write(state)


class CountingEmbedder(FakeEmbedder):
    """Counts what it embeds; texts that hold `poison` come out without a direction."""

    def __init__(self, fingerprint: EmbedderFingerprint = FAKE_FINGERPRINT) -> None:
        super().__init__(fingerprint)
        self.embedded: list[str] = []
        self.poison: str | None = None

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        self.embedded.extend(texts)
        vectors = super().embed_passages(texts)
        for row, text in enumerate(texts):
            if self.poison is not None and self.poison in text:
                vectors[row] = np.nan
        return vectors


def make_shape(*, size_tokens: int = 50, languages: Sequence[str] = ("*",)) -> RevisionShape:
    """Return a shape for the fake encoder."""
    return RevisionShape(
        language="en",
        chunking=ChunkingShape(strategy="recursive", size_tokens=size_tokens, overlap_tokens=0),
        embedder=FAKE_FINGERPRINT.model_copy(update={"languages": list(languages)}),
        algorithms=ALGORITHMS,
    )


@dataclass
class World:
    """A loop and everything around it."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    configs: FakeConfigs = field(default_factory=FakeConfigs)
    store: FakeStore = field(default_factory=FakeStore)
    embedder: CountingEmbedder = field(default_factory=CountingEmbedder)
    states: list[IndexerState] = field(default_factory=list)
    open_embedder: Callable[[EmbedderFingerprint], CountingEmbedder] | None = None
    watch: bool = False

    def __post_init__(self) -> None:
        self.source("docs").mkdir(parents=True)
        self.root.mkdir()
        self.start()

    @property
    def root(self) -> Path:
        """Return where state.json lies."""
        return self.folder / "root"

    def start(self) -> None:
        """Start a loop, as a new process would; the store and the folders are as they were."""
        self.state_file = FakeStateFile(self.root)
        roster = Roster(self.store, file=self.state_file, now=self.clock.now)
        histories = FolderHistories(self.root, new=not roster.kept.revisions)
        parts = Parts(
            configs=self.configs,
            sources=SourceWatch(SourceReader(histories=histories), watch=self.watch, monotonic=self.clock.monotonic),
            store=self.store,
            roster=roster,
            open_embedder=lambda fingerprint: (self.open_embedder or (lambda _: self.embedder))(fingerprint),
            clock=self.clock,
        )
        self.loop_stop = parts.stop
        self.loop = IndexLoop(
            parts, report=Report(process="one", sync=roster.kept.sync), publish=lambda state: self.states.append(state)
        )

    def source(self, name: str) -> Path:
        """Return the folder of a source."""
        return self.folder / "sources" / name

    def write(self, name: str, text: str, *, source: str = "docs") -> None:
        """Write a document."""
        path = self.source(source) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def configure(
        self, *shapes: RevisionShape, sources: Sequence[SourceConfig] | None = None, **changes: object
    ) -> None:
        """Put a config in force."""
        config = IndexerConfig(
            knowledge_base="kb",
            namespace="ns",
            language="auto",
            sources=[self.source_config("docs")] if sources is None else list(sources),
            revisions=[RevisionConfig(name=shape.revision_name("kb"), shape=shape) for shape in shapes],
        )
        self.configs.config = config.model_copy(update=changes)

    def source_config(self, name: str, **changes: object) -> SourceConfig:
        """Return the config of a source."""
        config = SourceConfig(name=name, volume=VolumeFrom(claim_name="claim", path=str(self.source(name))))
        return config.model_copy(update=changes)

    def tick(self, *, seconds: float = 0.0) -> IndexerState:
        """Let time pass, do what is due, return what is told."""
        self.clock.seconds += seconds
        self.loop.tick()
        return self.state

    @property
    def state(self) -> IndexerState:
        """Return what was told last."""
        return self.states[-1]

    @property
    def revision(self) -> RevisionState:
        """Return what was told last of the only revision."""
        (revision,) = self.state.revisions
        return revision

    @property
    def writer(self) -> FakeWriter:
        """Return the store of the only revision."""
        (writer,) = self.store.writers.values()
        return writer

    def ids(self) -> list[str]:
        """Return the documents of the only revision."""
        return sorted(f"{key.source}/{key.document_id}" for key in self.writer.records)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with one empty source, `docs`."""
    return World(tmp_path)


@pytest.fixture
def shape() -> Callable[..., RevisionShape]:
    """Return what makes shapes."""
    return make_shape
