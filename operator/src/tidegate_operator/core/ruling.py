"""Which RoutingPolicy rules a pipeline, and what of it is in force.

At most one rules: the oldest, ties by name. One that the operator cannot use leaves the last accepted
one in force, which is kept in the routing ConfigMap; where there was none, nothing new begins, because
a policy was meant to hold it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from tidegate_api.conditions import Reason
from tidegate_api.v1alpha1.common import duration_seconds
from tidegate_api.v1alpha1.routingpolicy import RollbackWindow, RoutingPolicySpec
from tidegate_operator.core.acceptance import policy_violations
from tidegate_operator.core.memory import shortage_of, written_releases
from tidegate_operator.core.observed_rp import PipelineWorld, PolicyView
from tidegate_operator.core.policies import Verdict, of_violations
from tidegate_operator.core.routing import named_releases


@dataclass(frozen=True, slots=True)
class Ruling:
    """The policy that rules, why its newest spec cannot be used, and the spec that is in force."""

    view: PolicyView | None
    verdict: Verdict | None
    in_force: RoutingPolicySpec | None

    @property
    def holds_everything(self) -> bool:
        """Return whether there is a policy, but none that could ever be used."""
        return self.view is not None and self.in_force is None

    @property
    def window(self) -> tuple[int, timedelta]:
        """Return how many earlier releases are kept warm, and for how long."""
        asked = self.in_force.rollback_window if self.in_force is not None else RollbackWindow()
        return asked.releases, timedelta(seconds=duration_seconds(asked.duration))


def ruling(world: PipelineWorld, *, releases: Collection[str]) -> Ruling:
    """Return what rules now. `releases` are those that a pin or rule may name."""
    if not world.policies:
        return Ruling(None, None, None)
    view = world.policies[0]
    if view.asked is None:
        verdict: Verdict | None = Verdict(Reason.UNSUPPORTED_VALUE, view.problem)
    else:
        verdict = of_violations(policy_violations(view.asked, releases=releases)) or _no_room(world, view.asked)
    return Ruling(view, verdict, view.asked if verdict is None else _still_servable(world, releases))


def _no_room(world: PipelineWorld, policy: RoutingPolicySpec) -> Verdict | None:
    """Return that pods cannot take in a release that a pin or rule names anew."""
    written, rollout = written_releases(world), world.status.rollout
    named = [name for name in dict.fromkeys(named_releases(policy)) if name in world.frozen]
    there = [name for name in (rollout.stable, rollout.candidate) if name in written]
    for name in named:
        if name not in written:
            beside = [world.frozen[each].release for each in dict.fromkeys([*there, *named]) if each in world.frozen]
            others = [release for release in beside if release.name != name]
            shortage = shortage_of(world, world.frozen[name].release, beside=others)
            if shortage is not None:
                return Verdict(Reason.INSUFFICIENT_MEMORY, f"spec.pins and spec.rules: {shortage}")
    return None


def _still_servable(world: PipelineWorld, releases: Collection[str]) -> RoutingPolicySpec | None:
    """Return the last accepted policy, unless what it names has gone meanwhile."""
    kept = world.accepted_policy
    return kept if kept is not None and not policy_violations(kept, releases=releases) else None
