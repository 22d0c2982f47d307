"""What pods hold, what the table says and which objects carry it, for one state of a rollout."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from tidegate_api.config import RoutingTable, SidecarConfig
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec, RolloutStatus
from tidegate_operator.core.children import Wanted
from tidegate_operator.core.desired import PipelineIdentity, sidecar_config
from tidegate_operator.core.kinds import Kind
from tidegate_operator.core.memory import Shortage, shortages
from tidegate_operator.core.names import Label
from tidegate_operator.core.observed import Live, Ownership
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.plan import Delete
from tidegate_operator.core.platform import Platform
from tidegate_operator.core.render.pipeline import pipeline_children
from tidegate_operator.core.render.pipeline_deployment import AUTH_PATHS, PipelinePod
from tidegate_operator.core.render.routing_config import numbered, routing_config_map
from tidegate_operator.core.rollout import RolloutFacts, in_window, one_at_a_time, replaces_stable
from tidegate_operator.core.routing import (
    SWITCH_SECONDS,
    Held,
    held_releases,
    named_releases,
    needed_deployments,
    public_deployment,
    switched_for,
    table_of,
)
from tidegate_operator.core.ruling import Ruling
from tidegate_operator.core.warmth import behind_table


@dataclass(frozen=True, slots=True)
class Front:
    """What a state comes to in the cluster."""

    held: Held | None
    table: RoutingTable | None
    sidecar: SidecarConfig
    children: tuple[Wanted, ...]
    removals: tuple[Delete, ...]

    @property
    def held_names(self) -> frozenset[str]:
        """Return the names of the releases that pods hold."""
        return frozenset(self.held.releases) if self.held is not None else frozenset()

    def shortage(self, release: str) -> Shortage | None:
        """Return that pods have no room for a release that they should hold."""
        return self.held.shortages.get(release) if self.held is not None else None


def held_by(
    world: PipelineWorld, state: RolloutStatus, facts: RolloutFacts, rules: Ruling, now: datetime
) -> Held | None:
    """Return the releases that pods hold in a state, as far as there is room for them.

    An earlier release is kept warm only where it costs no pods of its own when there is no policy, or
    when its pods would wait for what those that serve hold, and take it when one of these fails.
    """
    window = in_window(state, facts, now)
    front = world.frozen.get(state.stable)
    if front is not None and (rules.view is None or one_at_a_time(facts)):
        here = front.release.deployment
        window = tuple(name for name in window if facts.releases[name].deployment == here)
    held = held_releases(state, world.frozen, window=window, policy=rules.in_force)
    if held is None:
        return None
    bound = named_releases(rules.in_force)
    lacks = shortages(world, held.releases, state, front=held.front, bound=bound)
    return replace(
        held, releases={name: each for name, each in held.releases.items() if name not in lacks}, shortages=lacks
    )


def table_for(world: PipelineWorld, held: Held | None, state: RolloutStatus, rules: Ruling) -> RoutingTable | None:
    """Return the table of a state under its number: the live one when the content is the same."""
    if held is None:
        return None
    identity = PipelineIdentity(name=world.meta.name, namespace=world.meta.namespace, uid=world.meta.uid)
    table = table_of(held, state, identity, policy=rules.in_force)
    reported = [state.table_version for state in world.sidecars.values()]
    known = [world.status.routing.version, *reported]
    return numbered(table, world.table, live_hash=world.table_hash, known_versions=known)


def acknowledged(world: PipelineWorld, table: RoutingTable | None) -> bool:
    """Return whether a table is written and every ready pod obeys it."""
    if table is None or world.table is None or table.version != world.table.version:
        return False
    return not behind_table(world)


def front_of(
    world: PipelineWorld,
    spec: RetrievalPipelineSpec,
    state: RolloutStatus,
    *,
    facts: RolloutFacts,
    rules: Ruling,
    platform: Platform,
    now: datetime,
) -> Front:
    """Return what the cluster should hold for a state."""
    held = held_by(world, state, facts, rules, now)
    table = table_for(world, held, state, rules)
    sidecar = sidecar_config(
        spec,
        pipeline=world.meta.name,
        namespace=world.meta.namespace,
        auth_paths={member: PurePosixPath(path) for member, path in AUTH_PATHS.items()},
    )
    routing = routing_config_map(
        world.children.owner, table=table, sidecar=sidecar, accepted=spec, policy=rules.in_force
    )
    public = None
    if held is not None:
        public = public_deployment(world, held, state, acknowledged=acknowledged(world, table), now=now)
    run, stop = _deployments(world, held, state, facts=facts, public=public, now=now)
    children = pipeline_children(
        spec,
        world.children,
        routing=routing,
        pods=[_pod(world, spec, deployment, releases, platform) for deployment, releases in run.items()],
        public=public,
        operator_namespace=platform.operator_namespace,
        hop_key=world.fresh_key,
    )
    gone = [*stop, *_peer_services_without(world, {*run, *_live_deployments(world)} - {_hash(each) for each in stop})]
    return Front(held, table, sidecar, tuple(children), tuple(Delete(live.ref, live.uid) for live in gone))


def _deployments(
    world: PipelineWorld,
    held: Held | None,
    state: RolloutStatus,
    *,
    facts: RolloutFacts,
    public: str | None,
    now: datetime,
) -> tuple[dict[str, tuple[str, ...]], list[Live]]:
    """Return the Deployments to run, with the releases each holds, and those to stop.

    A Deployment stops when nothing it holds is needed and its traffic has moved away and drained; or
    before that, where a candidate takes its place.
    """
    needed = needed_deployments(held) if held is not None else {}
    live = _live_deployments(world)
    if held is not None and state.candidate in held.releases and replaces_stable(state, facts):
        coming = held.releases[state.candidate].deployment
        if state.step is not None:  # it serves already: what still runs goes by the rule above, nothing else starts
            return {hash_: names for hash_, names in needed.items() if hash_ == coming or hash_ in live}, []
        others = [each for hash_, each in live.items() if hash_ != coming]
        gone = not others and not any(pod.deployment != coming for pod in world.pods)
        return ({coming: needed[coming]} if gone else {}), [each for each in others if not each.deleting]
    drained = switched_for(state, now) >= timedelta(seconds=SWITCH_SECONDS)
    idle = [each for hash_, each in live.items() if hash_ not in needed and hash_ != public and not each.deleting]
    return needed, idle if drained else []


def _peer_services_without(world: PipelineWorld, deployments: set[str]) -> list[Live]:
    """Return the Services between pods whose Deployment is not among `deployments`."""
    owner = world.children.owner
    return [
        live
        for ref, live in world.children.live.items()
        if ref.kind is Kind.SERVICE
        and live.ownership(owner) is Ownership.OURS
        and _hash(live)
        and _hash(live) not in deployments
        and not live.deleting
    ]


def _hash(live: Live) -> str:
    return live.labels.get(Label.DEPLOYMENT, "")


def _live_deployments(world: PipelineWorld) -> dict[str, Live]:
    owner = world.children.owner
    return {
        _hash(live): live
        for ref, live in world.children.live.items()
        if ref.kind is Kind.DEPLOYMENT and live.ownership(owner) is Ownership.OURS
    }


def _pod(
    world: PipelineWorld, spec: RetrievalPipelineSpec, deployment: str, releases: tuple[str, ...], platform: Platform
) -> PipelinePod:
    frozen = world.frozen[releases[0]]
    return PipelinePod(
        deployment=deployment,
        images=frozen.images,
        pull_policy=platform.pull_policy,
        knowledge_bases=tuple(sorted(frozen.release.pipeline.knowledge_bases)),
        spec=spec,
        pull_secrets=platform.pull_secrets,
    )
