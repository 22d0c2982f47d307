"""Random stories on a cluster in memory: what the routing table, the pods and the status must keep true (B05's property)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate_operator.core.kinds import Kind

from .rig import DESK, PLATFORM, Rig, knowledge_base, pipeline, policy, source_map
from .test_policy import RULES, STEPS, ask, settle, table

# After this long an old Deployment has drained and what nobody needs has gone.
DRAINED_SECONDS = 31.0


async def edit_pipeline(rig: Rig, number: int) -> None:
    rig.cluster.put(pipeline(top_k=10 + number))


async def edit_index(rig: Rig, number: int) -> None:
    rig.cluster.put(knowledge_base(size_tokens=100 + number))


async def upgrade(rig: Rig, number: int) -> None:
    rig.platform = replace(PLATFORM, version=f"{number + 1}.0")
    rig.restart()


async def order(rig: Rig, number: int) -> None:
    verb = ("promote", "rollback", "abort", "retry")[number % 4]
    key = RULES if RULES.ref in rig.cluster.objects else DESK
    await ask(rig, verb, key=key)


async def drop_policy(rig: Rig, number: int) -> None:
    if number % 2 and RULES.ref in rig.cluster.objects:
        rig.cluster.remove(RULES.ref)
    else:
        rig.cluster.put(policy(steps=STEPS))


async def hold_back(rig: Rig, number: int) -> None:
    """Pods hold only the first releases by name, or all of them again."""
    names = sorted(each.name for each in table(rig).releases)
    rig.planes.warm = {rig.status(DESK)["servingRelease"], *names[:number]} if number else None


async def restart(rig: Rig, _: int) -> None:
    rig.restart()


async def wait(rig: Rig, number: int) -> None:
    rig.clock.advance(DRAINED_SECONDS * (1 + 100 * (number % 2)))


STEPS_OF_A_STORY: tuple[Callable[[Rig, int], Awaitable[None]], ...] = (
    edit_pipeline,
    edit_index,
    upgrade,
    order,
    drop_policy,
    hold_back,
    restart,
    wait,
)


def check(rig: Rig, *, version_before: int) -> None:
    """Check what users and pods see."""
    told, status = table(rig), rig.status(DESK)
    held = {each.name for each in told.releases}
    assert told.version >= version_before
    assert told.stable == status["rollout"]["stable"]
    assert {told.stable} | ({told.candidate} - {None, ""}) <= held
    assert 0 <= told.share <= 100
    assert not told.share or told.candidate
    assert len({each.deployment for each in told.releases}) <= 3  # stable, candidate, and the one to go back to
    deployments = {
        each["metadata"]["labels"]["tidegate.dev/deployment"]
        for each in rig.cluster.of_kind(Kind.DEPLOYMENT)
        if "tidegate.dev/deployment" in each["metadata"]["labels"]
    }
    assert {each.deployment for each in told.releases} <= deployments
    selected = rig.get(Kind.SERVICE, "desk")["spec"]["selector"]["tidegate.dev/deployment"]
    assert selected in deployments


async def tell(story: list[tuple[int, int]]) -> None:
    rig = Rig()
    for manifest in (source_map(), knowledge_base(), policy(steps=STEPS), pipeline()):
        rig.cluster.put(manifest)
    await settle(rig)
    for which, number in story:
        version = table(rig).version
        await STEPS_OF_A_STORY[which](rig, number)
        await settle(rig)
        check(rig, version_before=version)
    rig.planes.warm = None
    for _ in range(3):
        rig.clock.advance(DRAINED_SECONDS * 300)
        await settle(rig)
    candidates = {rig.status(DESK)["candidate"], rig.status(DESK)["rollout"]["queued"]} - {""}
    live = [each for each in rig.cluster.of_kind(Kind.DEPLOYMENT) if each["metadata"]["name"].startswith("desk-")]
    assert len(live) <= 1 + len(candidates), "what was given up keeps no pods"


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(STEPS_OF_A_STORY) - 1), st.integers(0, 3)), max_size=10))
def test_whatever_happens_only_what_serves_is_routed_to_and_what_was_given_up_keeps_no_pods(
    story: list[tuple[int, int]],
) -> None:
    asyncio.run(tell(story))
