"""kill -9 at every call to the outside, before and after it takes effect, as often as one likes.

After each death a new operator, which remembers nothing, must bring the world to the very state that
an undisturbed one reaches, and must not have made anything twice. Every world that a death can leave is
followed, and those that deaths in it leave, until none comes up that was not there: so what holds, holds for any
number of deaths at any calls. A story is told in chapters, each of which changes something and lets the
operators settle; the deaths of a chapter begin where an undisturbed operator has ended the one before.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Ref

from .mortal import Life, identity
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


def try_another_shape(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(size_tokens=25, revisionHistoryLimit=0))


def delete_the_policy(rig: Rig) -> None:
    rig.cluster.remove(Ref(Kind.ROUTING_POLICY, "acme", "desk"))


def free_the_gpu_first(rig: Rig) -> None:
    rig.platform = replace(rig.platform, version="3.0")
    rig.cluster.put(knowledge_base(size_tokens=150, revisionHistoryLimit=0))
    rig.cluster.put(pipeline(runtime={"update": "Replace"}))


STORY: tuple[Chapter, ...] = (
    begin,
    edit_the_shape,
    promote,
    roll_back,
    move_to_pods_of_its_own,
    promote_again,
    let_the_window_close,
    try_another_shape,
    delete_the_policy,
    free_the_gpu_first,
)

# Far more than there are: about 50 in the longest chapter.
WORLDS_MAX = 200


async def live(rig: Rig, known: set[str] | None = None) -> Life:
    """Let one operator live until all is at rest."""
    life = Life(rig, known=known)
    rig.reconciler = life.operator
    await rig.settle(DOCS, DESK)
    return life


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
        rig.restart()
        await rig.settle(DOCS, DESK)
    raise AssertionError("no such chapter")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("chapter", STORY)
async def test_killed_at_any_calls_the_same_world_comes_of_it(chapter: Chapter) -> None:
    start = await scene(chapter)
    expected = (await live(start.clone())).rig.picture()
    known, waiting = {identity(start)}, deque([start])
    while waiting:
        life = await live(waiting.popleft().clone(), known)
        assert life.rig.picture() == expected
        assert made_once(life.rig)
        waiting.extend(life.left)
        assert len(known) <= WORLDS_MAX, "deaths leave ever new worlds: something grows with each of them"
    assert len(known) > 1


@pytest.mark.parametrize("chapter", STORY)
async def test_two_operators_at_once_decide_once(chapter: Chapter) -> None:
    """Each call of one lets the other go on, so their passes interleave at every request."""
    start = await scene(chapter)
    expected = (await live(start.clone())).rig.picture()
    rig = start.clone()
    both = [Life(rig, polite=True).operator, Life(rig, polite=True).operator]
    for _ in range(30):
        before = rig.activity()
        await asyncio.gather(*(operator(key) for key in (DOCS, DESK) for operator in both))
        rig.controllers.run()
        if rig.activity() == before:
            break

    assert rig.picture() == expected
    assert made_once(rig)
