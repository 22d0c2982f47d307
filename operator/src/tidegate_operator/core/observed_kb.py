"""The world of one KnowledgeBase, and the chain that says whether its spec can be used."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_api.conditions import Reason
from tidegate_api.config import IndexerState
from tidegate_api.v1alpha1.common import ObjectMeta, quantity_value
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec, KnowledgeBaseStatus
from tidegate_operator.core.acceptance import knowledge_base_violations
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.names import indexer_name
from tidegate_operator.core.observed import Children
from tidegate_operator.core.policies import Verdict, first_verdict, of_violations
from tidegate_operator.core.render.controllerrevision import FrozenRevision
from tidegate_operator.core.render.indexer_deployment import store_of
from tidegate_operator.core.workloads import Pod, Workload, read_workload


@dataclass(frozen=True, slots=True)
class KnowledgeWorld:
    """Everything that a decision about a KnowledgeBase may look at."""

    meta: ObjectMeta
    asked: KnowledgeBaseSpec | None  # None: this operator cannot read it, see `problem`
    problem: str
    accepted: KnowledgeBaseSpec | None  # the last one that was in force, from our own ConfigMap
    status: KnowledgeBaseStatus
    children: Children
    frozen: Mapping[str, FrozenRevision]
    references: Mapping[str, tuple[str, ...]]  # who refers to a revision
    missing: frozenset[Ref]  # ConfigMaps and claims that the spec names and that are not there
    indexer: IndexerState | None
    pods: tuple[Pod, ...]
    fresh_token: str

    @property
    def workload(self) -> Workload | None:
        """Return the indexer's Deployment, once there is one of ours."""
        ref = Ref(Kind.DEPLOYMENT, self.meta.namespace, indexer_name(self.meta.name))
        live = self.children.get(ref)
        return None if live is None else read_workload(live)


def spec_unreadable(world: KnowledgeWorld) -> Verdict | None:
    """A newer API server may accept values that this operator does not know."""
    return Verdict(Reason.UNSUPPORTED_VALUE, world.problem) if world.asked is None else None


def spec_wrong(world: KnowledgeWorld) -> Verdict | None:
    """What CEL cannot say."""
    return of_violations(knowledge_base_violations(world.asked)) if world.asked is not None else None


def source_missing(world: KnowledgeWorld) -> Verdict | None:
    """A source names a ConfigMap or a claim that is not there."""
    for ref in sorted(world.missing):
        reason = Reason.CONFIG_MAP_MISSING if ref.kind is Kind.CONFIG_MAP else Reason.CLAIM_MISSING
        return Verdict(
            reason, f"spec names {ref}, which does not exist in this namespace; create it or correct the name"
        )
    return None


def claim_would_shrink(world: KnowledgeWorld) -> Verdict | None:
    """Kubernetes lets a claim grow, never shrink."""
    live = world.children.get(Ref(Kind.CLAIM, world.meta.namespace, indexer_name(world.meta.name)))
    if live is None or world.asked is None or store_of(world.asked).claim_name:
        return None
    asked, held = store_of(world.asked).size, live.manifest["spec"]["resources"]["requests"]["storage"]
    if quantity_value(asked) >= quantity_value(held):
        return None
    message = (
        f"spec.store.index.embedded.size: {asked} is smaller than the claim, which cannot shrink; write {held} or more"
    )
    return Verdict(Reason.INVALID_SPEC, message)


_ACCEPTANCE = (spec_unreadable, spec_wrong, source_missing, claim_would_shrink)


def acceptance(world: KnowledgeWorld) -> Verdict | None:
    """Return why the spec cannot be used, or None."""
    return first_verdict(_ACCEPTANCE, world)
