"""A KnowledgeBase from its spec to a built index, on a cluster in memory."""

import json
from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Manifest, Ref

from .rig import DOCS, Rig, knowledge_base, source_map


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.cluster.put(source_map())
    return rig


def config(rig: Rig) -> Manifest:
    found: Manifest = json.loads(rig.get(Kind.CONFIG_MAP, "docs-indexer")["data"]["config.json"])
    return found


def revisions(rig: Rig) -> dict[str, str]:
    return {each["name"]: each["phase"] for each in rig.status()["revisions"]}


async def test_it_is_built_and_ready(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()

    status = rig.status()
    assert status["observedGeneration"] == 1
    assert status["language"] == "en"
    assert status["desiredRevision"] == status["latestRevision"] != ""
    assert (status["documents"], status["chunks"]) == (3, 9)
    assert rig.conditions() == {
        "Ready": ("True", "InForce"),
        "Accepted": ("True", "Accepted"),
        "Available": ("True", "Serving"),
        "RevisionReady": ("True", "Completed"),
    }
    assert [each["name"] for each in config(rig)["revisions"]] == [status["desiredRevision"]]


async def test_at_rest_nothing_is_written(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    before = len(rig.cluster.writes)

    for _ in range(10):
        await rig.reconciler(DOCS)
    rig.restart()
    await rig.reconciler(DOCS)

    assert rig.cluster.writes[before:] == []


async def test_every_child_is_ours_and_in_the_same_namespace(rig: Rig) -> None:
    parent = rig.cluster.put(knowledge_base())
    await rig.settle()

    children = [ref for ref, item in rig.cluster.objects.items() if item["metadata"].get("ownerReferences")]
    assert {ref.kind for ref in children} == {
        Kind.SERVICE_ACCOUNT,
        Kind.ROLE,
        Kind.ROLE_BINDING,
        Kind.LEASE,
        Kind.SECRET,
        Kind.CONFIG_MAP,
        Kind.SERVICE,
        Kind.CLAIM,
        Kind.DEPLOYMENT,
        Kind.CONTROLLER_REVISION,
    }
    for ref in children:
        (owner,) = rig.cluster.objects[ref]["metadata"]["ownerReferences"]
        assert (ref.namespace, owner["uid"], owner["controller"]) == ("acme", parent["metadata"]["uid"], True)


async def test_the_language_is_found_before_any_revision_is_asked_for(rig: Rig) -> None:
    rig.planes.silent = True
    rig.cluster.put(knowledge_base())
    await rig.settle()
    assert (rig.status()["language"], rig.status()["desiredRevision"]) == ("", "")
    assert rig.conditions()["Ready"] == ("Unknown", "LanguageUnknown")
    assert config(rig)["revisions"] == []

    rig.planes.silent = False
    rig.planes.language = "zh"
    await rig.settle()
    assert rig.status()["language"] == "zh"
    assert rig.conditions()["Ready"] == ("True", "InForce")


async def test_a_language_once_found_stays_and_a_change_is_said(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    built = rig.status()["desiredRevision"]

    rig.planes.language = "zh"
    await rig.settle()
    assert rig.status()["desiredRevision"] == built
    assert rig.conditions()["LanguageDrift"] == ("True", "LanguageDrift")

    rig.cluster.put(knowledge_base(language="zh"))
    await rig.settle()
    assert rig.status()["desiredRevision"] != built
    assert "LanguageDrift" not in rig.conditions()


async def test_a_change_of_shape_is_built_beside_the_old_revision_which_stays_in_step(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    old = rig.status()["latestRevision"]

    rig.cluster.put(knowledge_base(size_tokens=100))
    await rig.reconciler(DOCS)
    new = rig.status()["desiredRevision"]
    rig.planes.building = {new}
    await rig.settle()
    assert new != old
    assert rig.status()["latestRevision"] == old
    assert rig.status()["building"] == "33%"
    assert {each["name"] for each in config(rig)["revisions"]} == {old, new}
    assert rig.conditions()["Ready"] == ("Unknown", "Building")
    assert rig.conditions()["Available"] == ("True", "Serving")

    rig.planes.building = set()
    await rig.settle()
    assert rig.status()["latestRevision"] == new
    assert rig.status()["building"] == ""
    assert revisions(rig) == {old: "Ready", new: "Ready"}
    assert {each["name"] for each in config(rig)["revisions"]} == {old, new}


async def test_what_is_not_shape_makes_no_other_revision(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    built = rig.status()["desiredRevision"]

    source = {"name": "files", "from": {"configMap": {"name": "docs-files"}}, "tenants": ["acme"], "refresh": "1m"}
    rig.cluster.put(knowledge_base(sources=[source], chunking={"sizeTokens": 200.0, "overlapTokens": 24}))
    await rig.settle()

    assert rig.status()["desiredRevision"] == built
    assert config(rig)["sources"][0]["tenants"] == ["acme"]
    assert len(rig.cluster.of_kind(Kind.CONTROLLER_REVISION)) == 1


async def test_there_is_never_a_moment_of_the_new_generation_with_the_old_ready(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    seen: list[tuple[int, str]] = []
    original = rig.cluster.replace_status

    async def recording(ref: Ref, status: Manifest, *, resource_version: str) -> None:
        await original(ref, status, resource_version=resource_version)
        seen.append((status["observedGeneration"], status["conditions"][0]["status"]))

    rig.cluster.replace_status = recording  # type: ignore[method-assign]
    rig.cluster.put(knowledge_base(size_tokens=100))
    rig.planes.building = {"docs-" + "0" * 10}
    await rig.settle()

    assert seen[0] == (2, "Unknown")
    assert seen[-1] == (2, "True")


async def test_a_missing_source_is_said_and_nothing_is_made_from_a_spec_that_was_never_usable() -> None:
    rig = Rig()
    rig.cluster.put(knowledge_base())
    await rig.settle()

    assert rig.conditions()["Accepted"] == ("False", "ConfigMapMissing")
    assert rig.conditions()["Stalled"] == ("True", "ConfigMapMissing")
    assert "ConfigMap docs-files" in rig.message("Accepted")
    assert rig.cluster.of_kind(Kind.DEPLOYMENT) == []

    rig.cluster.put(source_map())
    await rig.settle()
    assert rig.conditions()["Ready"] == ("True", "InForce")


async def test_an_unusable_spec_leaves_the_accepted_one_in_force(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    before = config(rig)

    rig.cluster.put(knowledge_base(size_tokens=64, embedding={"model": "nothing"}))
    rig.cluster.remove(Ref(Kind.DEPLOYMENT, "acme", "docs-indexer"))
    rig.restart()
    await rig.settle()

    assert rig.status()["observedGeneration"] == 2
    assert rig.conditions()["Accepted"] == ("False", "UnknownModel")
    assert rig.conditions()["Ready"] == ("False", "UnknownModel")
    assert rig.conditions()["Available"] == ("True", "Serving")
    assert config(rig) == before
    assert rig.get(Kind.DEPLOYMENT, "docs-indexer")


async def test_a_value_of_a_newer_version_is_a_condition_and_no_crash(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(language="fr"))
    await rig.settle()

    assert rig.conditions()["Accepted"] == ("False", "UnsupportedValue")
    assert "spec.language" in rig.message("Accepted")


async def test_a_failed_build_says_why_and_the_old_revision_stays(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    old = rig.status()["latestRevision"]
    rig.cluster.put(knowledge_base(size_tokens=100))
    await rig.reconciler(DOCS)

    rig.planes.failed = {rig.status()["desiredRevision"]: "3 vectors are zero; check the model"}
    await rig.settle()

    assert rig.conditions()["Ready"] == ("False", "RevisionFailed")
    assert rig.message("Ready") == "3 vectors are zero; check the model"
    assert rig.status()["latestRevision"] == old


async def test_a_name_that_is_taken_is_said_and_nothing_is_taken_over(rig: Rig) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "docs-indexer", "namespace": "acme"},
        "spec": {"selector": {"app": "theirs"}},
    }
    rig.cluster.put(theirs)
    rig.cluster.put(knowledge_base())
    await rig.settle()

    assert rig.conditions()["Stalled"] == ("True", "NameConflict")
    assert "Service docs-indexer" in rig.message("Stalled")
    assert rig.get(Kind.SERVICE, "docs-indexer")["spec"] == theirs["spec"]
    assert "ownerReferences" not in rig.get(Kind.SERVICE, "docs-indexer")["metadata"]


async def test_a_taken_revision_name_is_said_too(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(language="en"))
    await rig.settle()
    name = rig.status()["desiredRevision"]

    other = Rig()
    other.cluster.put(source_map())
    other.cluster.put(
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": name, "namespace": "acme"},
            "revision": 1,
        }
    )
    other.cluster.put(knowledge_base(language="en"))
    await other.settle()
    assert other.conditions()["Stalled"] == ("True", "NameConflict")
    assert other.status()["desiredRevision"] == ""


async def test_what_the_api_server_refuses_becomes_the_reason_and_is_not_sent_again_at_once(rig: Rig) -> None:
    def refuse(manifest: Manifest) -> str | None:
        return "tolerations: Invalid value" if manifest["kind"] == "Deployment" else None

    rig.cluster.refuse = refuse
    rig.cluster.put(knowledge_base())
    await rig.settle()
    assert rig.conditions()["Accepted"] == ("False", "RefusedByAPIServer")
    assert rig.message("Accepted") == "Deployment docs-indexer was refused: tolerations: Invalid value"

    rig.cluster.refuse = lambda _: None
    rig.clock.advance(61)
    await rig.settle()
    assert rig.conditions()["Ready"] == ("True", "InForce")


async def test_pods_that_are_refused_are_in_the_condition_within_a_minute_and_without_their_random_names(
    rig: Rig,
) -> None:
    message = 'pods "docs-indexer-6d5f-x7k2p" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
    rig.controllers.failures = {"docs-indexer": message}
    rig.cluster.put(knowledge_base())
    await rig.settle()

    assert rig.conditions()["Ready"] == ("False", "PodCreationFailed")
    assert "exceeded quota: small" in rig.message("Ready")
    assert "x7k2p" not in rig.message("Ready")


async def test_a_pod_that_finds_no_node_is_said(rig: Rig) -> None:
    rig.controllers.pending = {"docs-indexer": "0/1 nodes are available: 1 Insufficient memory."}
    rig.cluster.put(knowledge_base())
    await rig.settle()

    assert rig.conditions()["Ready"] == ("False", "Unschedulable")
    assert "Insufficient memory" in rig.message("Ready")


async def test_an_indexer_that_is_down_degrades_and_takes_nothing_away(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    rig.controllers.held = {"docs-indexer"}
    rig.controllers.run()
    await rig.settle()

    assert rig.conditions()["Degraded"] == ("True", "IndexerUnreachable")
    assert rig.conditions()["Ready"] == ("True", "InForce")
    assert rig.conditions()["Available"] == ("True", "Serving")


async def test_a_sync_request_reaches_the_indexer(rig: Rig) -> None:
    manifest = knowledge_base()
    manifest["metadata"]["annotations"] = {"tidegate.dev/sync": "monday"}
    rig.cluster.put(manifest)
    await rig.settle()

    assert config(rig)["sync"] == "monday"
    assert rig.status()["sync"]["lastHandled"] == "monday"


async def test_a_claim_grows_and_a_smaller_size_is_refused(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(store={"index": {"embedded": {"size": "10Gi"}}}))
    await rig.settle()
    rig.cluster.put(knowledge_base(store={"index": {"embedded": {"size": "20Gi"}}}))
    await rig.settle()
    claim = rig.get(Kind.CLAIM, "docs-indexer")
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"

    rig.cluster.put(knowledge_base(store={"index": {"embedded": {"size": "5Gi"}}}))
    await rig.settle()
    assert rig.conditions()["Accepted"] == ("False", "InvalidSpec")
    assert "write 20Gi or more" in rig.message("Accepted")


async def test_a_brought_claim_is_used_and_must_exist(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(store={"index": {"embedded": {"claimName": "mine"}}}))
    await rig.settle()
    assert rig.conditions()["Accepted"] == ("False", "ClaimMissing")

    rig.cluster.put(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine", "namespace": "acme"}}
    )
    await rig.settle()
    volumes = rig.get(Kind.DEPLOYMENT, "docs-indexer")["spec"]["template"]["spec"]["volumes"]
    assert volumes[0] == {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}
    assert not [ref for ref in rig.cluster.objects if ref.kind is Kind.CLAIM and ref.name == "docs-indexer"]


async def test_an_operator_upgrade_restarts_no_indexer(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    before = rig.get(Kind.DEPLOYMENT, "docs-indexer")["spec"]

    images = replace(rig.platform.images, runtime="registry/runtime:2.0")
    rig.platform = replace(rig.platform, version="2.0", images=images)
    rig.restart()
    await rig.settle()
    assert rig.get(Kind.DEPLOYMENT, "docs-indexer")["spec"] == before

    rig.cluster.put(knowledge_base(size_tokens=100))
    await rig.settle()
    (container,) = rig.get(Kind.DEPLOYMENT, "docs-indexer")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry/runtime:2.0"


async def test_a_deleted_knowledge_base_takes_its_children_along(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    rig.cluster.remove(DOCS.ref)
    await rig.settle()

    assert [ref.kind for ref in rig.cluster.objects if ref.kind is not Kind.POD] == [Kind.CONFIG_MAP]


async def test_events_tell_transitions_only(rig: Rig) -> None:
    rig.cluster.put(knowledge_base())
    await rig.settle()
    for _ in range(50):
        rig.clock.advance(60)
        await rig.reconciler(DOCS)

    assert [note.reason for _, note in rig.cluster.events.values()] == ["Ready"]
