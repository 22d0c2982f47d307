"""What building costs beside the encoder, and what a look costs when nothing has changed.

A corpus goes through the indexer's own loop, once as one file of JSON lines and once as a folder of
Markdown files: listed, read, cut, embedded, committed, merged, proven. CPU is that of the whole process
less that inside calls of the encoder; what is loaded once a process (the model, the dictionary of the
analyzer) is left out. Then sync tokens ask for looks that find nothing.

    python benchmarks/build.py [--set hotpotqa-500] [--model minilm|fake]

Prints RESULT lines; a missed bar is named and makes the exit status 1.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builds import SOURCE, default_shape
from retrieval_sets import RetrievalSet, load

from tidegate_api.builtins import BUILTINS
from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig, SourceConfig, VolumeFrom
from tidegate_api.shape import EmbedderFingerprint, RevisionShape
from tidegate_runtime.indexer.build import make_loop
from tidegate_runtime.indexer.loop import IndexLoop
from tidegate_runtime.indexer.state import claimed
from tidegate_runtime.models.fake import FAKE_FINGERPRINT
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.ports import Embedder, FloatVector, Tokenizer
from tidegate_runtime.stores.embedded.analyzer import terms_of

BAR_MS_PER_CHUNK = 1.0
LOOKS = 15
# A file that was written less than two seconds ago is read once more at the next look.
SETTLED_SECONDS = 2.1


class MeasuredEmbedder:
    """An encoder that counts the CPU seconds spent inside it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.cpu_seconds = 0.0
        self.texts = 0

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self._embedder.fingerprint

    @property
    def tokenizer(self) -> Tokenizer:
        return self._embedder.tokenizer

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        began = time.process_time()
        vectors = self._embedder.embed_passages(texts)
        self.cpu_seconds += time.process_time() - began
        self.texts += len(texts)
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        return self._embedder.embed_query(text)


@dataclass
class Config:
    """A config source whose sync token can be changed."""

    config: IndexerConfig
    problem: str = ""

    def read(self) -> IndexerConfig:
        return self.config

    def ask_for_a_look(self, number: int) -> None:
        self.config = self.config.model_copy(update={"sync": f"look-{number}"})


def write_lines(data: RetrievalSet, folder: Path) -> None:
    """Write the corpus as one file of JSON lines."""
    lines = (json.dumps({"id": each.id, "title": each.title, "text": each.text}) for each in data.documents)
    (folder / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")


def write_files(data: RetrievalSet, folder: Path) -> None:
    """Write the corpus as one Markdown file per document, a hundred to a folder."""
    for number, each in enumerate(data.documents):
        path = folder / f"{number // 100:03}" / f"{number % 100:02}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {each.title}\n\n{each.text}\n", encoding="utf-8")


def config_of(folder: Path, shape: RevisionShape) -> Config:
    """Return the config of a knowledge base with one source."""
    return Config(
        IndexerConfig(
            knowledge_base="bench",
            namespace="bench",
            language="en",
            sources=[SourceConfig(name=SOURCE, volume=VolumeFrom(claim_name="bench", path=str(folder)))],
            revisions=[RevisionConfig(name=shape.revision_name("bench"), shape=shape)],
        )
    )


def cpu_of(loop: IndexLoop) -> float:
    """Return the CPU seconds of what is due now."""
    began = time.process_time()
    loop.tick()
    return time.process_time() - began


def measure(name: str, folder: Path, embedder: Embedder, shape: RevisionShape) -> float:
    """Build, look again and again, print; return the milliseconds of CPU per chunk outside the encoder."""
    measured, configs, states = MeasuredEmbedder(embedder), config_of(folder, shape), list[IndexerState]()
    with tempfile.TemporaryDirectory() as place, claimed(Path(place)):
        loop = make_loop(
            Path(place), configs=configs, open_embedder=lambda _: measured, publish=lambda state: states.append(state)
        )
        cpu_seconds = cpu_of(loop)
        (revision,) = states[-1].revisions
        assert revision.phase == "Ready", revision
        looks = []
        for number in range(LOOKS):
            configs.ask_for_a_look(number)
            looks.append(cpu_of(loop))
        assert measured.texts <= 1.1 * revision.chunks
        loop.close()
    outside_ms = (cpu_seconds - measured.cpu_seconds) / revision.chunks * 1000
    print(f"RESULT {name}_chunks={revision.chunks}")
    print(f"RESULT {name}_cpu_outside_encoder_ms_per_chunk={outside_ms:.3f}")
    print(f"RESULT {name}_cpu_inside_encoder_ms_per_chunk={measured.cpu_seconds / revision.chunks * 1000:.3f}")
    print(f"RESULT {name}_embedded_per_chunk={measured.texts / revision.chunks:.3f}")
    print(f"RESULT {name}_look_without_change_cpu_ms={statistics.median(looks) * 1000:.2f}")
    return outside_ms


def main() -> int:
    """Measure and compare with the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="hotpotqa-500")
    parser.add_argument("--model", choices=("minilm", "fake"), default="minilm")
    chosen = parser.parse_args()
    fingerprint = FAKE_FINGERPRINT if chosen.model == "fake" else BUILTINS[chosen.model]
    shape = default_shape("en").model_copy(update={"embedder": fingerprint})
    data, embedder = load(chosen.set), open_embedder(fingerprint)
    embedder.embed_passages(["the first call loads what a model loads late"])
    terms_of("年假规定")
    missed = False
    for name, write in (("lines", write_lines), ("files", write_files)):
        with tempfile.TemporaryDirectory() as folder:
            write(data, Path(folder))
            time.sleep(SETTLED_SECONDS)
            outside_ms = measure(name, Path(folder), embedder, shape)
        if outside_ms > BAR_MS_PER_CHUNK:
            print(f"MISSED {name}: {outside_ms:.3f} ms of CPU per chunk outside the encoder, bar {BAR_MS_PER_CHUNK}")
            missed = True
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
