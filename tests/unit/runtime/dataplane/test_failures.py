"""Parts that fail: what is answered all the same, what is said about it, and what becomes an error."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_api.config import NodeConfig
from tidegate_runtime.errors import (
    DeadlineExceededError,
    ModelUnavailableError,
    RevisionUnavailableError,
    UnusableVectorError,
)

HITS = {"lexical_hits": {"a": 3.0, "b": 1.0}, "dense_hits": {"b": 0.9, "a": 0.1}}
NO_VECTOR = UnusableVectorError("the encoder gave a zero vector")
NO_MODEL = ModelUnavailableError("the model's file is gone")
DAMAGED = RevisionUnavailableError("segment 3 is damaged")


async def wait_for(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


@pytest.mark.parametrize(("error", "reason"), [(NO_VECTOR, "error"), (NO_MODEL, "unavailable")])
async def test_without_a_vector_words_answer_and_the_answer_says_so(
    runtime: Any, fakes: SimpleNamespace, error: Exception, reason: str
) -> None:
    name = await runtime.serve(fakes.Index(**HITS))
    runtime.encoders.encoders["fake"].error = error
    response = await runtime.ask(name)
    assert [(result.chunk_id, result.score) for result in response.results] == [("a", 1.0), ("b", 0.0)]
    assert [(each.node, each.reason) for each in response.degraded] == [("dense", reason)]


@pytest.mark.parametrize(("leg", "node"), [("lexical", "lexical"), ("dense", "dense")])
async def test_a_leg_that_fails_gives_its_weight_to_the_other(
    runtime: Any, fakes: SimpleNamespace, leg: str, node: str
) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index)
    setattr(index, f"{leg}_error", DAMAGED)
    response = await runtime.ask(name)
    assert sorted(result.score for result in response.results) == [0.0, 1.0]
    assert [(each.node, each.reason) for each in response.degraded] == [(node, "unavailable")]


async def test_when_every_leg_fails_there_is_no_answer(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index)
    index.lexical_error, runtime.encoders.encoders["fake"].error = DAMAGED, NO_VECTOR
    with pytest.raises(UnusableVectorError):
        await runtime.ask(name)
    assert 'tidegate_searches_total{outcome="internal"} 1.0' in runtime.metrics.exposition().decode()


async def test_an_index_that_is_gone_is_no_partial_answer(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index)
    index.snapshot_error = DAMAGED
    with pytest.raises(RevisionUnavailableError, match="segment 3 is damaged"):
        await runtime.ask(name)


async def test_a_dense_leg_that_is_lost_later_is_an_error_when_nothing_else_answers(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index, nodes=(NodeConfig(name="dense", type="dense"),))
    index.provides = frozenset({"bm25"})
    with pytest.raises(RevisionUnavailableError, match="no leg that the pipeline reads"):
        await runtime.ask(name)


async def test_a_dense_leg_that_content_takes_away_and_gives_back_is_told_and_used_again(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index)
    reasons = []
    for provides in ({"bm25"}, {"bm25", "dense"}):
        index.provides = frozenset(provides)
        reasons.append([(each.node, each.reason) for each in (await runtime.ask(name)).degraded])
    assert reasons == [[("dense", "language_mismatch")], []]


async def test_a_dense_leg_that_came_after_the_release_was_opened_is_told_to_lack_its_encoder(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    index = fakes.Index(**HITS, provides=frozenset({"bm25"}))
    name = await runtime.serve(index)
    index.provides = frozenset({"bm25", "dense"})
    response = await runtime.ask(name)
    assert [result.chunk_id for result in response.results] == ["a", "b"]
    assert [(each.node, each.reason) for each in response.degraded] == [("dense", "unavailable")]


async def test_an_encoder_that_fails_is_told_before_an_index_without_vectors(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    wiki = fakes.Index(**HITS, revision="wiki-1", provides=frozenset({"bm25"}))
    name = await runtime.serve(fakes.Index(**HITS), wiki)
    runtime.encoders.encoders["fake"].error = NO_VECTOR
    assert [(each.node, each.reason) for each in (await runtime.ask(name)).degraded] == [("dense", "error")]


async def test_a_fault_of_the_encoder_is_not_taken_for_an_answer(runtime: Any, fakes: SimpleNamespace) -> None:
    name = await runtime.serve(fakes.Index(**HITS))
    runtime.encoders.encoders["fake"].error = ZeroDivisionError("a bug")
    with pytest.raises(ZeroDivisionError):
        await runtime.ask(name)


async def test_one_encoder_of_two_that_fails_leaves_the_other_indexs_vectors(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    other = fakes.Index(**HITS, revision="wiki-1", fingerprint=fakes.fingerprint("other"))
    name = await runtime.serve(fakes.Index(**HITS), other, nodes=(NodeConfig(name="dense", type="dense"),))
    runtime.encoders.encoders["other"].error = NO_VECTOR
    response = await runtime.ask(name)
    assert {result.knowledge_base for result in response.results} == {"docs"}
    assert [(each.node, each.reason) for each in response.degraded] == [("dense", "error")]


async def test_a_slow_encoder_leaves_time_for_an_answer_from_words(runtime: Any, fakes: SimpleNamespace) -> None:
    name = await runtime.serve(fakes.Index(**HITS))
    gate = runtime.encoders.encoders["fake"].gate = threading.Event()
    response = await runtime.ask(name, deadline_ms=1200)
    gate.set()
    assert [result.chunk_id for result in response.results] == ["a", "b"]
    assert [(each.node, each.reason) for each in response.degraded] == [("dense", "timeout")]
    assert response.degraded[0].after_ms >= 890


async def test_a_deadline_that_passes_ends_the_search(runtime: Any, fakes: SimpleNamespace) -> None:
    name = await runtime.serve(fakes.Index(**HITS), nodes=(NodeConfig(name="dense", type="dense"),))
    gate = runtime.encoders.encoders["fake"].gate = threading.Event()
    with pytest.raises(DeadlineExceededError):
        await runtime.ask(name, deadline_ms=20)
    gate.set()
    assert len((await runtime.ask(name)).results) == 2


async def test_a_search_thread_that_is_busy_past_the_deadline_ends_the_search(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    name = await runtime.serve(fakes.Index(**HITS))
    gate = threading.Event()
    busy = [asyncio.ensure_future(runtime.engine.run(lambda: gate.wait(30))) for _ in range(2)]
    with pytest.raises(DeadlineExceededError, match="allow more in deadline_ms"):
        await runtime.ask(name, deadline_ms=30)
    gate.set()
    await asyncio.gather(*busy)


async def test_work_of_a_cancelled_request_is_never_begun(runtime: Any, fakes: SimpleNamespace) -> None:
    name = await runtime.serve(fakes.Index(**HITS))
    encoder = runtime.encoders.encoders["fake"]
    gate = encoder.gate = threading.Event()
    running = asyncio.ensure_future(runtime.ask(name, "running"))
    await wait_for(lambda: "running" in encoder.started)
    ghosts = [asyncio.ensure_future(runtime.ask(name, f"ghost {number}")) for number in range(20)]
    late = asyncio.ensure_future(runtime.ask(name, "late", deadline_ms=1200))
    assert (await late).degraded[0].reason == "timeout"
    for ghost in ghosts:
        ghost.cancel()
    await asyncio.gather(*ghosts, return_exceptions=True)
    gate.set()
    await running
    await runtime.ask(name, "next")
    assert encoder.started[-2:] == ["running", "next"]


async def test_two_hundred_requests_at_once_see_only_their_own_documents(runtime: Any, fakes: SimpleNamespace) -> None:
    tokens = [f"tenant-{number % 20:02} token-{number:03}" for number in range(200)]

    def own(query: str) -> dict[str, float]:
        return {query: 1.0} if query in tokens else {}

    index = fakes.Index(own, own, universe=tuple(tokens), tenants={token: token.split()[0] for token in tokens})
    name = await runtime.serve(index)

    async def ask(token: str) -> None:
        response = await runtime.ask(name, token, scope={"tenant": token.split()[0]}, explain=True)
        assert [result.chunk_id for result in response.results] == [token]
        assert response.results[0].scores == {"bm25": 1.0, "dense": 1.0, "fused": 0.0}

    await asyncio.gather(*(ask(token) for token in tokens))
    foreign = await runtime.ask(name, tokens[0], scope={"tenant": tokens[1].split()[0]})
    assert foreign.results == []


async def test_one_request_never_mixes_generations(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index)
    encoder = runtime.encoders.encoders["fake"]
    gate = encoder.gate = threading.Event()
    before = index.snapshots
    asked = asyncio.ensure_future(runtime.ask(name, "old"))
    await wait_for(lambda: "old" in encoder.started and index.snapshots > before)
    index.content_generation, index.dense_hits = 2, {"z": 1.0}
    gate.set()
    assert {result.content_generation for result in (await asked).results} == {1}
    assert {result.content_generation for result in (await runtime.ask(name, "new")).results} == {2}
