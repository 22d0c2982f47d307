"""What a RetrievalPipeline waits for, or is refused, and how it says so."""

import pytest

from tidegate_operator.core.kinds import Kind, Manifest

from .desk import deployments, rig_with_docs, serving, settle, table
from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, secret, source_map


@pytest.fixture
def rig() -> Rig:
    return rig_with_docs()


async def test_it_waits_for_the_index_and_says_so(rig: Rig) -> None:
    rig.planes.silent = True
    await serving(rig)

    assert rig.conditions(DESK)["Ready"] == ("Unknown", "WaitsForBuild")
    assert rig.conditions(DESK)["Available"] == ("False", "PreparingRelease")
    assert deployments(rig) == []


async def test_a_missing_knowledge_base_is_waited_for() -> None:
    rig = Rig()
    rig.cluster.put(pipeline())
    await rig.settle(DESK)
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "KnowledgeBaseMissing")

    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_a_missing_secret_is_a_reason_and_is_waited_for(rig: Rig) -> None:
    await serving(rig, auth={"apiKeys": {"secretRef": {"name": "keys"}}})
    assert rig.conditions(DESK)["Accepted"] == ("False", "SecretMissing")
    assert "Secret keys" in rig.message("Accepted", DESK)

    rig.cluster.put(secret("keys"))
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_quota_is_in_the_condition(rig: Rig) -> None:
    release = await serving(rig)
    message = 'pods "desk-6d5f-x7k2p" is forbidden: violates PodSecurity "restricted:latest"'
    rig.controllers.failures = {deployments(rig)[0]["metadata"]["name"]: message}
    await settle(rig)

    assert rig.conditions(DESK)["Ready"] == ("False", "PodCreationFailed")
    assert 'violates PodSecurity "restricted:latest"' in rig.message("Ready", DESK)
    assert rig.conditions(DESK)["Available"] == ("False", "NoReadyPod")
    assert rig.status(DESK)["servingRelease"] == release


async def test_what_the_api_server_refuses_of_the_pod_is_the_users_to_mend(rig: Rig) -> None:
    def refuse(manifest: Manifest) -> str | None:
        return "affinity: Invalid value" if manifest["kind"] == "Deployment" else None

    rig.cluster.put(pipeline())
    await settle(rig)
    rig.cluster.refuse = refuse
    rig.cluster.put(pipeline(runtime={"pod": {"affinity": {"nodeAffinity": "somewhere"}}}))
    await settle(rig)

    assert rig.conditions(DESK)["Accepted"] == ("False", "RefusedByAPIServer")
    assert "affinity: Invalid value" in rig.message("Accepted", DESK)
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")


async def test_an_unusable_graph_leaves_the_accepted_one_in_force(rig: Rig) -> None:
    release = await serving(rig)
    before = table(rig)
    rig.cluster.put(pipeline(output="nothing"))
    await settle(rig)

    assert rig.conditions(DESK)["Accepted"] == ("False", "InvalidGraph")
    assert rig.status(DESK)["servingRelease"] == release
    assert table(rig) == before


async def test_a_name_that_is_taken_is_said_and_nothing_is_taken_over(rig: Rig) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "desk", "namespace": "acme"},
        "spec": {"selector": {"app": "theirs"}},
    }
    rig.cluster.put(theirs)
    await serving(rig)

    assert rig.conditions(DESK)["Stalled"] == ("True", "NameConflict")
    assert rig.get(Kind.SERVICE, "desk")["spec"] == theirs["spec"]


async def test_suspended_nothing_changes_and_serving_goes_on(rig: Rig) -> None:
    release = await serving(rig)
    rig.cluster.put(pipeline(top_k=10, suspend=True))
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == release
    assert rig.conditions(DESK)["Ready"] == ("True", "Suspended")

    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] != release


async def test_nothing_new_serves_where_a_policy_is_required(rig: Rig) -> None:
    await serving(rig, releases={"requirePolicy": True})

    assert rig.status(DESK)["servingRelease"] == ""
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "PolicyMissing")


async def test_a_failed_build_falls_back_and_says_so(rig: Rig) -> None:
    release = await serving(rig)
    rig.cluster.put(knowledge_base(size_tokens=100))
    rig.planes.silent = True
    await rig.reconciler(DOCS)
    rig.planes.failed, rig.planes.silent = {rig.status()["desiredRevision"]: "no vectors"}, False
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert rig.status(DESK)["servingRelease"] != release
    assert rig.conditions(DESK)["Degraded"] == ("True", "RevisionFailed")
