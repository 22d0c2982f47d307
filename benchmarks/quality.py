"""nDCG@10 of the defaults on public retrieval sets: the whole path from a corpus file to answers.

Each set is built with the shape that a KnowledgeBase without options has, and asked through the data
plane with the preset pipeline, then with each of its legs alone. Documents rank by their best chunk;
gains are linear. Vectors are kept under .state/bench, so only the first run pays for the encoder.

    python benchmarks/quality.py [--sets hotpotqa-500,cranfield]

Prints `RESULT <set>.<leg>=<nDCG@10>`; a missed bar is named and makes the exit status 1.
"""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass

import metrics_ir
from builds import Built, build, default_shape
from local_runtime import LocalRuntime, default_release, local_runtime
from remembered import RememberedEmbedder
from retrieval_sets import STATE, RetrievalSet, load

from tidegate_api.config import ReleaseConfig
from tidegate_api.shape import Language
from tidegate_runtime.models.registry import open_embedder

# Leaves ten documents after several chunks of one and dropped ones, and asks each leg for the preset's 50 candidates.
TOP_K = 25
DEPTH = 10
OUTPUTS = {"bm25": "lexical", "dense": "dense", "hybrid": "fused"}


@dataclass(frozen=True, slots=True)
class Case:
    """A set, its language, and the bar: a figure for `hybrid`, or None = its own bm25 leg less .005."""

    language: Language
    bar: float | None


CASES = {
    "hotpotqa-500": Case("en", 0.815),
    "2wikimultihop-164": Case("en", 0.775),
    "cranfield": Case("en", 0.460),
    "mtrag-conv": Case("en", 0.770),
    "cmrc2018-dev": Case("zh", None),
    "xquad-zh": Case("zh", None),
}


async def figure(runtime: LocalRuntime, release: ReleaseConfig, data: RetrievalSet) -> float:
    """Return the mean nDCG@10 of a set's queries."""
    figures = []
    for query, text in data.queries.items():
        answer = await runtime.search(release, text, top_k=TOP_K)
        assert not answer.degraded, answer.degraded
        dropped = data.excluded.get(query, frozenset())
        ranking = [result.document_id for result in answer.results if result.document_id not in dropped]
        figures.append(metrics_ir.ndcg(ranking, data.gains[query], k=DEPTH))
    mean = metrics_ir.mean(figures)
    assert mean is not None, "no query of the set is judged"
    return mean


async def measure(built: Built, data: RetrievalSet, embedder: RememberedEmbedder) -> dict[str, float]:
    """Return the figure of each output."""
    releases = {name: default_release(built.index, output=output) for name, output in OUTPUTS.items()}
    async with local_runtime(built.root, embedder=embedder, releases=list(releases.values())) as runtime:
        return {name: await figure(runtime, release, data) for name, release in releases.items()}


def run(name: str, case: Case) -> bool:
    """Build and measure one set; return whether its bar is met."""
    started = time.monotonic()
    data, shape = load(name), default_shape(case.language)
    embedder = RememberedEmbedder(open_embedder(shape.embedder), STATE / "vectors.sqlite")
    built = build(data, root=STATE / "revisions", shape=shape, embedder=embedder)
    print(
        f"{name}: {built.documents} of {len(data.documents)} documents, {built.chunks} chunks "
        f"({built.truncated} cut by the encoder), {shape.embedder.summary()}"
    )
    figures = asyncio.run(measure(built, data, embedder))
    for leg, value in figures.items():
        print(f"RESULT {name}.{leg}={value:.4f}")
    bar = figures["bm25"] - 0.005 if case.bar is None else case.bar
    met = figures["hybrid"] >= bar
    print(f"{name}: bar {bar:.4f} {'met' if met else 'MISSED'} ({time.monotonic() - started:.0f} s)", flush=True)
    return met


def main() -> int:
    """Measure the chosen sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(CASES), help="comma-separated names")
    names = parser.parse_args().sets.split(",")
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        parser.error(f"--sets names {', '.join(unknown)}; known are {', '.join(CASES)}")
    met = [run(name, CASES[name]) for name in names]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
