"""Reads the world of one KnowledgeBase."""

import asyncio
import secrets
from datetime import datetime

from pydantic import ValidationError

from tidegate_api.config import IndexerState
from tidegate_api.v1alpha1.common import ObjectMeta
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec, KnowledgeBaseStatus
from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.names import Label, index_label, indexer_name
from tidegate_operator.core.observed import Live, Ownership
from tidegate_operator.core.observed_kb import KnowledgeWorld
from tidegate_operator.core.render.controllerrevision import FrozenRevision
from tidegate_operator.core.render.indexer_config import ACCEPTED_KEY
from tidegate_operator.core.workloads import Pod, read_pod, read_workload
from tidegate_operator.observe import Memory, children_of, missing_of, parse_spec, parse_status, parse_stored, read_all
from tidegate_operator.ports import ClusterReader, Planes

_CHILDREN = (
    Kind.SERVICE_ACCOUNT,
    Kind.ROLE,
    Kind.ROLE_BINDING,
    Kind.LEASE,
    Kind.SECRET,
    Kind.CONFIG_MAP,
    Kind.SERVICE,
    Kind.CLAIM,
    Kind.DEPLOYMENT,
)


async def observe_knowledge_base(
    cluster: ClusterReader, planes: Planes, key: Key, memory: Memory, now: datetime
) -> KnowledgeWorld | None:
    """Return the world, or None when the KnowledgeBase does not exist."""
    manifest = await cluster.get(key.ref)
    if manifest is None:
        return None
    asked, problem = parse_spec(KnowledgeBaseSpec, manifest)
    name = indexer_name(key.name)
    own = f"{Label.KNOWLEDGE_BASE}={key.name}"
    live, revisions, releases, missing = await asyncio.gather(
        read_all(cluster, [Ref(kind, key.namespace, name) for kind in _CHILDREN]),
        cluster.find(Kind.CONTROLLER_REVISION, key.namespace, labels=own),
        cluster.find(Kind.CONTROLLER_REVISION, key.namespace, labels=index_label(key.name)),
        missing_of(cluster, _named(asked, key.namespace)),
    )
    live |= {each.ref: each for each in map(Live, revisions)}
    children = children_of(manifest, key.ref, live, memory)
    ours = [each for each in live.values() if each.ownership(children.owner) is Ownership.OURS]
    deployment = children.get(Ref(Kind.DEPLOYMENT, key.namespace, name))
    return KnowledgeWorld(
        meta=ObjectMeta.model_validate(manifest["metadata"]),
        asked=asked,
        problem=problem,
        accepted=_accepted(children.get(Ref(Kind.CONFIG_MAP, key.namespace, name))),
        status=parse_status(KnowledgeBaseStatus, manifest),
        children=children,
        frozen=_frozen(ours),
        references=_references(releases, index_label(key.name)),
        missing=missing,
        indexer=await _state(planes, key, deployment),
        pods=await _pods(cluster, key, deployment, now),
        fresh_token=secrets.token_urlsafe(32),
    )


def _named(spec: KnowledgeBaseSpec | None, namespace: str) -> list[Ref]:
    """Return the ConfigMaps and claims that a spec names."""
    if spec is None:
        return []
    refs = []
    for source in spec.sources:
        if source.from_.config_map is not None:
            refs.append(Ref(Kind.CONFIG_MAP, namespace, source.from_.config_map.name))
        if source.from_.volume is not None:
            refs.append(Ref(Kind.CLAIM, namespace, source.from_.volume.claim_name))
    embedded = spec.store.index.embedded if spec.store.index is not None else None
    if embedded is not None and embedded.claim_name:
        refs.append(Ref(Kind.CLAIM, namespace, embedded.claim_name))
    return refs


def _accepted(config_map: Live | None) -> KnowledgeBaseSpec | None:
    data = (config_map.manifest.get("data") or {}) if config_map is not None else {}
    return parse_stored(KnowledgeBaseSpec, data.get(ACCEPTED_KEY))


def _frozen(live: list[Live]) -> dict[str, FrozenRevision]:
    """Return the frozen revisions by name; one of another time, which cannot be read, is left alone."""
    found = {}
    for each in live:
        if each.ref.kind is Kind.CONTROLLER_REVISION and not each.deleting:
            try:
                found[each.ref.name] = FrozenRevision.model_validate(each.manifest.get("data"))
            except ValidationError:
                continue
    return found


def _references(releases: list[Manifest], label: str) -> dict[str, tuple[str, ...]]:
    """Return who refers to each revision: the pipelines that own the releases."""
    found: dict[str, set[str]] = {}
    for release in map(Live, releases):
        if not release.deleting:
            pipeline = release.labels.get(Label.PIPELINE, release.ref.name)
            found.setdefault(release.labels[label], set()).add(f"{Kind.RETRIEVAL_PIPELINE}/{pipeline}")
    return {revision: tuple(sorted(holders)) for revision, holders in found.items()}


async def _state(planes: Planes, key: Key, deployment: Live | None) -> IndexerState | None:
    if deployment is None or read_workload(deployment).ready == 0:
        return None
    return await planes.indexer(key.namespace, key.name)


async def _pods(cluster: ClusterReader, key: Key, deployment: Live | None, now: datetime) -> tuple[Pod, ...]:
    """Return the indexer's pods while there is something to find out about them."""
    if deployment is None or read_workload(deployment).ready > 0:
        return ()
    pods = await cluster.find(Kind.POD, key.namespace, labels=f"{Label.KNOWLEDGE_BASE}={key.name}")
    return tuple(read_pod(pod, deployment_label=Label.DEPLOYMENT, gpu_resource="", now=now) for pod in pods)
