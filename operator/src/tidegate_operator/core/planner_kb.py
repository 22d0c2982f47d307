"""A KnowledgeBase: from its spec and the world to one thing to do.

Steps, in this order: is the spec usable (else the last accepted one stays in force); which language,
decided once; which revision is wanted, frozen before anything refers to it; which revisions may go;
what the cluster should hold; what is true.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tidegate_api.conditions import ConditionType, find, merged
from tidegate_api.config import IndexerConfig, RevisionConfig
from tidegate_api.v1alpha1.common import Status
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec, KnowledgeBaseStatus, RevisionStatus
from tidegate_operator.core.children import ChildrenPlan, Upkeep, Wanted, plan_children, seal
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.names import Annotation
from tidegate_operator.core.observed_kb import KnowledgeWorld, acceptance
from tidegate_operator.core.pacing import soonest, until_retry, until_told
from tidegate_operator.core.plan import Delete, Gauge, Plan, Reading, Rest
from tidegate_operator.core.platform import Platform
from tidegate_operator.core.policies import Verdict
from tidegate_operator.core.render.controllerrevision import FrozenRevision, frozen_revision
from tidegate_operator.core.render.indexer_config import document
from tidegate_operator.core.render.indexer_deployment import IndexerPod
from tidegate_operator.core.render.knowledge_base import knowledge_base_children
from tidegate_operator.core.revisions import (
    RETIRING,
    Retention,
    language_of,
    newest_built,
    retention,
    settled_language,
    wanted_revision,
)
from tidegate_operator.core.settle import Outcome, settle
from tidegate_operator.core.status_kb import (
    Facts,
    building,
    mark_retiring,
    new_revision,
    observe_revision,
    shown,
    state_of,
    statements,
    sync_status,
)

POLL_SECONDS = 2.0
MISSING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Intent:
    """What a usable spec comes to, as far as it is known now."""

    spec: KnowledgeBaseSpec
    language: str
    wanted: RevisionConfig | None  # None while the language is not recorded


@dataclass(frozen=True, slots=True)
class Picture:
    """What the steps before the status have found."""

    verdict: Verdict | None
    intent: Intent | None
    desired: str
    revisions: tuple[RevisionStatus, ...]
    going: Retention
    config: IndexerConfig | None


def plan_knowledge_base(world: KnowledgeWorld, platform: Platform, now: datetime) -> Plan:
    """Return the one thing to do for a KnowledgeBase now."""
    if world.meta.deletion_timestamp is not None:
        return Rest()  # owner references take the children along
    picture = _picture(world, platform, now)
    freeze = plan_children(world.children, _freeze(world, picture.intent, platform), now=now)
    children = plan_children(world.children, _wanted(world, picture, platform), now=now)
    blocked = ChildrenPlan(
        conflicts=(*freeze.conflicts, *children.conflicts),
        leftovers=(*freeze.leftovers, *children.leftovers),
        refusals=(*freeze.refusals, *children.refusals),
    )
    status = _status(world, picture, blocked, now)
    outcome = Outcome(
        status=status,
        prepare=freeze.actions,
        actions=(*children.actions, *_drops(world, picture.going)),
        wake_after_seconds=_wake(world, picture, status, blocked, platform, now),
        readings=_readings(world, status),
    )
    return settle(world.children.owner.ref, world.meta, world.status, outcome, decisions=_decisions)


def _readings(world: KnowledgeWorld, status: KnowledgeBaseStatus) -> tuple[Reading, ...]:
    """Return the documents of every revision that can be queried."""
    return tuple(
        Reading(Gauge.INDEX_DOCUMENTS, (world.meta.namespace, world.meta.name, each.name), each.documents)
        for each in status.revisions
        if each.ready_at
    )


def _decisions(status: Status) -> object:
    """Return the part of a status that actions rest on, and which generation it speaks of."""
    assert isinstance(status, KnowledgeBaseStatus)  # noqa: S101 - narrows the shared signature
    retiring = tuple(sorted((each.name, each.phase == RETIRING) for each in status.revisions))
    return status.observed_generation, status.language, status.desired_revision, status.latest_revision, retiring


def _picture(world: KnowledgeWorld, platform: Platform, now: datetime) -> Picture:
    verdict = acceptance(world)
    intent = _intend(world, world.asked if verdict is None else world.accepted)
    desired = _desired(world, intent)
    revisions = _revisions(world)
    latest = newest_built(revisions, desired=desired, before=world.status.latest_revision)
    going = _retention(world, intent, revisions, keep=frozenset({desired, latest}), platform=platform, now=now)
    marked = tuple(mark_retiring(each, retire=each.name in going.retire, now=now) for each in revisions)
    return Picture(verdict, intent, desired, marked, going, _config(world, intent, going))


def _intend(world: KnowledgeWorld, spec: KnowledgeBaseSpec | None) -> Intent | None:
    if spec is None:
        return None
    language = language_of(spec, recorded=world.status.language, indexer=world.indexer)
    settled = settled_language(spec, recorded=world.status.language)
    wanted = wanted_revision(world.meta.name, spec, settled) if settled is not None else None
    return Intent(spec, language or "", wanted)


def _desired(world: KnowledgeWorld, intent: Intent | None) -> str:
    """Return the desired revision: only a frozen one may be named; until then the earlier one stays."""
    if intent is None:
        return world.status.desired_revision
    if intent.wanted is None:
        return ""
    return intent.wanted.name if intent.wanted.name in world.frozen else world.status.desired_revision


def _freeze(world: KnowledgeWorld, intent: Intent | None, platform: Platform) -> list[Wanted]:
    if intent is None or intent.wanted is None or intent.wanted.name in world.frozen:
        return []
    frozen = FrozenRevision(revision=intent.wanted, runtime_image=platform.images.runtime)
    return [Wanted(seal(frozen_revision(frozen, world.children.owner), world.children), Upkeep.ONCE)]


def _revisions(world: KnowledgeWorld) -> list[RevisionStatus]:
    """Return an entry for every frozen revision, with what is known of it."""
    known = {each.name: each for each in world.status.revisions}
    entries = []
    for name, frozen in sorted(world.frozen.items()):
        live = world.children.live[Ref(Kind.CONTROLLER_REVISION, world.meta.namespace, name)]
        entry = known.get(name) or new_revision(frozen.revision, live.created_at)
        entries.append(observe_revision(entry, state_of(world.indexer, name), world.references))
    return entries


def _retention(
    world: KnowledgeWorld,
    intent: Intent | None,
    revisions: list[RevisionStatus],
    *,
    keep: frozenset[str],
    platform: Platform,
    now: datetime,
) -> Retention:
    """Return what may go. While the indexer or the spec does not speak, nothing new is decided and nothing dropped."""
    if intent is None or world.indexer is None:
        marked = {each.name for each in revisions if each.phase == RETIRING}
        return Retention(retire=frozenset(marked - keep), drop=frozenset())
    return retention(
        revisions,
        keep=keep,
        references=world.references,
        limit=intent.spec.revision_history_limit,
        now=now,
        pause=timedelta(seconds=platform.retiring_seconds),
    )


def _config(world: KnowledgeWorld, intent: Intent | None, going: Retention) -> IndexerConfig | None:
    """Return what the indexer should make true: every frozen revision that is not dropped."""
    if intent is None:
        return None
    listed = [frozen.revision for name, frozen in sorted(world.frozen.items()) if name not in going.drop]
    sync = world.meta.annotations.get(Annotation.SYNC, "")
    return document(intent.spec, world.children.owner, revisions=listed, sync=sync)


def _wanted(world: KnowledgeWorld, picture: Picture, platform: Platform) -> list[Wanted]:
    if picture.intent is None or picture.config is None:
        return []
    spec = picture.intent.spec
    pod = IndexerPod.of(spec, world.children.owner, image=_image(world, picture, platform), platform=platform)
    return knowledge_base_children(spec, world.children, config=picture.config, pod=pod, token=world.fresh_token)


def _image(world: KnowledgeWorld, picture: Picture, platform: Platform) -> str:
    """Return the image of the newest revision: an operator upgrade alone restarts no indexer."""
    newest = max(picture.revisions, key=lambda each: (each.created_at or "", each.name), default=None)
    return platform.images.runtime if newest is None else world.frozen[newest.name].runtime_image


def _drops(world: KnowledgeWorld, going: Retention) -> tuple[Delete, ...]:
    found = [
        world.children.get(Ref(Kind.CONTROLLER_REVISION, world.meta.namespace, name)) for name in sorted(going.drop)
    ]
    return tuple(Delete(live.ref, live.uid) for live in found if live is not None and not live.deleting)


def _status(world: KnowledgeWorld, picture: Picture, blocked: ChildrenPlan, now: datetime) -> KnowledgeBaseStatus:
    before, generation = world.status, world.meta.generation
    by_name = {each.name: each for each in picture.revisions}
    desired = by_name.get(picture.desired)
    latest_name = newest_built(picture.revisions, desired=picture.desired, before=before.latest_revision)
    latest = by_name.get(latest_name)
    facts = Facts(
        verdict=picture.verdict,
        conflicts=blocked.conflicts,
        refusals=blocked.refusals,
        desired=desired,
        latest=latest_name,
        acknowledged=_acknowledged(world, picture.config),
    )
    return KnowledgeBaseStatus(
        observed_generation=generation,
        conditions=merged(before.conditions, statements(world, facts), generation=generation, now=now),
        language=(picture.intent.language if picture.intent is not None else "") or before.language,
        desired_revision=picture.desired,
        latest_revision=latest_name,
        documents=latest.documents if latest is not None else 0,
        chunks=latest.chunks if latest is not None else 0,
        building=building(desired, state_of(world.indexer, picture.desired)),
        revisions=shown(picture.revisions, always=frozenset({picture.desired, latest_name})),
        sync=sync_status(before.sync, world.indexer.sync if world.indexer is not None else None),
    )


def _acknowledged(world: KnowledgeWorld, config: IndexerConfig | None) -> bool:
    """Return whether the indexer obeys the newest config; while it does not answer, what was true stays so."""
    if config is None:
        return False
    if world.indexer is not None:
        return world.indexer.config_hash == config.config_hash()
    ready = find(world.status.conditions, ConditionType.READY)
    return ready is not None and ready.status == "True" and ready.observed_generation == world.meta.generation


def _wake(
    world: KnowledgeWorld,
    picture: Picture,
    status: KnowledgeBaseStatus,
    blocked: ChildrenPlan,
    platform: Platform,
    now: datetime,
) -> float | None:
    workload = world.workload
    runs = workload is not None and workload.ready > 0
    ready = find(status.conditions, ConditionType.READY)
    moves = ready is not None and ready.status == "Unknown"
    return soonest(
        [
            POLL_SECONDS if runs and (moves or status.building) else None,
            until_told(world.pods, now),
            until_retry(blocked.refusals, now),
            MISSING_SECONDS if picture.verdict is not None and world.missing else None,
            MISSING_SECONDS if blocked.conflicts or blocked.leftovers else None,
            platform.retiring_seconds / 2 if picture.going.retire else None,
        ]
    )
