"""Which release a spec asks for, and what it waits for, on data only."""

from dataclasses import replace

import pytest

from tidegate_api.config import NodeConfig, PipelineConfig
from tidegate_operator.core.platform import Images, Platform
from tidegate_operator.core.releases import Desired, KnowledgeState, Revision, Waits, desire

PLATFORM = Platform(version="1.0", images=Images("host:5000/runtime:1.0", "host:5000/sidecar@sha256:abc"))
PIPELINE = PipelineConfig(
    knowledge_bases=["docs"],
    nodes=[NodeConfig(name="lexical", type="bm25"), NodeConfig(name="dense", type="dense")],
    output="dense",
)
LEGS = frozenset({"bm25", "dense"})


def revision(name: str, phase: str = "Ready", *, embedder: str = "minilm", provides: frozenset[str] = LEGS) -> Revision:
    return Revision(name, phase, embedder, provides)


def docs(
    *revisions: Revision, desired: str = "docs-2", latest: str = "docs-1", observed: bool = True
) -> KnowledgeState:
    return KnowledgeState("docs", observed, desired, latest, {each.name: each for each in revisions}, "no vectors")


def ask(state: KnowledgeState | None, pipeline: PipelineConfig = PIPELINE, **options: object) -> Desired | Waits:
    return desire(pipeline, {"docs": state}, existing={}, platform=PLATFORM, **options)  # type: ignore[arg-type]


def indexes(found: Desired | Waits) -> list[str]:
    assert isinstance(found, Desired)
    return [index.revision for index in found.frozen.release.indexes]


def test_the_desired_revision_is_taken_when_it_is_built() -> None:
    assert indexes(ask(docs(revision("docs-1"), revision("docs-2")))) == ["docs-2"]


@pytest.mark.parametrize(
    ("state", "reason", "blocked"),
    [
        (None, "KnowledgeBaseMissing", False),
        (docs(revision("docs-1"), revision("docs-2"), observed=False), "KnowledgeBaseBehind", False),
        (docs(revision("docs-1"), revision("docs-2", "Building")), "WaitsForBuild", False),
        (docs(desired="", latest=""), "WaitsForBuild", False),
        (docs(revision("docs-2", "Failed"), latest=""), "RevisionFailed", True),
        (docs(revision("docs-1", "Retiring"), revision("docs-2", "Failed")), "RevisionFailed", True),
        (docs(revision("docs-2", provides=frozenset({"bm25"}))), "IndexLacksLeg", True),
    ],
)
def test_it_waits_and_says_whether_somebody_has_to_act(
    state: KnowledgeState | None, reason: str, blocked: bool
) -> None:
    found = ask(state)
    assert isinstance(found, Waits)
    assert (found.reason, found.blocked) == (reason, blocked)


def test_a_failed_build_falls_back_to_the_newest_built_one_and_says_so() -> None:
    found = ask(docs(revision("docs-1"), revision("docs-2", "Failed")))
    assert indexes(found) == ["docs-1"]
    assert isinstance(found, Desired)
    assert found.fell_back == ("docs",)


def test_without_waiting_the_newest_built_one_is_taken_meanwhile() -> None:
    state = docs(revision("docs-1"), revision("docs-2", "Building"))
    assert indexes(ask(state, wait_for_builds=False)) == ["docs-1"]


def test_equal_content_is_the_same_release_whatever_image_came_later() -> None:
    state = docs(revision("docs-2"))
    first = ask(state)
    assert isinstance(first, Desired)
    newer = replace(PLATFORM, version="2.0", images=Images("host:5000/runtime:2.0", "host:5000/sidecar:2.0"))

    second = desire(PIPELINE, {"docs": state}, existing={first.name: first.frozen}, platform=newer)
    assert second == first


def test_a_pinned_version_is_a_tag_of_the_same_images() -> None:
    found = ask(docs(revision("docs-2")), version="0.9")
    assert isinstance(found, Desired)
    assert found.frozen.images == Images("host:5000/runtime:0.9", "host:5000/sidecar:0.9")
    assert found.frozen.release.versions.runtime == "0.9"


def deployment(found: Desired | Waits) -> str:
    assert isinstance(found, Desired)
    return found.frozen.release.deployment


def test_pods_are_shared_unless_version_model_or_knowledge_bases_differ() -> None:
    base = deployment(ask(docs(revision("docs-2"))))

    assert deployment(ask(docs(revision("docs-3"), desired="docs-3"))) == base
    assert deployment(ask(docs(revision("docs-2")), PIPELINE.model_copy(update={"output": "lexical"}))) == base
    assert deployment(ask(docs(revision("docs-2", embedder="use-m3")))) != base
    assert deployment(ask(docs(revision("docs-2")), version="0.9")) != base
