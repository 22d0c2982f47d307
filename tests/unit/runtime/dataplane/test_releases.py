"""Releases are opened in the background, shared where they can be, warm after a real query, freed once nobody uses them."""

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_api.config import NodeConfig, ReleaseConfig
from tidegate_runtime.errors import ReleaseUnavailableError, RevisionUnavailableError, UnusableVectorError

HITS = {"lexical_hits": {"a": 3.0, "b": 1.0}, "dense_hits": {"b": 0.9, "a": 0.1}}
LEXICAL = (NodeConfig(name="lexical", type="bm25"),)


async def turns(count: int = 20) -> None:
    """Let everything that is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_release_is_loading_until_every_leg_has_answered(runtime: Any, fakes: SimpleNamespace) -> None:
    encoder = fakes.Encoder(gate=threading.Event())
    runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS, content_generation=7)
    runtime.encoders.encoders["fake"] = encoder
    config = fakes.release("docs-1")
    runtime.releases.open(config)
    async with asyncio.timeout(30):
        while not encoder.started:
            await asyncio.sleep(0)
    assert [(each.phase, each.content_generations) for each in await runtime.releases.states()] == [("Loading", {})]
    with pytest.raises(ReleaseUnavailableError, match="is Loading: ask again in a moment"):
        await runtime.ask(config.name)
    encoder.gate.set()
    assert await runtime.settled(config.name) == ("Warm", "")
    assert [each.content_generations for each in await runtime.releases.states()] == [{"docs": 7}]


async def test_opening_twice_opens_once(runtime: Any, fakes: SimpleNamespace) -> None:
    runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    runtime.encoders.encoders["fake"] = fakes.Encoder()
    config = fakes.release("docs-1")
    runtime.releases.open(config)
    runtime.releases.open(config)
    await runtime.settled(config.name)
    runtime.releases.open(config)
    await turns()
    assert runtime.revisions.opened == ["docs-1"]
    assert runtime.encoders.opened == ["fake"]


async def test_a_release_that_failed_says_why_and_can_be_tried_again(runtime: Any, fakes: SimpleNamespace) -> None:
    config = fakes.release("docs-1")
    runtime.encoders.encoders["fake"] = fakes.Encoder()
    runtime.releases.open(config)
    assert await runtime.settled(config.name) == (
        "Failed",
        "revision docs-1 is not there yet; wait for the indexer",
    )
    with pytest.raises(ReleaseUnavailableError, match="is Failed: revision docs-1 is not there yet"):
        await runtime.ask(config.name)
    runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    runtime.releases.open(config)
    assert await runtime.settled(config.name) == ("Warm", "")


async def test_a_missing_encoder_fails_the_release_and_gives_the_index_back(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    index = runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    config = fakes.release("docs-1")
    runtime.releases.open(config)
    assert await runtime.settled(config.name) == ("Failed", "model fake is not installed; install it")
    await turns()
    assert index.closed


async def test_a_warm_up_that_is_not_whole_fails_the_release(runtime: Any, fakes: SimpleNamespace) -> None:
    runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    runtime.encoders.encoders["fake"] = fakes.Encoder(error=UnusableVectorError("a zero vector"))
    config = fakes.release("docs-1")
    runtime.releases.open(config)
    assert await runtime.settled(config.name) == ("Failed", "the warm-up query failed in node dense: a zero vector")


async def test_an_unforeseen_fault_fails_the_release_and_is_logged(
    runtime: Any, fakes: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    runtime.encoders.encoders["fake"] = fakes.Encoder(error=ZeroDivisionError("a bug"))
    config = fakes.release("docs-1")
    with caplog.at_level(logging.ERROR):
        runtime.releases.open(config)
        assert await runtime.settled(config.name) == ("Failed", "the runtime could not open it; see the runtime's log")
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indexes": []}, "has no index of knowledge base docs"),
        ({"pipeline": {"output": "ranked"}}, "output names node 'ranked'"),
    ],
)
async def test_a_release_that_makes_no_sense_fails_with_the_reason(
    runtime: Any, fakes: SimpleNamespace, change: dict[str, Any], message: str
) -> None:
    document = fakes.release("docs-1").to_document()
    document["pipeline"] |= change.pop("pipeline", {})
    config = ReleaseConfig.model_validate({**document, **change})
    runtime.releases.open(config)
    phase, said = await runtime.settled(config.name)
    assert phase == "Failed"
    assert message in said


async def test_a_pipeline_that_no_leg_of_a_revision_answers_is_refused(runtime: Any, fakes: SimpleNamespace) -> None:
    runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS, provides=frozenset({"dense"}))
    config = fakes.release("docs-1", nodes=LEXICAL)
    runtime.releases.open(config)
    phase, message = await runtime.settled(config.name)
    assert phase == "Failed"
    assert "revision docs-1 provides ['dense'], the pipeline reads ['bm25']" in message


async def test_releases_share_revisions_and_encoders_until_the_last_is_closed(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    index = fakes.Index(**HITS)
    first = await runtime.serve(index)
    second = await runtime.serve(index, nodes=LEXICAL)
    assert runtime.revisions.opened == ["docs-1"]
    runtime.releases.close(first)
    await turns()
    assert not index.closed
    assert len((await runtime.ask(second)).results) == 2
    runtime.releases.close(second)
    await turns()
    assert index.closed
    assert await runtime.releases.states() == []


async def test_a_request_that_runs_keeps_its_release_alive(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(**HITS)
    name = await runtime.serve(index)
    encoder = runtime.encoders.encoders["fake"]
    encoder.gate = threading.Event()
    asked = asyncio.ensure_future(runtime.ask(name, "asked"))
    async with asyncio.timeout(30):
        while "asked" not in encoder.started:
            await asyncio.sleep(0)
    runtime.releases.close(name)
    with pytest.raises(ReleaseUnavailableError):
        await runtime.ask(name)
    await turns()
    assert not index.closed
    encoder.gate.set()
    assert len((await asked).results) == 2
    await turns()
    assert index.closed


async def test_closing_what_still_loads_frees_it(runtime: Any, fakes: SimpleNamespace) -> None:
    index = runtime.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    runtime.revisions.gate = asyncio.Event()
    config = fakes.release("docs-1")
    runtime.releases.open(config)
    await turns()
    runtime.releases.close(config.name)
    await turns()
    assert await runtime.releases.states() == []
    runtime.revisions.gate.set()
    await turns()
    assert index.closed


async def test_closing_an_unknown_release_changes_nothing(runtime: Any) -> None:
    runtime.releases.close("rel-0")
    assert await runtime.releases.states() == []


async def test_a_generation_that_cannot_be_read_now_is_left_out(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(**HITS)
    await runtime.serve(index)
    index.snapshot_error = RevisionUnavailableError("damaged")
    assert [(each.phase, each.content_generations) for each in await runtime.releases.states()] == [("Warm", {})]


async def test_the_generation_follows_the_content(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(**HITS)
    await runtime.serve(index)
    index.content_generation = 9
    assert [each.content_generations for each in await runtime.releases.states()] == [{"docs": 9}]
