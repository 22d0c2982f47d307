"""Time of the two legs and of building, at 100,000 chunks of 384 dimensions, in one thread.

Texts are synthetic: words of a vocabulary of 200,000 whose frequencies fall as in English prose
(Zipf-Mandelbrot), and queries of two to six words drawn as they stand in the texts. Vectors are
random unit vectors, the worst case for any shortcut. Peers run in the same process, turn by turn:
bm25s on the same terms, and a float32 matrix product. Medians of CPU time, which other work on the
machine disturbs least; wall time is printed beside.
Sizes can be changed: `python benchmarks/legs.py --chunks 1000000`.
"""

# ruff: noqa: E402 - the numeric libraries read these variables when they are imported
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import importlib
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate_api.shape import ALGORITHMS, ChunkingShape, EmbedderFingerprint, RevisionShape
from tidegate_runtime.ports import ChunkRecord, DocumentKey, DocumentRecord, Permission, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter
from tidegate_runtime.stores.embedded.analyzer import terms_of

DIMENSION = 384
VOCABULARY = 200_000
WORDS_PER_CHUNK = 110
CHUNKS_PER_DOCUMENT = 8
DOCUMENTS_PER_COMMIT = 64
TOP_K = 50
QUERIES = 60
ROUNDS = 5
RARE_TENANT_SHARE = 0.01


def make_words(rng: np.random.Generator) -> list[str]:
    """Return distinct words of two to six syllables."""
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        count = int(rng.integers(2, 7))
        words["".join(syllables[i] for i in rng.integers(0, len(syllables), count)) + "k"] = None
    return list(words)


def make_texts(rng: np.random.Generator, *, chunks: int) -> list[list[str]]:
    """Return the words of each chunk; the most frequent words, which are stop words, are left out."""
    words = np.array(make_words(rng), dtype=object)
    weights = 1 / (np.arange(VOCABULARY) + 34.0)
    drawn = rng.choice(VOCABULARY, size=chunks * WORDS_PER_CHUNK, p=weights / weights.sum())
    return [list(row) for row in words[drawn].reshape(chunks, WORDS_PER_CHUNK)]


def make_queries(rng: np.random.Generator, texts: Sequence[Sequence[str]]) -> list[str]:
    """Return queries whose words stand together in some chunk."""
    queries = []
    for row in rng.integers(0, len(texts), QUERIES):
        count = int(rng.integers(2, 7))
        queries.append(" ".join(texts[row][i] for i in rng.integers(0, WORDS_PER_CHUNK, count)))
    return queries


