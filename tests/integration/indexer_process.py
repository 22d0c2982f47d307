"""An indexer as a process over a folder of its own, and what its revisions answer."""

import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig, SourceConfig, VolumeFrom
from tidegate_api.shape import ALGORITHMS, ChunkingShape, EmbedderFingerprint, RevisionShape
from tidegate_runtime.indexer.build import build_revision
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.ports import Permission
from tidegate_runtime.stores.embedded import EmbeddedReader

WAIT_SECONDS = 60.0
VOCABULARY = [f"word{number}" for number in range(400)]
QUERIES = [" ".join(VOCABULARY[start : start + 4]) for start in range(0, 400, 20)]
CALLERS = [Permission(), Permission(tenant="acme"), Permission(tenant="globex", groups=frozenset({"staff"}))]


def make_shape(size_tokens: int = 40, *, embedder: EmbedderFingerprint = FAKE_FINGERPRINT) -> RevisionShape:
    return RevisionShape(
        language="en",
        chunking=ChunkingShape(strategy="markdown", size_tokens=size_tokens, overlap_tokens=4),
        embedder=embedder,
        metadata_schema={"year": "number"},
        algorithms=ALGORITHMS,
    )


def wait_for(condition: Callable[[], bool], *, what: Callable[[], object]) -> None:
    """Wait until `condition` holds; fail with `what` when it does not."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


def rankings(folder: Path) -> list[object]:
    """Return what a revision answers: top 50 of both legs with scores, as bytes, for every caller."""
    reader = EmbeddedReader.open(folder)
    snapshot, embedder = reader.snapshot(), FakeEmbedder()
    answers: list[object] = [sorted(snapshot.provides)]
    for caller in CALLERS:
        selection = snapshot.select(caller, None)
        for query in QUERIES:
            lexical = snapshot.lexical(snapshot.analyse(query), selection, top_k=50)
            dense = snapshot.dense(embedder.embed_query(query), selection, top_k=50)
            answers += [
                (snapshot.chunk_ids(leg.rows), leg.scores.tobytes(), snapshot.chunks(leg.rows))
                for leg in (lexical, dense)
            ]
    reader.close()
    return answers


@dataclass
class Indexer:
    """An indexer process over one folder, and the config that it follows."""

    folder: Path
    config: IndexerConfig
    process: "subprocess.Popen[bytes] | None" = None
    port: int = 0
    rounds: int = 0
    log: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def configure(self, **changes: object) -> str:
        """Replace the config, with a sync token of its own, and return the token."""
        self.rounds += 1
        self.config = self.config.model_copy(update={**changes, "sync": f"round-{self.rounds}"})
        replacement = self.folder / "config.new"
        replacement.write_text(self.config.model_dump_json(by_alias=True))
        replacement.replace(self.folder / "config.json")
        return self.config.sync

    def start(self, *arguments: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "tidegate_runtime.indexer", "--config", str(self.folder / "config.json")]
        command += ["--root", str(self.root), "--listen", f"127.0.0.1:{self.port}", "--threads", "1", *arguments]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(WAIT_SECONDS)
            self.process = None

    def state(self) -> IndexerState | None:
        """Return what the process tells, None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/state", timeout=5) as answer:
                return IndexerState.model_validate_json(answer.read())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert self.process is None or self.process.poll() is None, self.said()
            return None

    def said(self) -> str:
        return (self.folder / "log").read_text()[-4000:]

    def settle(self) -> IndexerState:
        """Wait until the present config is in force and return the state."""

        def settled() -> bool:
            state = self.state()
            return (
                state is not None
                and state.sync.last_handled == self.config.sync
                and {revision.name for revision in state.revisions if revision.phase == "Ready"}
                == {revision.name for revision in self.config.revisions}
            )

        wait_for(settled, what=lambda: (self.state(), self.said()))
        state = self.state()
        assert state is not None
        return state

    def assert_equal_to_a_fresh_build(self, *, hint: str) -> None:
        fresh = self.folder / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        build_revision(fresh, self.config, FakeEmbedder())
        for revision in self.config.revisions:
            assert rankings(self.root / revision.name) == rankings(fresh / revision.name), hint


def new_indexer(folder: Path) -> Indexer:
    """Return an indexer that is not started, with one empty source on a volume."""
    (folder / "docs").mkdir()
    source = SourceConfig(
        name="docs", volume=VolumeFrom(claim_name="claim", path=str(folder / "docs")), refresh_seconds=0
    )
    shape = make_shape()
    return Indexer(
        folder,
        IndexerConfig(
            knowledge_base="kb",
            namespace="ns",
            language="en",
            sources=[source],
            revisions=[RevisionConfig(name=shape.revision_name("kb"), shape=shape)],
        ),
    )


def text_of(source: random.Random, *, words: int = 60) -> str:
    paragraphs = [" ".join(source.choices(VOCABULARY, k=source.randint(1, words))) for _ in range(source.randint(1, 4))]
    return f"# {source.choice(VOCABULARY)}\n\n" + "\n\n".join(paragraphs) + "\n"


def fill(folder: Path, numbers: Iterable[int], source: random.Random) -> None:
    for number in numbers:
        (folder / f"{number:04}.md").write_text(text_of(source))
