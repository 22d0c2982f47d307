"""Which release a pipeline's spec asks for now, and what it waits for.

Desired release = pipeline revision x each knowledge base's desired index revision. It waits while a
knowledge base has not looked at its own newest generation, or while a desired revision is not built;
`waitForBuilds: false` takes the newest built one instead, and a failed build falls back to it and
says so. A revision that is being retired is never a target. A release that exists already keeps the
versions and images it was made with: equal content is the same release, whatever image came later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate_api.config import IndexRef, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.hashing import content_hash
from tidegate_api.model import Model
from tidegate_api.nodes import REQUIRES
from tidegate_operator.core.platform import Images, Platform

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Revision:
    """What a knowledge base's status says of one of its revisions."""

    name: str
    phase: str
    embedder: str
    provides: frozenset[str]
    load_bytes: int = 0  # memory that a reader needs to hold it


@dataclass(frozen=True, slots=True)
class KnowledgeState:
    """What a knowledge base's status says, as far as a release depends on it."""

    name: str
    observed: bool  # its status speaks of its newest generation
    desired: str
    latest: str
    revisions: Mapping[str, Revision]
    message: str = ""  # why it is not ready, from its own Ready condition


class FrozenRelease(Model):
    """The data of a release's ControllerRevision: everything that a pod needs to serve it, for ever."""

    schema_version: int = SCHEMA_VERSION
    release: ReleaseConfig
    runtime_image: str
    sidecar_image: str

    @property
    def images(self) -> Images:
        """Return the images it was made with."""
        return Images(self.runtime_image, self.sidecar_image)


@dataclass(frozen=True, slots=True)
class Desired:
    """The release to serve. `fell_back` names knowledge bases whose newest build failed."""

    frozen: FrozenRelease
    fell_back: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the release's name."""
        return self.frozen.release.name


@dataclass(frozen=True, slots=True)
class Waits:
    """There is no release yet. `blocked` = waiting alone will not help: somebody has to act."""

    reason: str
    message: str
    blocked: bool = False


def desire(
    pipeline: PipelineConfig,
    knowledge: Mapping[str, KnowledgeState | None],
    *,
    existing: Mapping[str, FrozenRelease],
    platform: Platform,
    version: str = "",
    wait_for_builds: bool = True,
) -> Desired | Waits:
    """Return the release that is asked for now, or what it waits for."""
    chosen: list[Revision] = []
    indexes: list[IndexRef] = []
    fell_back: list[str] = []
    for name in pipeline.knowledge_bases:
        state = knowledge.get(name)
        if state is None:
            return Waits(
                "KnowledgeBaseMissing",
                f"KnowledgeBase {name} does not exist; apply it, or take it out of spec.knowledgeBases",
            )
        picked = _pick(state, wait_for_builds=wait_for_builds)
        if isinstance(picked, Waits):
            return picked
        if picked.name != state.desired and _failed(state):
            fell_back.append(name)
        chosen.append(picked)
        indexes.append(IndexRef(knowledge_base=name, revision=picked.name))
    if (missing := _missing_legs(pipeline, chosen)) is not None:
        return missing
    return Desired(
        _freeze(pipeline, indexes, chosen, existing=existing, platform=platform, version=version), tuple(fell_back)
    )


def _pick(state: KnowledgeState, *, wait_for_builds: bool) -> Revision | Waits:
    desired, latest = state.revisions.get(state.desired), _usable(state.revisions.get(state.latest))
    if not state.observed:
        return Waits(
            "KnowledgeBaseBehind",
            f"KnowledgeBase {state.name} has not been looked at since its spec changed; nothing to do",
        )
    if (built := _usable(desired)) is not None:
        return built
    if _failed(state):
        return latest or Waits(
            "RevisionFailed",
            f"KnowledgeBase {state.name} could not build its index: {state.message or 'see its status'}",
            blocked=True,
        )
    if not wait_for_builds and latest is not None:
        return latest
    return Waits(
        "WaitsForBuild", f"KnowledgeBase {state.name} has not built its index yet; its status shows how far it is"
    )


def _usable(revision: Revision | None) -> Revision | None:
    return revision if revision is not None and revision.phase == "Ready" else None


def _failed(state: KnowledgeState) -> bool:
    desired = state.revisions.get(state.desired)
    return desired is not None and desired.phase == "Failed"


def _missing_legs(pipeline: PipelineConfig, chosen: Sequence[Revision]) -> Waits | None:
    for node in pipeline.nodes:
        needed = REQUIRES.get(node.type)
        for revision in chosen:
            if needed is not None and needed not in revision.provides:
                return Waits(
                    "IndexLacksLeg",
                    f"node {node.name} needs the leg {needed}, which index revision {revision.name} does not provide; "
                    "change spec.nodes or the knowledge base",
                    blocked=True,
                )
    return None


def _freeze(
    pipeline: PipelineConfig,
    indexes: list[IndexRef],
    chosen: Sequence[Revision],
    *,
    existing: Mapping[str, FrozenRelease],
    platform: Platform,
    version: str,
) -> FrozenRelease:
    asked = version or platform.version
    versions = Versions(runtime=asked, sidecar=asked)
    deployment = deployment_hash(
        versions, knowledge_bases=pipeline.knowledge_bases, embedders=[r.embedder for r in chosen]
    )
    made = ReleaseConfig.make(pipeline=pipeline, indexes=indexes, versions=versions, deployment=deployment)
    known = existing.get(made.name)
    if known is not None:
        return known
    images = platform.images_of(asked)
    return FrozenRelease(release=made, runtime_image=images.runtime, sidecar_image=images.sidecar)


def deployment_hash(versions: Versions, *, knowledge_bases: Sequence[str], embedders: Sequence[str]) -> str:
    """Return what tells one runtime process from another: versions, models and where segments come from.

    Resources, pod settings, GPUs and anything that a process can reload are left out: they roll in place.
    """
    return content_hash(
        {
            "versions": versions.to_document(),  # type: ignore[dict-item]
            "knowledgeBases": sorted(knowledge_bases),
            "embedders": sorted(set(embedders)),
        }
    )
