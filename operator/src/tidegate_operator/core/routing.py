"""From a rollout's state to what pods and Services should look like: table, Deployments, the public selector.

The table names every release that is held; a Deployment exists for each need of a held release. The
public Service moves to another Deployment only after all pods obey the table that sends there, or
when waiting longer would help nobody; a Deployment that is not held goes after that, drained.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tidegate_api.config import ReleaseConfig, RoutingTable
from tidegate_api.v1alpha1.retrievalpipeline import RolloutStatus
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec
from tidegate_operator.core.desired import PipelineIdentity, Split, routing_table
from tidegate_operator.core.exposure import begun
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.memory import Shortage
from tidegate_operator.core.names import Label
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.releases import FrozenRelease

# A pod that does not obey a new table by then is not waited for; endpoints are drained by then, too.
SWITCH_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Held:
    """Releases that pods hold, by name, the one that the table calls stable, and those that do not fit beside them."""

    releases: Mapping[str, ReleaseConfig]
    front: str
    shortages: Mapping[str, Shortage] = field(default_factory=dict)


def held_releases(
    state: RolloutStatus,
    frozen: Mapping[str, FrozenRelease],
    *,
    window: Iterable[str],
    policy: RoutingPolicySpec | None,
) -> Held | None:
    """Return what pods should hold; None while no release exists. Before the first one serves it is in front already."""
    front = state.stable or state.candidate
    if front not in frozen:
        return None
    names = dict.fromkeys([front, state.candidate, *window, *named_releases(policy)])
    return Held({name: frozen[name].release for name in names if name in frozen}, front)


def named_releases(policy: RoutingPolicySpec | None) -> list[str]:
    """Return what pins and rules name: releases, `stable` and `candidate`."""
    return [] if policy is None else [pin.release for pin in policy.pins] + [rule.serve for rule in policy.rules]


def table_of(
    held: Held, state: RolloutStatus, identity: PipelineIdentity, *, policy: RoutingPolicySpec | None
) -> RoutingTable:
    """Return the table that a state means, not numbered yet."""
    candidate = state.candidate if state.candidate in held.releases and state.candidate != held.front else None
    serves = state.step is not None and candidate is not None
    split = Split(
        stable=held.front,
        candidate=candidate,
        share=state.step.share if serves and state.step is not None else 0,
        begun=begun(policy.rollout.steps, state.step) if policy is not None and serves else frozenset(),
    )
    return routing_table(identity, split, releases=list(held.releases.values()), version=0, policy=policy)


def needed_deployments(held: Held) -> dict[str, tuple[str, ...]]:
    """Return the Deployments that the held releases need, each with the newest-named release first."""
    needed: dict[str, list[str]] = {}
    for name, release in held.releases.items():
        needed.setdefault(release.deployment, []).append(name)
    return {deployment: tuple(names) for deployment, names in needed.items()}


def public_deployment(
    world: PipelineWorld, held: Held, state: RolloutStatus, *, acknowledged: bool, now: datetime
) -> str:
    """Return the Deployment whose ready pods the public Service selects."""
    wanted = held.releases[held.front].deployment
    live = world.children.get(Ref(Kind.SERVICE, world.meta.namespace, world.meta.name))
    selector = ((live.manifest.get("spec") or {}).get("selector") or {}) if live is not None else {}
    present = selector.get(Label.DEPLOYMENT)
    if present in (None, wanted) or acknowledged or switched_for(state, now) >= timedelta(seconds=SWITCH_SECONDS):
        return wanted
    workload = world.workload(present)
    return present if workload is not None and workload.ready > 0 else wanted


def switched_for(state: RolloutStatus, now: datetime) -> timedelta:
    """Return how long the stable release has been stable."""
    begun_at = next((entry.from_ for entry in state.history if entry.release == state.stable), None)
    return now - datetime.fromisoformat(begun_at) if begun_at is not None else timedelta(0)
