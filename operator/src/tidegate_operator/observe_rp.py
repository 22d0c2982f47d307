"""Reads the world of one RetrievalPipeline with its RoutingPolicies."""

import asyncio
import secrets
from datetime import datetime

from pydantic import ValidationError

from tidegate_api.conditions import ConditionType, find
from tidegate_api.config import TABLE_KEY, RoutingTable
from tidegate_api.v1alpha1.common import ObjectMeta
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseStatus
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec, RetrievalPipelineStatus
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec, RoutingPolicyStatus
from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.names import Label, routing_name
from tidegate_operator.core.observed import Children, Live, Ownership
from tidegate_operator.core.observed_rp import PipelineWorld, PolicyView
from tidegate_operator.core.releases import FrozenRelease, KnowledgeState, Revision
from tidegate_operator.core.render.routing_config import ACCEPTED_KEY, POLICY_KEY
from tidegate_operator.core.workloads import read_pod
from tidegate_operator.observe import Memory, children_of, missing_of, parse_spec, parse_status, parse_stored, read_all
from tidegate_operator.ports import ClusterReader, Planes


async def observe_pipeline(
    cluster: ClusterReader, planes: Planes, key: Key, memory: Memory, now: datetime
) -> PipelineWorld | None:
    """Return the world, or None when the RetrievalPipeline does not exist."""
    manifest = await cluster.get(key.ref)
    if manifest is None:
        return None
    asked, problem = parse_spec(RetrievalPipelineSpec, manifest)
    own = f"{Label.PIPELINE}={key.name}"
    live, releases, deployments, services, pods, policies = await asyncio.gather(
        read_all(cluster, _children(key)),
        cluster.find(Kind.CONTROLLER_REVISION, key.namespace, labels=own),
        cluster.find(Kind.DEPLOYMENT, key.namespace, labels=own),
        cluster.find(Kind.SERVICE, key.namespace, labels=own),
        cluster.find(Kind.POD, key.namespace, labels=own),
        cluster.find(Kind.ROUTING_POLICY, key.namespace, fields=f"spec.pipeline.name={key.name}"),
    )
    live |= {each.ref: each for each in map(Live, [*releases, *deployments, *services])}
    children = children_of(manifest, key.ref, live, memory)
    data = _routing_data(children, key)
    accepted = parse_stored(RetrievalPipelineSpec, data.get(ACCEPTED_KEY))
    gpu = asked.runtime.gpu.resource if asked is not None else ""
    read = [read_pod(pod, deployment_label=Label.DEPLOYMENT, gpu_resource=gpu, now=now) for pod in pods]
    table = parse_stored(RoutingTable, data.get(TABLE_KEY))
    knowledge, missing, sidecars = await asyncio.gather(
        _knowledge(cluster, key, asked, accepted),
        missing_of(cluster, _secrets(asked, key.namespace)),
        planes.sidecars({pod.name: pod.address for pod in read if pod.address and not pod.deleting}),
    )
    return PipelineWorld(
        meta=ObjectMeta.model_validate(manifest["metadata"]),
        asked=asked,
        problem=problem,
        accepted=accepted,
        accepted_policy=parse_stored(RoutingPolicySpec, data.get(POLICY_KEY)),
        status=parse_status(RetrievalPipelineStatus, manifest),
        children=children,
        policies=tuple(sorted(map(_policy, policies), key=lambda view: _seniority(view.meta))),
        knowledge=knowledge,
        frozen=_frozen(children),
        missing=missing,
        table=table,
        table_hash=table.table_hash() if table is not None else "",
        pods=tuple(sorted(read, key=lambda pod: pod.name)),
        sidecars=sidecars,
        fresh_key=secrets.token_hex(32),
    )


def _children(key: Key) -> list[Ref]:
    """Return the children whose names are known; releases and Deployments are found by label."""
    by_pipeline = (Kind.SERVICE, Kind.NETWORK_POLICY, Kind.DISRUPTION_BUDGET)
    by_routing = (Kind.SERVICE_ACCOUNT, Kind.ROLE, Kind.ROLE_BINDING, Kind.CONFIG_MAP, Kind.SECRET)
    return [Ref(kind, key.namespace, key.name) for kind in by_pipeline] + [
        Ref(kind, key.namespace, routing_name(key.name)) for kind in by_routing
    ]


def _routing_data(children: Children, key: Key) -> dict[str, str]:
    live = children.get(Ref(Kind.CONFIG_MAP, key.namespace, routing_name(key.name)))
    return (live.manifest.get("data") or {}) if live is not None else {}


def _secrets(spec: RetrievalPipelineSpec | None, namespace: str) -> list[Ref]:
    """Return the Secrets that a spec names."""
    sources = [spec.auth.api_keys, spec.auth.trusted_headers] if spec is not None else []
    return [Ref(Kind.SECRET, namespace, source.secret_ref.name) for source in sources if source is not None]


def _frozen(children: Children) -> dict[str, FrozenRelease]:
    """Return the frozen releases by name; one of another time, which cannot be read, is left alone."""
    found = {}
    for ref, live in children.live.items():
        ours = ref.kind is Kind.CONTROLLER_REVISION and live.ownership(children.owner) is Ownership.OURS
        if not ours or live.deleting:
            continue
        try:
            frozen = FrozenRelease.model_validate(live.manifest.get("data"))
        except ValidationError:
            continue
        found[frozen.release.name] = frozen
    return found


async def _knowledge(
    cluster: ClusterReader, key: Key, *specs: RetrievalPipelineSpec | None
) -> dict[str, KnowledgeState | None]:
    names = sorted({each.name for spec in specs if spec is not None for each in spec.knowledge_bases})
    found = await asyncio.gather(*(cluster.get(Ref(Kind.KNOWLEDGE_BASE, key.namespace, name)) for name in names))
    return {name: _knowledge_state(name, manifest) for name, manifest in zip(names, found, strict=True)}


def _knowledge_state(name: str, manifest: Manifest | None) -> KnowledgeState | None:
    if manifest is None:
        return None
    status = parse_status(KnowledgeBaseStatus, manifest)
    ready = find(status.conditions, ConditionType.READY)
    return KnowledgeState(
        name=name,
        observed=status.observed_generation == manifest["metadata"].get("generation"),
        desired=status.desired_revision,
        latest=status.latest_revision,
        revisions={
            each.name: Revision(each.name, each.phase, each.embedder, frozenset(each.provides), each.load_bytes)
            for each in status.revisions
        },
        message=ready.message if ready is not None and ready.status == "False" else "",
    )


def _policy(manifest: Manifest) -> PolicyView:
    asked, problem = parse_spec(RoutingPolicySpec, manifest)
    meta = ObjectMeta.model_validate(manifest["metadata"])
    return PolicyView(meta, asked, problem, parse_status(RoutingPolicyStatus, manifest))


def _seniority(meta: ObjectMeta) -> tuple[str, str]:
    return meta.creation_timestamp or "", meta.name