def unit_vectors(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Return random unit vectors."""
    vectors = rng.standard_normal((count, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def make_shape() -> RevisionShape:
    """Return a shape whose scale fits random unit vectors."""
    return RevisionShape(
        language="en",
        chunking=ChunkingShape(strategy="markdown", size_tokens=200, overlap_tokens=24),
        embedder=EmbedderFingerprint(
            model="random", digest="0" * 64, dimension=DIMENSION, max_tokens=256, scale=0.3, languages=["*"]
        ),
        algorithms=dict(ALGORITHMS),
    )


def documents(texts: Sequence[Sequence[str]], vectors: NDArray[np.float32]) -> Iterator[DocumentRecord]:
    """Yield documents of a few chunks; one in a hundred is for the tenant `rare` alone."""
    for number, first in enumerate(range(0, len(texts), CHUNKS_PER_DOCUMENT)):
        contents = [" ".join(words) for words in texts[first : first + CHUNKS_PER_DOCUMENT]]
        chunks = tuple(
            ChunkRecord(ordinal=i, start=0, end=len(text), content=text, heading="", vector=vectors[first + i])
            for i, text in enumerate(contents)
        )
        tenants = ("rare",) if number % int(1 / RARE_TENANT_SHARE) == 0 else ("many",)
        yield DocumentRecord(DocumentKey("bench", f"{number}.md"), f"{number}", "", chunks, tenants=tenants)


def build(folder: Path, texts: Sequence[Sequence[str]], vectors: NDArray[np.float32]) -> float:
    """Build the revision as the indexer does and return the CPU seconds that the store took."""
    writer = EmbeddedWriter.open(folder, revision="bench", shape=make_shape())
    writer.commit(rules={"bench": SourceRules(tenants=("*",), metadata={})})
    cpu_seconds = 0.0
    batch: list[DocumentRecord] = []
    for record in [*documents(texts, vectors), None]:
        if record is not None:
            batch.append(record)
        if len(batch) == DOCUMENTS_PER_COMMIT or record is None:
            started = time.process_time()
            writer.commit(upserts=batch)
            writer.compact()
            cpu_seconds += time.process_time() - started
            batch = []
    writer.mark_ready(dense=True)
    writer.close()
    return cpu_seconds


def medians_ms(contenders: dict[str, Callable[[int], object]]) -> dict[str, tuple[float, float]]:
    """Return each contender's median CPU and wall time over all queries and rounds; they take turns at each query."""
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(ROUNDS + 1):
        for query in range(QUERIES):
            for name, ask in contenders.items():
                wall_started, cpu_started = time.perf_counter(), time.thread_time()
                ask(query)
                if round_number:  # the first round warms caches up
                    cpu[name].append(time.thread_time() - cpu_started)
                    wall[name].append(time.perf_counter() - wall_started)
    return {name: (statistics.median(cpu[name]) * 1000, statistics.median(wall[name]) * 1000) for name in contenders}


def bm25s_peer(texts: Sequence[Sequence[str]], queries: Sequence[str]) -> Callable[[int], object] | None:
    """Return bm25s over the same terms, None where it is not installed."""
    if importlib.util.find_spec("bm25s") is None:
        return None
    bm25s = importlib.import_module("bm25s")
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    index.index([terms_of(" ".join(words)) for words in texts], show_progress=False)

    def ask(number: int) -> object:
        return index.retrieve([terms_of(queries[number])], k=TOP_K, show_progress=False, n_threads=0)

    return ask


def float32_peer(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> Callable[[int], object]:
    """Return a matrix product and a selection of the best."""

    def ask(number: int) -> object:
        scores = vectors @ queries[number]
        best = np.argpartition(scores, len(scores) - TOP_K)[-TOP_K:]
        return best[np.argsort(-scores[best])]

    return ask


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    chunks = parser.parse_args().chunks
    rng = np.random.default_rng(20260131)
    texts = make_texts(rng, chunks=chunks)
    vectors = unit_vectors(rng, chunks)
    queries, query_vectors = make_queries(rng, texts), unit_vectors(rng, QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        build_seconds = build(Path(folder), texts, vectors)
        started = time.perf_counter()
        snapshot = EmbeddedReader.open(Path(folder)).snapshot()
        open_ms = (time.perf_counter() - started) * 1000
        every = snapshot.select(Permission(tenant="many"), None)
        rare = snapshot.select(Permission(tenant="rare"), None)
        contenders: dict[str, Callable[[int], object]] = {
            "dense": lambda n: snapshot.dense(query_vectors[n], every, top_k=TOP_K),
            "dense_rare_tenant": lambda n: snapshot.dense(query_vectors[n], rare, top_k=TOP_K),
            "float32_peer": float32_peer(vectors, query_vectors),
            "bm25": lambda n: snapshot.lexical(snapshot.analyse(queries[n]), every, top_k=TOP_K),
            "bm25_rare_tenant": lambda n: snapshot.lexical(snapshot.analyse(queries[n]), rare, top_k=TOP_K),
        }
        if (peer := bm25s_peer(texts, queries)) is not None:
            contenders["bm25s_peer"] = peer
        figures = medians_ms(contenders)
    print(f"{chunks} chunks, {DIMENSION} dimensions, top {TOP_K}, load {os.getloadavg()[0]:.1f}")
    print(f"RESULT build_store_ms_per_chunk={build_seconds / chunks * 1000:.3f}")
    print(f"RESULT open_ms={open_ms:.2f}")
    for name, (cpu_ms, wall_ms) in figures.items():
        print(f"RESULT {name}_p50_ms={cpu_ms:.3f}")
        print(f"RESULT {name}_wall_p50_ms={wall_ms:.3f}")
    print(f"RESULT dense_to_float32={figures['dense'][0] / figures['float32_peer'][0]:.3f}")
    if "bm25s_peer" in figures:
        print(f"RESULT bm25_to_bm25s={figures['bm25'][0] / figures['bm25s_peer'][0]:.3f}")


if __name__ == "__main__":
    main()
