"""An operator upgrade rolls no pod: what guards that against our own changes.

The digests below are those of what is rendered, and of what its hash is taken from, for a few fixed inputs. They
change only together with what the messages say; nothing here is refreshed by a command.
"""

from collections.abc import Callable

import pytest

from tidegate_api.hashing import content_hash
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.platform import Images, Platform
from tidegate_operator.core.render import indexer_deployment as indexer
from tidegate_operator.core.render import pipeline_deployment as pipeline

from .desk import deployments, rig_with_docs, serving, settle
from .rig import DESK, Rig, knowledge_base
from .rig import pipeline as pipeline_manifest

Pod = indexer.IndexerPod | pipeline.PipelinePod

IMAGES = Images(runtime="registry/runtime:1", sidecar="registry/sidecar:1")
PLATFORM = Platform(version="1", images=IMAGES, pull_secrets=("mirror",))
TOLERATIONS = [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]
LIMITS = {"limits": {"memory": "4Gi"}}

# Template version and digest: raise the version and replace both, in one commit.
RENDERED = {
    "indexer, plain": ("1", "99b3f902fd"),
    "indexer, all": ("1", "b33d82c242"),
    "pipeline, plain": ("1", "687d287b9d"),
    "pipeline, all": ("1", "9da80bbaed"),
}
# Of no version: where the digest of equal inputs changes, every pod rolls, whatever the version says.
INPUTS = {
    "indexer, plain": "e966e7ea18",
    "indexer, all": "2a0a8440a8",
    "pipeline, plain": "745b362e76",
    "pipeline, all": "8d7499ac7c",
}


def indexer_pod(*, platform: Platform, **spec: object) -> indexer.IndexerPod:
    parsed = KnowledgeBaseSpec.model_validate(
        {"sources": [{"name": "files", "from": {"configMap": {"name": "docs-files"}}}], **spec}
    )
    owner = Owner(Ref(Kind.KNOWLEDGE_BASE, "acme", "docs"), "uid-1")
    return indexer.IndexerPod.of(parsed, owner, image=IMAGES.runtime, platform=platform)


def pipeline_pod(*names: str, pull_secrets: tuple[str, ...] = (), **spec: object) -> pipeline.PipelinePod:
    parsed = RetrievalPipelineSpec.model_validate(
        {"knowledgeBases": [{"name": name} for name in names], "auth": {"anonymous": {}}, **spec}
    )
    return pipeline.PipelinePod(
        deployment="0123456789",
        images=IMAGES,
        pull_policy="IfNotPresent",
        knowledge_bases=names,
        spec=parsed,
        pull_secrets=pull_secrets,
    )


PODS: dict[str, Pod] = {
    "indexer, plain": indexer_pod(platform=Platform(version="1", images=IMAGES)),
    "indexer, all": indexer_pod(
        platform=PLATFORM,
        sources=[
            {"name": "files", "from": {"configMap": {"name": "docs-files"}}},
            {"name": "disk", "from": {"volume": {"claimName": "papers", "path": "a"}}},
        ],
        build={"nodeSelector": {"disk": "ssd"}, "tolerations": TOLERATIONS, "resources": LIMITS},
        store={"index": {"embedded": {"claimName": "mine"}}},
    ),
    "pipeline, plain": pipeline_pod("docs"),
    "pipeline, all": pipeline_pod(
        "docs",
        "notes",
        pull_secrets=("mirror",),
        auth={"apiKeys": {"secretRef": {"name": "keys"}}, "trustedHeaders": {"secretRef": {"name": "proxy"}}},
        runtime={
            "replicas": 2,
            "resources": LIMITS,
            "gpu": {"count": 1},
            "update": "Replace",
            "pod": {"labels": {"team": "search"}, "nodeSelector": {"gpu": "yes"}, "tolerations": TOLERATIONS},
        },
        sidecar={"resources": LIMITS},
        limits={"requestTimeout": "90s"},
    ),
}


def rendered(pod: Pod) -> Manifest:
    """Return the Deployment, without the version that it carries."""
    if isinstance(pod, indexer.IndexerPod):
        manifest = indexer.indexer_deployment(pod, Owner(Ref(Kind.KNOWLEDGE_BASE, "acme", "docs"), "uid-1"))
    else:
        manifest = pipeline.pipeline_deployment(pod, Owner(Ref(Kind.RETRIEVAL_PIPELINE, "acme", "desk"), "uid-1"))
    manifest["metadata"]["annotations"].pop("tidegate.dev/template")
    return manifest


