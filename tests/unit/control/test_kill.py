"""kill -9 at every call to the outside, before and after it takes effect, once and twice.

After each death a new operator, which remembers nothing, must bring the world to the very state that
an undisturbed one reaches, and must not have made anything twice. A story is told in chapters, each of
which changes something and lets the operators settle; the deaths of a chapter begin where an
undisturbed operator has ended the one before.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.reconcile import Reconciler

from .mortal import Fate, Killed, MortalCluster, MortalPlanes
from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, policy, source_map

Chapter = Callable[[Rig], None]


def request(rig: Rig, verb: str, id: str = "") -> None:
    metadata = rig.cluster.objects[Ref(Kind.ROUTING_POLICY, "acme", "desk")]["metadata"]
    issued = {"id": id or verb, "verb": verb, "uid": metadata["uid"], "issuedAt": rig.clock.now().isoformat()}
    metadata.setdefault("annotations", {})["tidegate.dev/request"] = json.dumps(issued)


def begin(rig: Rig) -> None:
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base(revisionHistoryLimit=0))
    rig.cluster.put(policy(steps=[{"name": "five", "percent": 5}, {"name": "look", "pause": {}}]))
    rig.cluster.put(pipeline())


def edit_the_shape(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(size_tokens=100, revisionHistoryLimit=0))


def promote(rig: Rig) -> None:
    request(rig, "promote")


def roll_back(rig: Rig) -> None:
    request(rig, "rollback")


def move_to_pods_of_its_own(rig: Rig) -> None:
    rig.platform = replace(rig.platform, version="2.0")
    rig.cluster.put(knowledge_base(size_tokens=50, revisionHistoryLimit=0))


def promote_again(rig: Rig) -> None:
    request(rig, "promote", id="again")


def let_the_window_close(rig: Rig) -> None:
    rig.clock.advance(3 * 3600)


STORY: tuple[Chapter, ...] = (
    begin,
    edit_the_shape,
    promote,
    roll_back,
    move_to_pods_of_its_own,
    promote_again,
    let_the_window_close,
)


async def live(rig: Rig, *fates: Fate) -> None:
    """Let operators settle; each fate is one life, and the last operator lives on."""
    for fate in (*fates, Fate()):
        rig.reconciler = mortal(rig, fate)
        try:
            await rig.settle(DOCS, DESK)
        except Killed:
            continue
        return


def mortal(rig: Rig, fate: Fate) -> Reconciler:
    """Return an operator with a fate."""
    return Reconciler(
        cluster=MortalCluster(rig.cluster, fate),
        planes=MortalPlanes(rig.planes, fate),
        clock=rig.clock,
        platform=rig.platform,
    )


def made_once(rig: Rig) -> bool:
    """Return whether nothing of ours was made twice."""
    return {count for ref, count in rig.cluster.created.items() if ref.kind is not Kind.POD} == {1}


async def scene(chapter: Chapter) -> Rig:
    """Return the world in which a chapter begins, its change already made."""
    rig = Rig()
    for each in STORY:
        each(rig)
        if each is chapter:
            return rig
        await live(rig)
    raise AssertionError("no such chapter")


async def ending(scene_of: Rig, *fates: Fate) -> Rig:
    """Return the world to which a chapter comes."""
    rig = scene_of.clone()
    await live(rig, *fates)
    return rig


@pytest.mark.parametrize("chapter", STORY)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_killed_at_any_write_the_same_world_comes_of_it(chapter: Chapter, after: bool) -> None:
    start, counter = await scene(chapter), Fate()
    expected = (await ending(start, counter)).picture()
    assert counter.calls > 0

    for at in range(1, counter.calls + 1):
        rig = await ending(start, Fate(at=at, after=after))
        assert rig.picture() == expected, f"killed at write {at}"
        assert made_once(rig), f"killed at write {at}"


@pytest.mark.parametrize("chapter", STORY)
async def test_killed_twice_the_same_world_comes_of_it(chapter: Chapter) -> None:
    start, counter = await scene(chapter), Fate()
    expected = (await ending(start, counter)).picture()

    for at in range(1, counter.calls + 1, 2):
        rig = await ending(start, Fate(at=at, after=True), Fate(at=1 + at % 3, after=at % 4 == 1))
        assert rig.picture() == expected, f"killed at write {at} and again"
        assert made_once(rig)


@pytest.mark.slow
@pytest.mark.parametrize("chapter", STORY)
async def test_killed_at_any_read_the_same_world_comes_of_it(chapter: Chapter) -> None:
    start, counter = await scene(chapter), Fate(reads=True)
    expected = (await ending(start, counter)).picture()

    for at in range(1, counter.calls + 1, 19):
        rig = await ending(start, Fate(at=at, reads=True))
        assert rig.picture() == expected, f"killed at call {at}"


@pytest.mark.parametrize("chapter", STORY)
async def test_two_operators_at_once_decide_once(chapter: Chapter) -> None:
    """Each call of one lets the other go on, so their passes interleave at every request."""
    start = await scene(chapter)
    expected = (await ending(start)).picture()
    rig = start.clone()
    both = [mortal(rig, Fate(polite=True)), mortal(rig, Fate(polite=True))]
    for _ in range(30):
        before = rig.activity()
        await asyncio.gather(*(operator(key) for key in (DOCS, DESK) for operator in both))
        rig.controllers.run()
        if rig.activity() == before:
            break

    assert rig.picture() == expected
    assert made_once(rig)
