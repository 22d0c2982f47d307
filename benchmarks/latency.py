"""What a search costs beside the encoder, at 5,000 chunks: alone, and with 16 clients at once.

Everything is paired and interleaved, because other work disturbs a shared machine: each query is
encoded alone, then asked through the data plane in this process, then through the socket of a runtime
in its own process; the figures are medians of the differences. Throughput alternates between an
encoder in a loop and 16 clients on the socket. One encoder thread everywhere.

    python benchmarks/latency.py [--queries 500] [--rounds 5] [--haystack]

`--haystack` measures Haystack in memory on the same chunks and encoder beside it, in a virtual
environment of its own under .state/bench (installed on first use).
"""

import argparse
import asyncio
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from builds import build, default_shape
from haystack_peer import measure_haystack
from local_runtime import LocalRuntime, default_release, local_runtime, search_request
from remembered import RememberedEmbedder
from retrieval_sets import STATE, load
from runtime_process import Connection, runtime_process

from tidegate_api.config import ReleaseConfig
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.ports import Embedder

SET = "hotpotqa-500"
CLIENTS = 16
ROUND_SECONDS = 4.0
HAYSTACK_QUERIES = 50
ADDED_BAR_MS = 2.5
THROUGHPUT_BAR = 0.75


async def one_by_one(
    queries: Sequence[str], *, embedder: Embedder, runtime: LocalRuntime, release: ReleaseConfig, socket: Path
) -> dict[str, list[float]]:
    """Return milliseconds of each way for each query."""
    connection = await Connection.open(socket)
    milliseconds: dict[str, list[float]] = {"encoder": [], "dataplane": [], "socket": []}
    for query in queries:
        body = search_request(release, query).model_dump_json().encode()
        started = time.perf_counter()
        embedder.embed_query(query)
        encoded = time.perf_counter()
        await runtime.search(release, query)
        searched = time.perf_counter()
        await connection.call("POST", "/v1/search", body)
        answered = time.perf_counter()
        for way, seconds in zip(
            milliseconds, (encoded - started, searched - encoded, answered - searched), strict=True
        ):
            milliseconds[way].append(seconds * 1000)
    connection.writer.close()
    return milliseconds


def encoder_rate(embedder: Embedder, queries: Iterator[str]) -> float:
    """Return queries per second of the encoder in a loop."""
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < ROUND_SECONDS:
        embedder.embed_query(next(queries))
        count += 1
    return count / (time.perf_counter() - started)


async def socket_rate(socket: Path, release: ReleaseConfig, queries: Iterator[str]) -> float:
    """Return answers per second to clients that each ask again as soon as they are answered."""
    started, count = time.perf_counter(), 0

    async def client() -> None:
        nonlocal count
        connection = await Connection.open(socket)
        while time.perf_counter() - started < ROUND_SECONDS:
            body = search_request(release, next(queries)).model_dump_json().encode()
            await connection.call("POST", "/v1/search", body)
            count += 1
        connection.writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return count / (time.perf_counter() - started)


def report_added(milliseconds: dict[str, list[float]]) -> None:
    """Print the medians and the medians of what each way adds to the encoder."""
    encoder = milliseconds.pop("encoder")
    print(f"RESULT encoder_p50_ms={statistics.median(encoder):.3f}")
    for way, values in milliseconds.items():
        added = [value - alone for value, alone in zip(values, encoder, strict=True)]
        print(f"RESULT {way}_added_p50_ms={statistics.median(added):.3f}")
    print(f"bar: at most {ADDED_BAR_MS} ms through the socket")


async def run(arguments: argparse.Namespace) -> None:
    """Measure everything."""
    data, shape = load(SET), default_shape("en")
    embedder = open_embedder(shape.embedder, threads=1)
    remembered = RememberedEmbedder(embedder, STATE / "vectors.sqlite")
    built = build(data, root=STATE / "revisions", shape=shape, embedder=remembered)
    release, queries = default_release(built.index), list(data.queries.values())[: arguments.queries]
    print(f"{built.chunks} chunks, {len(queries)} queries")
    async with (
        local_runtime(built.root, embedder=embedder, releases=[release]) as runtime,
        runtime_process(built.root, release) as socket,
    ):
        report_added(await one_by_one(queries, embedder=embedder, runtime=runtime, release=release, socket=socket))
        turns, rates = itertools.cycle(queries), []
        for _ in range(arguments.rounds):
            alone = await asyncio.to_thread(encoder_rate, embedder, turns)
            together = await socket_rate(socket, release, turns)
            rates.append((alone, together, together / alone))
    alone, together, share = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"RESULT encoder_alone_per_second={alone:.1f}")
    print(f"RESULT clients_{CLIENTS}_per_second={together:.1f}")
    print(f"RESULT clients_{CLIENTS}_share_of_encoder={share:.3f}")
    print(f"bar: at least {THROUGHPUT_BAR} of the encoder alone")
    if arguments.haystack:
        measure_haystack(min(len(queries), HAYSTACK_QUERIES))


def main() -> None:
    """Read the flags and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=500, help="queries asked one by one")
    parser.add_argument("--rounds", type=int, default=5, help="alternations between encoder and clients")
    parser.add_argument("--haystack", action="store_true", help="measure Haystack in memory, too")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