@pytest.mark.parametrize("name", PODS)
def test_what_is_rendered_changes_only_with_the_template_version(name: str) -> None:
    module = indexer if name.startswith("indexer") else pipeline
    found = (module.TEMPLATE_VERSION, content_hash(rendered(PODS[name])))

    assert found == RENDERED[name], (
        f"{module.__name__} makes another Deployment of '{name}' than version {RENDERED[name][0]} of its template did. "
        "Under the same version the operator would take every running one for edited by hand, and its upgrade would roll "
        f"them all. If the change is wanted, raise TEMPLATE_VERSION there and put the new version with '{found[1]}' into "
        "RENDERED here: running pods then keep their template until their inputs change."
    )


@pytest.mark.parametrize("name", PODS)
def test_the_hash_of_equal_inputs_never_changes(name: str) -> None:
    digest = content_hash(PODS[name].inputs())

    assert digest == INPUTS[name], (
        f"inputs() of '{name}' have another hash than before: the operator's upgrade would roll every pod, and no "
        "TEMPLATE_VERSION keeps it from that. Leave a new member out of inputs() where it has its default, and the hash "
        f"stays. Only a roll that is wanted, and told in the changelog, may put '{digest}' into INPUTS here."
    )


@pytest.fixture
async def running() -> Rig:
    """Return a knowledge base and a pipeline whose pods an older operator has rendered."""
    rig = rig_with_docs()
    await serving(rig)
    return rig


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rig, str], None]:
    """Return what starts an operator that renders both pods otherwise, and says that it is `version` of the template."""

    def upgrade(rig: Rig, version: str) -> None:
        for module in (indexer, pipeline):
            monkeypatch.setattr(module, "TEMPLATE_VERSION", version)
            monkeypatch.setattr(module, "POD_SECURITY_CONTEXT", {"runAsNonRoot": True, "runAsUser": 1})
        rig.restart()

    return upgrade


def users(rig: Rig) -> set[int]:
    return {
        each["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        for each in rig.cluster.of_kind(Kind.DEPLOYMENT)
    }


async def test_under_a_raised_version_unchanged_pods_keep_the_template_that_they_run(
    running: Rig, upgrade: Callable[[Rig, str], None]
) -> None:
    before, writes = running.cluster.of_kind(Kind.DEPLOYMENT), len(running.cluster.writes)
    upgrade(running, "2")
    await settle(running)

    assert running.cluster.of_kind(Kind.DEPLOYMENT) == before
    assert running.cluster.writes[writes:] == []


async def test_the_new_template_comes_with_the_next_change_of_the_inputs(
    running: Rig, upgrade: Callable[[Rig, str], None]
) -> None:
    upgrade(running, "2")
    running.cluster.put(knowledge_base(build={"resources": LIMITS}))
    running.cluster.put(pipeline_manifest(runtime={"resources": LIMITS}))
    await settle(running)

    assert users(running) == {1}


async def test_under_the_same_version_what_differs_was_edited_by_hand_and_is_put_back(
    running: Rig, upgrade: Callable[[Rig, str], None]
) -> None:
    """The reason for the digests above."""
    upgrade(running, "1")
    await settle(running)

    assert users(running) == {1}


async def test_after_an_upgrade_a_node_with_another_name_makes_a_release_of_the_new_images(running: Rig) -> None:
    """What the notes on upgrades tell people to do: answers stay the same, and the old pods stay beside."""
    first = running.status(DESK)["servingRelease"]
    running.platform = Platform(version="2", images=Images(runtime="registry/runtime:2", sidecar="registry/sidecar:2"))
    running.restart()
    renamed = [{"name": "words", "type": "bm25", "with": {"topK": 50}}]
    running.cluster.put(pipeline_manifest(nodes=renamed, output="words"))
    await settle(running)

    second = running.status(DESK)["servingRelease"]
    assert second != first
    assert {each["name"]: each["versions"]["runtime"] for each in running.status(DESK)["releases"]} == {
        first: "1.0",
        second: "2",
    }
    assert len(deployments(running)) == 2
