"""kill -9 at every call to the outside, before and after it takes effect, once and twice.

After each death a new operator, which remembers nothing, must bring the world to the very state that
an undisturbed one reaches, and must not have made anything twice.
"""

from collections.abc import Awaitable, Callable

import pytest

from tidegate_operator.reconcile import Reconciler

from .mortal import Fate, Killed, MortalCluster, MortalPlanes
from .rig import DOCS, Rig, knowledge_base, source_map

Story = Callable[[Rig, Callable[[], Awaitable[None]]], Awaitable[None]]


async def a_knowledge_base_changes_its_shape(rig: Rig, settle: Callable[[], Awaitable[None]]) -> None:
    """Built, rebuilt beside the old one, and the old one dropped."""
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base(revisionHistoryLimit=0))
    await settle()
    rig.cluster.put(knowledge_base(size_tokens=100, revisionHistoryLimit=0))
    await settle()
    rig.clock.advance(61)
    await settle()


async def run(story: Story, *fates: Fate) -> Rig:
    """Live through a story; each fate is one life of the operator, and the last operator lives on."""
    rig = Rig()
    lives = iter(fates)

    def next_life() -> None:
        fate = next(lives, Fate())
        rig.reconciler = Reconciler(
            cluster=MortalCluster(rig.cluster, fate),
            planes=MortalPlanes(rig.planes, fate),
            clock=rig.clock,
            platform=rig.platform,
        )

    async def settle() -> None:
        for _ in range(len(fates) + 1):
            try:
                await rig.settle(DOCS)
            except Killed:
                next_life()
            else:
                return

    next_life()
    await story(rig, settle)
    return rig


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_killed_at_any_write_the_same_world_comes_of_it(after: bool) -> None:
    counter = Fate()
    expected = (await run(a_knowledge_base_changes_its_shape, counter)).picture()
    assert counter.calls > 20

    for at in range(1, counter.calls + 1):
        rig = await run(a_knowledge_base_changes_its_shape, Fate(at=at, after=after))
        assert rig.picture() == expected, f"killed at write {at}"
        assert set(rig.cluster.created.values()) == {1}, f"killed at write {at}"


async def test_killed_twice_the_same_world_comes_of_it() -> None:
    counter = Fate()
    expected = (await run(a_knowledge_base_changes_its_shape, counter)).picture()

    for at in range(1, counter.calls + 1, 2):
        for again in (1, 3):
            fates = Fate(at=at, after=True), Fate(at=again, after=at % 4 == 1)
            rig = await run(a_knowledge_base_changes_its_shape, *fates)
            assert rig.picture() == expected, f"killed at write {at}, then at {again}"
            assert set(rig.cluster.created.values()) == {1}


@pytest.mark.slow
async def test_killed_at_any_read_the_same_world_comes_of_it() -> None:
    counter = Fate(reads=True)
    expected = (await run(a_knowledge_base_changes_its_shape, counter)).picture()

    for at in range(1, counter.calls + 1, 5):
        rig = await run(a_knowledge_base_changes_its_shape, Fate(at=at, reads=True))
        assert rig.picture() == expected, f"killed at call {at}"
