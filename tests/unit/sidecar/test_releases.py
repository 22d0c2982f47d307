"""The runtime's releases follow the table."""

import asyncio

from tests.unit.sidecar.builders import release
from tests.unit.sidecar.fakes import FakeRuntimeAdmin

from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.releases import ReleaseKeeper


class Kept:
    """A keeper with its runtime."""

    def __init__(self, *, calm_seconds: float = 60.0, **runtime: object) -> None:
        self.runtime = FakeRuntimeAdmin(**runtime)
        self.in_flight = InFlight()
        self.keeper = ReleaseKeeper(self.runtime, self.in_flight, busy_seconds=0.001, calm_seconds=calm_seconds)

    async def step(self, *names: str) -> bool:
        return await self.keeper.step(lambda: [release(name) for name in names])

    @property
    def phases(self) -> dict[str, str]:
        return {state.name: state.phase for state in self.keeper.held}


async def test_releases_of_the_table_are_opened_once_and_others_closed():
    kept = Kept(phases={"rel-old": "Warm", "rel-a": "Warm"})
    assert await kept.step("rel-a", "rel-b")
    assert await kept.step("rel-a", "rel-b")
    assert kept.runtime.calls == [("open", "rel-b"), ("close", "rel-old")]
    assert kept.phases == {"rel-a": "Warm", "rel-b": "Warm"}


async def test_without_a_table_nothing_is_opened_or_closed():
    kept = Kept(phases={"rel-a": "Warm"})
    assert await kept.keeper.step(lambda: None)
    assert kept.runtime.calls == []
    assert kept.phases == {"rel-a": "Warm"}


async def test_a_release_that_left_the_table_is_closed_after_its_last_request():
    kept = Kept(phases={"rel-a": "Warm", "rel-old": "Warm"})
    kept.in_flight.enter("rel-old", 10)
    assert not await kept.step("rel-a")
    assert kept.runtime.calls == []
    kept.in_flight.leave("rel-old")
    assert await kept.step("rel-a")
    assert kept.runtime.calls == [("close", "rel-old")]


async def test_a_release_is_held_no_more_once_it_is_told_to_close():
    kept = Kept(phases={"rel-a": "Warm", "rel-old": "Warm"})
    await kept.step("rel-a", "rel-old")
    told: list[object] = []
    kept.runtime.on_close = lambda name: told.append(kept.keeper.state_of(name))
    await kept.step("rel-a")
    assert told == [None]


async def test_a_release_that_a_table_names_again_meanwhile_is_not_closed():
    kept = Kept(phases={"rel-a": "Warm", "rel-old": "Warm"})
    wanted = ["rel-a"]
    kept.runtime.on_state = lambda: wanted.append("rel-old")
    await kept.keeper.step(lambda: [release(name) for name in wanted])
    assert kept.runtime.calls == []
    assert kept.phases == {"rel-a": "Warm", "rel-old": "Warm"}


async def test_loading_is_not_the_end():
    kept = Kept(opens_as="Loading")
    assert not await kept.step("rel-a")
    assert kept.phases == {"rel-a": "Loading"}
    kept.runtime.phases["rel-a"] = "Warm"
    assert await kept.step("rel-a")


async def test_a_failed_release_is_asked_for_again_but_not_at_every_pass():
    kept = Kept(opens_as="Failed")
    for _ in range(5):
        await kept.step("rel-a")
    assert kept.runtime.calls == [("open", "rel-a")]
    eager = Kept(opens_as="Failed", calm_seconds=0)
    for _ in range(3):
        await eager.step("rel-a")
    assert eager.runtime.calls == [("open", "rel-a")] * 3


async def test_what_the_runtime_refuses_is_failed_with_its_words_and_holds_up_nothing():
    kept = Kept(refuses={"rel-a"})
    for _ in range(3):
        assert await kept.step("rel-a", "rel-b")
    assert kept.runtime.calls == [("open", "rel-a"), ("open", "rel-b")]
    assert kept.phases == {"rel-a": "Failed", "rel-b": "Warm"}
    state = kept.keeper.state_of("rel-a")
    assert state is not None
    assert state.message == "no such node type"
    await kept.step("rel-b")
    assert kept.phases == {"rel-b": "Warm"}
    assert ("close", "rel-a") not in kept.runtime.calls


async def test_a_runtime_that_is_gone_is_told_and_one_that_comes_back_is_filled_again():
    kept = Kept()
    await kept.step("rel-a")
    kept.runtime.reachable = False
    assert not await kept.step("rel-a")
    assert "can't be reached" in kept.keeper.message
    assert kept.keeper.state_of("rel-a") is None
    kept.runtime.reachable, kept.runtime.phases = True, {}
    assert await kept.step("rel-a")
    assert kept.keeper.message == ""
    assert kept.phases == {"rel-a": "Warm"}


async def test_a_new_table_wakes_the_keeper():
    kept = Kept()
    wanted = ["rel-a"]
    follower = asyncio.create_task(kept.keeper.follow(lambda: [release(name) for name in wanted]))
    try:
        async with asyncio.timeout(10):
            while kept.phases != {"rel-a": "Warm"}:
                await asyncio.sleep(0)
            wanted[:] = ["rel-b"]
            kept.keeper.wake()
            while kept.phases != {"rel-b": "Warm"}:
                await asyncio.sleep(0)
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)


async def test_the_keeper_looks_again_by_itself():
    kept = Kept(calm_seconds=0.001)
    follower = asyncio.create_task(kept.keeper.follow(lambda: [release("rel-a")]))
    try:
        async with asyncio.timeout(10):
            while kept.phases != {"rel-a": "Warm"}:
                await asyncio.sleep(0)
            kept.runtime.phases.clear()
            while kept.runtime.phases != {"rel-a": "Warm"}:
                await asyncio.sleep(0)
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
