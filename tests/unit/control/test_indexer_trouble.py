"""An indexer in trouble is said with its reason and the next step; what is built goes on serving."""

import pytest

from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, source_map

QUOTA = 'pods "docs-indexer-6d5f-x7k2p" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2'


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.cluster.put(source_map())
    return rig


async def test_pods_that_are_refused_later_degrade_with_the_api_servers_own_reason(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    rig.controllers.failures = {"docs-indexer": QUOTA}
    rig.controllers.run()
    await rig.settle()

    assert rig.conditions()["Degraded"] == ("True", "PodCreationFailed")
    assert "exceeded quota: small" in rig.message("Degraded")
    assert "goes on serving, edits wait" in rig.message("Degraded")
    assert rig.conditions()["Ready"] == ("True", "InForce")


async def test_an_index_that_fits_no_longer_names_the_member_and_the_next_step(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    rig.planes.full = {rig.status()["latestRevision"]}
    await rig.settle()

    assert rig.conditions()["Degraded"] == ("True", "StoreFull")
    assert rig.conditions()["Ready"] == ("True", "InForce")
    assert "spec.store.index.embedded.size: 10Gi is too small: write more" in rig.message("Degraded")
    assert "edits wait" in rig.message("Degraded")

    rig.planes.full = set()
    await rig.settle()
    assert "Degraded" not in rig.conditions()


async def test_a_build_that_finds_no_room_is_stalled_and_the_old_release_serves(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    rig.cluster.put(pipeline())
    await rig.settle(DOCS, DESK)
    serving = rig.status(DESK)["servingRelease"]
    old = rig.status()["latestRevision"]

    rig.planes.full_but = {old}
    rig.cluster.put(knowledge_base(size_tokens=100))
    await rig.settle(DOCS, DESK)
    assert rig.conditions()["Stalled"] == ("True", "StoreFull")
    assert rig.conditions()["Ready"] == ("False", "StoreFull")
    assert rig.conditions()["Available"] == ("True", "Serving")
    assert rig.status()["latestRevision"] == old
    assert rig.status(DESK)["servingRelease"] == serving

    rig.planes.full_but = None
    await rig.settle(DOCS, DESK)
    assert rig.conditions()["Ready"] == ("True", "InForce")
    assert rig.status(DESK)["servingRelease"] != serving


async def test_an_encoder_that_does_not_know_the_language_is_said_until_another_is_in_force(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(embedding={"model": "minilm"}))
    await rig.settle()
    rig.planes.foreign = {rig.status()["latestRevision"]}
    await rig.settle()

    assert rig.conditions()["Degraded"] == ("True", "EmbedderLanguageMismatch")
    assert rig.conditions()["Ready"] == ("True", "InForce")
    assert "in a language that minilm" in rig.message("Degraded")
    assert "set spec.embedding.model to auto" in rig.message("Degraded")

    rig.planes.silent = True
    await rig.settle()
    assert rig.conditions()["Degraded"] == ("True", "EmbedderLanguageMismatch")

    rig.planes.silent = False
    rig.cluster.put(knowledge_base(embedding={"model": "use-m3"}))
    await rig.settle()
    assert "Degraded" not in rig.conditions()


async def test_a_claim_of_the_users_own_is_named(rig: Rig) -> None:
    rig.cluster.put(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine", "namespace": "acme"}}
    )
    rig.cluster.put(knowledge_base(store={"index": {"embedded": {"claimName": "mine"}}}))
    rig.planes.full_but = set()
    await rig.settle()

    assert rig.conditions()["Ready"] == ("False", "StoreFull")
    assert "claim mine (spec.store.index.embedded.claimName) is full: enlarge that claim" in rig.message("Ready")
