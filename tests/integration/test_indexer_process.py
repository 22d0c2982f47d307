"""The indexer as a process: kills, restarts, random edits, a second one, a full volume.

Whatever happened on the way, the end must be byte-equal to a fresh build: the same ids and the same
scores, to the last bit, for fixed queries.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig, SourceConfig, VolumeFrom
from tidegate_api.shape import ALGORITHMS, ChunkingShape, RevisionShape
from tidegate_runtime.indexer.build import build_revision
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.ports import Permission
from tidegate_runtime.stores.embedded import EmbeddedReader

WAIT_SECONDS = 60.0
VOCABULARY = [f"word{number}" for number in range(400)]
QUERIES = [" ".join(VOCABULARY[start : start + 4]) for start in range(0, 400, 20)]
CALLERS = [Permission(), Permission(tenant="acme"), Permission(tenant="globex", groups=frozenset({"staff"}))]


def make_shape(size_tokens: int = 40) -> RevisionShape:
    return RevisionShape(
        language="en",
        chunking=ChunkingShape(strategy="markdown", size_tokens=size_tokens, overlap_tokens=4),
        embedder=FAKE_FINGERPRINT,
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


@pytest.fixture
def indexer(tmp_path: Path) -> Iterator[Indexer]:
    """Return an indexer that is not started, with one empty source on a volume."""
    (tmp_path / "docs").mkdir()
    source = SourceConfig(
        name="docs", volume=VolumeFrom(claim_name="claim", path=str(tmp_path / "docs")), refresh_seconds=0
    )
    shape = make_shape()
    made = Indexer(
        tmp_path,
        IndexerConfig(
            knowledge_base="kb",
            namespace="ns",
            language="en",
            sources=[source],
            revisions=[RevisionConfig(name=shape.revision_name("kb"), shape=shape)],
        ),
    )
    yield made
    made.kill()


def text_of(source: random.Random, *, words: int = 60) -> str:
    paragraphs = [" ".join(source.choices(VOCABULARY, k=source.randint(1, words))) for _ in range(source.randint(1, 4))]
    return f"# {source.choice(VOCABULARY)}\n\n" + "\n\n".join(paragraphs) + "\n"


def fill(folder: Path, numbers: Iterable[int], source: random.Random) -> None:
    for number in numbers:
        (folder / f"{number:04}.md").write_text(text_of(source))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_build_killed_twenty_times_ends_equal_to_a_fresh_one(indexer: Indexer) -> None:
    seed = time.time_ns()
    chance = random.Random(seed)
    indexer.configure()
    (name,) = [revision.name for revision in indexer.config.revisions]
    manifest = indexer.root / name / "manifest.json"
    progress: list[int] = []

    def written_at() -> int:
        return manifest.stat().st_mtime_ns if manifest.exists() else 0

    for kill in range(20):
        fill(indexer.folder / "docs", range(80 * kill, 80 * kill + 80), chance)  # more than one batch can take
        before = written_at()
        indexer.start()
        # From the first write of this process on, any moment will do.
        wait_for(lambda: written_at() != before, what=indexer.said)  # noqa: B023 - called before the next round
        time.sleep(chance.uniform(0, 0.3))
        indexer.kill()
        progress.append(json.loads(manifest.read_bytes())["contentGeneration"])
    # A new token: an earlier round may have come to its end, and its answer must not be taken for the last one's.
    indexer.configure()
    indexer.start()

    state = indexer.settle()

    assert (state.revisions[0].documents, state.sync.failed) == (1600, 0)
    assert progress == sorted(progress)
    indexer.assert_equal_to_a_fresh_build(hint=f"seed {seed}")


class Edits:
    """Random edits of sources and config, like those of a careless year."""

    def __init__(self, indexer: Indexer, chance: random.Random) -> None:
        self._indexer = indexer
        self._chance = chance
        self._docs = indexer.folder / "docs"
        self._lines: dict[str, str] = {}
        self._tenants: list[str] = ["*"]
        self._sizes = [40]
        self._number = 10_000

    def some(self) -> None:
        """Make some edits."""
        for _ in range(self._chance.randint(1, 12)):
            self._chance.choice([self._add, self._change, self._change, self._delete, self._rename, self._line])()
        if self._chance.random() < 0.3:
            self._chance.choice([self._rules, self._revisions])()
        self._write_lines()
        self._configure()

    def _files(self) -> list[Path]:
        return sorted(self._docs.rglob("*.md"))

    def _add(self) -> None:
        self._number += 1
        (self._docs / f"{self._number}.md").write_text(text_of(self._chance))

    def _change(self) -> None:
        self._chance.choice(self._files()).write_text(text_of(self._chance, words=self._chance.choice([5, 60, 300])))

    def _delete(self) -> None:
        if len(files := self._files()) > 10:
            self._chance.choice(files).unlink()

    def _rename(self) -> None:
        self._number += 1
        folder = self._docs / self._chance.choice(["", "sub", "sub/deeper"])
        folder.mkdir(parents=True, exist_ok=True)
        self._chance.choice(self._files()).rename(folder / f"{self._number}.md")

    def _line(self) -> None:
        name = f"line-{self._chance.randint(0, 30)}"
        if self._chance.random() < 0.3:
            self._lines.pop(name, None)
            return
        line: dict[str, object] = {"id": name, "text": text_of(self._chance), "metadata": {"year": 2020}}
        if self._chance.random() < 0.5:
            line["tenants"] = [self._chance.choice(["acme", "globex"])]
        if self._chance.random() < 0.3:
            line["groups"] = ["staff"]
        self._lines[name] = json.dumps(line)

    def _write_lines(self) -> None:
        order = list(self._lines.values())
        self._chance.shuffle(order)
        (self._docs / "lines.jsonl").write_text("".join(f"{line}\n" for line in order))

    def _rules(self) -> None:
        self._tenants = self._chance.choice([["*"], ["acme"], ["acme", "globex"]])

    def _revisions(self) -> None:
        self._sizes = self._chance.choice([[40], [20], [40, 20], [20, 80]])

    def _configure(self) -> None:
        shapes = [make_shape(size) for size in self._sizes]
        (source,) = self._indexer.config.sources
        self._indexer.configure(
            sources=[source.model_copy(update={"tenants": self._tenants, "metadata": {"rank": len(self._tenants)}})],
            revisions=[RevisionConfig(name=shape.revision_name("kb"), shape=shape) for shape in shapes],
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_random_edits_with_kills_end_equal_to_a_fresh_build(indexer: Indexer) -> None:
    seed = time.time_ns()
    chance = random.Random(seed)
    fill(indexer.folder / "docs", range(150), chance)
    edits = Edits(indexer, chance)
    indexer.configure()
    for round_number in range(24):
        if indexer.process is None:
            indexer.start()
        if round_number % 6 == 0:
            indexer.settle()
        edits.some()
        if chance.random() < 0.7:
            wait_for(lambda: indexer.state() is not None, what=indexer.said)
            time.sleep(chance.uniform(0, 1.0))
            indexer.kill()
    if indexer.process is None:
        indexer.start()

    state = indexer.settle()

    assert (state.sync.failed, state.message) == (0, "")
    assert {path.name for path in indexer.root.iterdir() if path.is_dir()} == {r.name for r in indexer.config.revisions}
    indexer.assert_equal_to_a_fresh_build(hint=f"seed {seed}")


def test_an_edit_is_seen_in_seconds_when_the_sources_are_watched(indexer: Indexer) -> None:
    fill(indexer.folder / "docs", range(3), random.Random(1))
    indexer.configure()
    indexer.start("--watch")
    indexer.settle()
    began = time.monotonic()
    (indexer.folder / "docs" / "new.md").write_text("words of a new document")

    def seen() -> bool:
        state = indexer.state()
        return state is not None and state.revisions[0].documents == 4

    wait_for(seen, what=indexer.said)
    assert time.monotonic() - began < 5


def test_it_ends_cleanly_when_asked_to(indexer: Indexer) -> None:
    indexer.configure()
    indexer.start()
    indexer.settle()
    process = indexer.process
    assert process is not None

    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 0
    indexer.process = None


def test_a_second_indexer_of_the_same_folder_says_who_holds_it_and_ends(indexer: Indexer) -> None:
    indexer.configure()
    indexer.start()
    indexer.settle()
    first = indexer.process
    assert first is not None

    indexer.start()
    second = indexer.process
    assert second is not None

    assert second.wait(WAIT_SECONDS) == 1
    assert f"is held by process {first.pid} on " in indexer.said()
    indexer.process = first


def test_a_state_folder_of_another_version_is_refused_with_the_next_step(indexer: Indexer) -> None:
    indexer.configure()
    indexer.root.mkdir()
    (indexer.root / "state.json").write_text('{"format": 99}')
    indexer.start()
    process = indexer.process
    assert process is not None

    assert process.wait(WAIT_SECONDS) == 1
    assert "state.json has format 99, this version reads 1; run the version that wrote it" in indexer.said()


def test_a_port_that_is_taken_is_named(indexer: Indexer) -> None:
    indexer.configure()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "tidegate_runtime.indexer", "--config", str(indexer.folder / "config.json")]
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = subprocess.run(
            [*command, "--root", str(indexer.root), "--listen", address],
            capture_output=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    assert ended.returncode == 1
    assert b"address already in use" in ended.stderr.lower()


@pytest.fixture
def small_volume(indexer: Indexer) -> Iterator[Path]:
    """Put the indexer's root on a volume of 2 MiB, where this system lets us make one."""
    indexer.root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(indexer.root)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip(
            "a volume of a given size needs root and the right to mount; the store's own tests play a full disk"
        )
    yield indexer.root
    indexer.kill()
    subprocess.run(["umount", "-l", str(indexer.root)], check=True)


def test_a_full_volume_pauses_the_build_and_more_room_ends_the_pause(indexer: Indexer, small_volume: Path) -> None:
    fill(indexer.folder / "docs", range(1500), random.Random(2))
    indexer.configure()
    indexer.start()

    def paused() -> bool:
        state = indexer.state()
        return state is not None and any("full" in revision.message for revision in state.revisions)

    wait_for(paused, what=indexer.said)
    state = indexer.state()
    assert state is not None
    assert state.revisions[0].phase == "Building"
    assert "enlarge" in state.revisions[0].message

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_volume)], check=True)

    assert indexer.settle().revisions[0].documents == 1500
    indexer.assert_equal_to_a_fresh_build(hint="after a full volume")
