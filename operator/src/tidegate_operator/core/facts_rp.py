"""What the planner of a pipeline has found out, for those who say it in status."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec, RolloutStatus
from tidegate_operator.core.kinds import Ref
from tidegate_operator.core.memory import Shortage
from tidegate_operator.core.observed import Refusal
from tidegate_operator.core.policies import Verdict
from tidegate_operator.core.releases import Desired, Waits
from tidegate_operator.core.workloads import Trouble


@dataclass(frozen=True, slots=True)
class Facts:
    """What the planner has found out beside the world itself."""

    spec: RetrievalPipelineSpec | None
    verdict: Verdict | None
    conflicts: tuple[Ref, ...]
    refusals: tuple[Refusal, ...]
    wanted: Desired | Waits | None
    state: RolloutStatus
    settled: bool  # every write is done, every pod obeys table and settings, every Deployment is rolled out
    candidate_failure: str
    suspended: bool
    shortage: Shortage | None = None  # pods have no room for the candidate
    step_removed: bool = False  # the policy has no longer the step at which the candidate is
    unready: Mapping[str, Trouble] = field(default_factory=dict)  # by Deployment: what keeps running pods from ready
    replacing: bool = False  # `update: Replace`: stable's pods are stopped before the candidate's can start

    @property
    def desired(self) -> str:
        """Return the release that the spec asks for; empty while there is none."""
        return self.wanted.name if isinstance(self.wanted, Desired) else ""
