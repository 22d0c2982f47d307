"""Metrics about single objects: they say what status says, and go with what they are about."""

from prometheus_client import REGISTRY

from .desk import ask, rig_with_docs, serving, settle
from .rig import DESK, DOCS, knowledge_base, pipeline, policy

STEPS = [{"name": "five", "percent": 5}, {"name": "look", "pause": {}}]


def share() -> float | None:
    return REGISTRY.get_sample_value("tidegate_rollout_share", {"namespace": "acme", "pipeline": "desk"})


def documents(revision: str) -> float | None:
    labels = {"namespace": "acme", "knowledge_base": "docs", "revision": revision}
    return REGISTRY.get_sample_value("tidegate_index_documents", labels)


def rollbacks() -> float | None:
    labels = {"namespace": "acme", "pipeline": "desk", "cause": "request"}
    return REGISTRY.get_sample_value("tidegate_rollbacks_total", labels)


async def test_the_share_of_a_candidate_is_shown_and_goes_with_the_pipeline() -> None:
    rig = rig_with_docs()
    rig.cluster.put(policy(steps=STEPS))
    await serving(rig)
    assert share() == 0

    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    assert share() == 5

    rig.cluster.remove(DESK.ref)
    await rig.reconciler(DESK)
    assert share() is None


async def test_documents_are_shown_for_every_revision_that_can_be_queried() -> None:
    rig = rig_with_docs()
    rig.cluster.put(knowledge_base(revisionHistoryLimit=0))
    await rig.settle()
    first = rig.status(DOCS)["latestRevision"]
    assert documents(first) == 3

    rig.cluster.put(knowledge_base(size_tokens=100, revisionHistoryLimit=0))
    rig.planes.silent = True
    await rig.reconciler(DOCS)
    rig.planes.building, rig.planes.silent = {rig.status(DOCS)["desiredRevision"]}, False
    await rig.settle()
    second = rig.status(DOCS)["desiredRevision"]
    assert (documents(first), documents(second)) == (3, None)

    rig.planes.building = set()
    await rig.settle()
    rig.clock.advance(120)
    await rig.settle()
    assert (documents(first), documents(second)) == (None, 3)


async def test_a_release_that_is_taken_back_is_counted_once() -> None:
    rig = rig_with_docs()
    await serving(rig)
    before = rollbacks()
    assert before is not None  # there from the start, so that a rate sees the first one
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    await ask(rig, "rollback", key=DESK)
    await settle(rig)
    assert rollbacks() == before + 1

    rig.cluster.remove(DESK.ref)
    await rig.reconciler(DESK)
    assert rollbacks() is None


async def test_one_that_goes_back_to_a_cold_release_is_counted_when_that_serves() -> None:
    rig = rig_with_docs()
    first = await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    rig.planes.warm = {rig.status(DESK)["servingRelease"]}
    rig.clock.advance(3 * 3600)
    await settle(rig)
    before = rollbacks()
    assert before is not None

    await ask(rig, "rollback", key=DESK)
    assert (rig.status(DESK)["rollout"]["phase"], rollbacks()) == ("RollingBack", before)
    rig.planes.warm = None
    await settle(rig)
    assert (rig.status(DESK)["servingRelease"], rollbacks()) == (first, before + 1)


async def test_a_candidate_that_is_given_up_was_not_taken_back() -> None:
    rig = rig_with_docs()
    rig.cluster.put(policy(steps=STEPS))
    await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    before = rollbacks()

    await ask(rig, "abort")
    assert rollbacks() == before
