"""Events under a flood of failures: status keeps its bounds, and the decisive Event is not lost among others."""

import json

from .desk import ask, rig_with_docs, serving, settle
from .rig import DESK, DOCS, Rig, pipeline

LOOKS = 10


def told(rig: Rig) -> list[str]:
    """Return the reasons of all Events, in order."""
    return [note.reason for _, note in rig.cluster.events.values()]


def failing(look: int) -> tuple[str, ...]:
    """Return 250 documents that fail, others at every look, with names longer than status takes."""
    return tuple(f"look-{look}/{number}-{'x' * 2000}.md" for number in range(250))


async def test_failures_that_change_at_every_look_leave_status_bounded_and_events_few() -> None:
    rig = rig_with_docs()
    await serving(rig)
    sizes = []
    for look in range(LOOKS):
        rig.planes.failing = failing(look)
        rig.clock.advance(30)
        await settle(rig)
        sync = rig.status(DOCS)["sync"]
        assert (sync["failed"], len(sync["failures"])) == (250, 20)
        assert sync["failures"][0]["document"].startswith(f"look-{look}/")
        sizes.append(len(json.dumps(rig.status(DOCS))))

    assert max(sizes) < 64 * 1024
    assert told(rig).count("DocumentsFailed") == 1
    assert rig.conditions(DOCS)["Degraded"] == ("True", "DocumentsFailed")
    assert rig.conditions(DOCS)["Ready"] == ("True", "InForce")


async def test_a_rollback_in_the_middle_of_it_is_told_once_and_said_in_status() -> None:
    rig = rig_with_docs()
    good = await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    for look in range(LOOKS):
        rig.planes.failing = failing(look)
        await settle(rig)
        if look == LOOKS // 2:
            await ask(rig, "rollback", key=DESK)

    assert len(told(rig)) <= 20
    assert told(rig).count("RolledBack") == 1
    status = rig.status(DESK)
    assert status["servingRelease"] == good
    assert rig.conditions(DESK)["Ready"] == ("False", "RolledBack")
    assert status["rollout"]["history"][1]["how"] == "rolledBack"
