"""Nothing is Loading for ever: a step that no longer gets on fails its release, says which it was, and is waited for again."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_api.config import NodeConfig
from tidegate_runtime.engine import Engine
from tidegate_runtime.releases import Releases
from tidegate_runtime.warmup import warm_up

PATIENCE_SECONDS = 0.5
HITS = {"lexical_hits": {"a": 3.0}, "dense_hits": {"a": 0.9}}
LEXICAL = (NodeConfig(name="lexical", type="bm25"),)
ONLY_LEXICAL = {"lexical_hits": {"a": 3.0}, "provides": frozenset({"bm25"})}


@pytest.fixture
async def impatient(runtime: Any) -> AsyncIterator[Any]:
    """Return the runtime on fakes, with little patience."""
    releases = Releases(
        revisions=runtime.revisions,
        embedders=runtime.encoders,
        warm_up=lambda opened: warm_up(runtime.engine, opened, deadline_seconds=30),
        patience_seconds=PATIENCE_SECONDS,
    )
    runtime.releases = releases
    yield runtime
    await releases.close_all()


async def test_a_copying_that_is_silent_fails_with_its_step_and_the_next_step_to_take(
    impatient: Any, fakes: SimpleNamespace
) -> None:
    impatient.revisions.indexes["docs-1"] = fakes.Index(**ONLY_LEXICAL)
    impatient.revisions.gate = asyncio.Event()
    config = fakes.release("docs-1", nodes=LEXICAL)
    impatient.releases.open(config)

    phase, message = await impatient.settled(config.name)
    assert phase == "Failed"
    assert message.startswith("copying revision docs-1 has got no further for 0.5 s; it goes on")
    assert "look at the indexer" in message


async def test_a_copying_that_gets_on_may_take_as_long_as_it_likes(impatient: Any, fakes: SimpleNamespace) -> None:
    impatient.revisions.indexes["docs-1"] = fakes.Index(**ONLY_LEXICAL)
    impatient.revisions.copying_seconds = 2.5 * PATIENCE_SECONDS
    config = fakes.release("docs-1", nodes=LEXICAL)
    impatient.releases.open(config)

    assert await impatient.settled(config.name) == ("Warm", "")


async def test_an_encoder_that_hangs_fails_the_release_with_its_name(impatient: Any, fakes: SimpleNamespace) -> None:
    impatient.revisions.indexes["docs-1"] = fakes.Index(**HITS)
    impatient.encoders.encoders["fake"] = fakes.Encoder()
    impatient.encoders.gate = asyncio.Event()
    config = fakes.release("docs-1")
    impatient.releases.open(config)

    phase, message = await impatient.settled(config.name)
    assert phase == "Failed"
    assert message.startswith("opening encoder fake has got no further for 0.5 s")


async def test_trying_again_waits_for_what_is_under_way_and_starts_nothing_beside_it(
    impatient: Any, fakes: SimpleNamespace
) -> None:
    """Each try in a thread of its own would take them all, and two copies would write one file."""
    impatient.encoders.encoders["fake"] = fakes.Encoder()
    impatient.encoders.gate = asyncio.Event()
    config = fakes.release("docs-1")

    async def phase_of_another_try() -> str:
        impatient.revisions.indexes["docs-1"] = fakes.Index(**HITS)  # the last one was closed with its release
        impatient.releases.open(config)
        return str((await impatient.settled(config.name))[0])

    assert [await phase_of_another_try() for _ in range(3)] == ["Failed"] * 3
    assert impatient.encoders.opened == ["fake"]
    impatient.encoders.gate.set()
    async with asyncio.timeout(30):
        while await phase_of_another_try() != "Warm":
            pass


async def test_a_copying_that_comes_to_its_end_after_all_is_closed_while_nobody_waits(
    impatient: Any, fakes: SimpleNamespace
) -> None:
    index = impatient.revisions.indexes["docs-1"] = fakes.Index(**ONLY_LEXICAL)
    impatient.revisions.gate = asyncio.Event()
    config = fakes.release("docs-1", nodes=LEXICAL)
    impatient.releases.open(config)
    await impatient.settled(config.name)
    impatient.revisions.gate.set()

    async with asyncio.timeout(30):
        while not index.closed:
            await asyncio.sleep(0)


async def test_closing_and_opening_again_meanwhile_copies_once(runtime: Any, fakes: SimpleNamespace) -> None:
    index = runtime.revisions.indexes["docs-1"] = fakes.Index(**ONLY_LEXICAL)
    runtime.revisions.gate = asyncio.Event()
    config = fakes.release("docs-1", nodes=LEXICAL)
    runtime.releases.open(config)
    async with asyncio.timeout(30):
        while not runtime.revisions.opened:
            await asyncio.sleep(0)
    runtime.releases.close(config.name)
    runtime.releases.open(config)
    runtime.revisions.gate.set()

    assert await runtime.settled(config.name) == ("Warm", "")
    assert runtime.revisions.opened == ["docs-1"]
    assert not index.closed


@pytest.mark.parametrize(
    ("hangs", "message"),
    [
        ("lexical", "warming up had no answer within 0.5 s; it is tried again"),
        ("encoder", "the warm-up query failed in node dense: the encoder was not done in time"),
    ],
)
async def test_a_warm_up_that_hangs_fails_the_release(
    runtime: Any, fakes: SimpleNamespace, hangs: str, message: str
) -> None:
    gate, engine = threading.Event(), Engine()

    def held(_: str) -> dict[str, float]:
        assert gate.wait(30)
        return {"a": 1.0}

    runtime.releases = Releases(
        revisions=runtime.revisions,
        embedders=runtime.encoders,
        warm_up=lambda opened: warm_up(engine, opened, deadline_seconds=0.5),
    )
    hits = {"lexical_hits": held, "universe": ("a",)} if hangs == "lexical" else HITS
    runtime.revisions.indexes["docs-1"] = fakes.Index(**hits)
    runtime.encoders.encoders["fake"] = fakes.Encoder(gate=gate if hangs == "encoder" else None)
    config = fakes.release("docs-1", **({"nodes": LEXICAL} if hangs == "lexical" else {}))
    runtime.releases.open(config)

    phase, said = await runtime.settled(config.name)
    gate.set()
    await runtime.releases.close_all()
    engine.close()
    assert phase == "Failed"
    assert said.startswith(message)
