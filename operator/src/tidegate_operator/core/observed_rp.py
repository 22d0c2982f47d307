"""The world of one RetrievalPipeline with its RoutingPolicies, and the chains that judge their specs."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_api.conditions import Reason
from tidegate_api.config import RoutingTable, SidecarState
from tidegate_api.v1alpha1.common import ObjectMeta
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec, RetrievalPipelineStatus
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec, RoutingPolicyStatus
from tidegate_operator.core.acceptance import pipeline_violations
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.names import deployment_name
from tidegate_operator.core.observed import Children, Live
from tidegate_operator.core.policies import Verdict, first_verdict, of_violations
from tidegate_operator.core.releases import FrozenRelease, KnowledgeState
from tidegate_operator.core.workloads import Pod, Workload, read_workload


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One RoutingPolicy that names this pipeline."""

    meta: ObjectMeta
    asked: RoutingPolicySpec | None  # None: this operator cannot read it, see `problem`
    problem: str
    status: RoutingPolicyStatus


@dataclass(frozen=True, slots=True)
class PipelineWorld:
    """Everything that a decision about a RetrievalPipeline may look at."""

    meta: ObjectMeta
    asked: RetrievalPipelineSpec | None
    problem: str
    accepted: RetrievalPipelineSpec | None  # the last one that was in force, from our own ConfigMap
    accepted_policy: RoutingPolicySpec | None
    status: RetrievalPipelineStatus
    children: Children
    policies: tuple[PolicyView, ...]  # the ruling one first
    knowledge: Mapping[str, KnowledgeState | None]
    frozen: Mapping[str, FrozenRelease]  # by the release's name
    missing: frozenset[Ref]  # Secrets that the spec names and that are not there
    table: RoutingTable | None  # as it is written
    table_hash: str  # of the written table; empty where there is none
    pods: tuple[Pod, ...]
    sidecars: Mapping[str, SidecarState]  # answers, by pod; who does not answer is not in it
    fresh_key: str  # random; taken where the pods have no key yet

    def deployment(self, deployment_hash: str) -> Live | None:
        """Return a Deployment of ours."""
        name = deployment_name(self.meta.name, deployment_hash)
        return self.children.get(Ref(Kind.DEPLOYMENT, self.meta.namespace, name))

    def workload(self, deployment_hash: str) -> Workload | None:
        """Return the figures of a Deployment, once there is one of ours."""
        live = self.deployment(deployment_hash)
        return None if live is None else read_workload(live)

    def pods_of(self, deployment_hash: str) -> tuple[Pod, ...]:
        """Return the pods of a Deployment that are not going away."""
        return tuple(pod for pod in self.pods if pod.deployment == deployment_hash and not pod.deleting)


def spec_unreadable(world: PipelineWorld) -> Verdict | None:
    """A newer API server may accept values that this operator does not know."""
    return Verdict(Reason.UNSUPPORTED_VALUE, world.problem) if world.asked is None else None


def spec_wrong(world: PipelineWorld) -> Verdict | None:
    """What CEL cannot say: the graph, and members of the pod that are ours."""
    return of_violations(pipeline_violations(world.asked)) if world.asked is not None else None


def secret_missing(world: PipelineWorld) -> Verdict | None:
    """Callers cannot be told apart without the Secret that spec.auth names."""
    for ref in sorted(world.missing):
        message = f"spec.auth names {ref}, which does not exist in this namespace; create it or correct the name"
        return Verdict(Reason.SECRET_MISSING, message)
    return None


_ACCEPTANCE = (spec_unreadable, spec_wrong, secret_missing)


def acceptance(world: PipelineWorld) -> Verdict | None:
    """Return why the spec cannot be used, or None."""
    return first_verdict(_ACCEPTANCE, world)
