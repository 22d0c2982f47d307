"""The indexer killed and started again, with random edits in between.

Whatever happened on the way, the end must be byte-equal to a fresh build: the same ids and the same
scores, to the last bit, for fixed queries.
"""

import json
import random
import time
from pathlib import Path

import pytest
from tests.integration.indexer_process import Indexer, fill, make_shape, text_of, wait_for

from tidegate_api.config import RevisionConfig


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
        self._misfits: list[str] = []
        self._tenants: list[str] = ["*"]
        self._sizes = [40]
        self._number = 10_000

    def some(self) -> None:
        """Make some edits."""
        kinds = [self._add, self._change, self._change, self._delete, self._rename, self._line, self._misfit]
        for _ in range(self._chance.randint(1, 12)):
            self._chance.choice(kinds)()
        if self._chance.random() < 0.3:
            self._chance.choice([self._rules, self._revisions])()
        self._write_lines()
        self._configure()

    def _files(self) -> list[Path]:
        return sorted(self._docs.rglob("*.md"))

    def _add(self) -> None:
        (self._docs / f"{self._next()}.md").write_text(text_of(self._chance))

    def _change(self) -> None:
        self._chance.choice(self._files()).write_text(text_of(self._chance, words=self._chance.choice([5, 60, 300])))

    def _delete(self) -> None:
        if len(files := self._files()) > 10:
            self._chance.choice(files).unlink()

    def _rename(self) -> None:
        folder = self._docs / self._chance.choice(["", "sub", "sub/deeper"])
        folder.mkdir(parents=True, exist_ok=True)
        self._chance.choice(self._files()).rename(folder / f"{self._next()}.md")

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

    def _misfit(self) -> None:
        """Add a document whose metadata does not fit the schema, or correct one: never back, so none has a past."""
        fits = bool(self._misfits) and self._chance.random() < 0.5
        name = self._misfits.pop() if fits else f"misfit-{self._next()}"
        if not fits:
            self._misfits.append(name)
        metadata = {"year": 2020 if fits else "next"}
        self._lines[name] = json.dumps({"id": name, "text": text_of(self._chance), "metadata": metadata})

    @property
    def misfits(self) -> int:
        """Return how many documents do not fit the schema now."""
        return len(self._misfits)

    def _next(self) -> int:
        self._number += 1
        return self._number

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

    assert (state.sync.failed, state.message) == (edits.misfits, ""), f"seed {seed}"
    assert {path.parent.name for path in indexer.root.glob("*/manifest.json")} == {
        r.name for r in indexer.config.revisions
    }
    indexer.assert_equal_to_a_fresh_build(hint=f"seed {seed}")
