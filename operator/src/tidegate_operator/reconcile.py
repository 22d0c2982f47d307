"""The imperative shell: observe, plan, then one decision or some actions, until there is nothing to do.

A pass never goes on after something failed: it looks again. What the API server refused is kept for
the planner, which writes it into the condition and knows when it may be tried again. A decision that
lost a race is forgotten; the world has moved.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from tidegate_operator import metrics
from tidegate_operator.core.drift import differences
from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, ref_of
from tidegate_operator.core.observed import Refusal
from tidegate_operator.core.plan import Act, Action, Create, Decide, Delete, Plan, Rest
from tidegate_operator.core.planner_kb import plan_knowledge_base
from tidegate_operator.core.planner_rp import plan_pipeline
from tidegate_operator.core.platform import Platform
from tidegate_operator.errors import NameConflictError, RefusedError, StaleError
from tidegate_operator.observe import Memory
from tidegate_operator.observe_kb import observe_knowledge_base
from tidegate_operator.observe_rp import observe_pipeline
from tidegate_operator.ports import Clock, Planes
from tidegate_operator.run_cluster import Cluster, RunCluster

logger = logging.getLogger(__name__)

# A key that is still not at rest after so many passes lets the others go first.
PASSES_MAX = 20
REFUSED_AGAIN_SECONDS = 60.0


class Reconciler:
    """Brings one key after the other to rest. Holds no state that a restart would miss."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        planes: Planes,
        clock: Clock,
        platform: Platform,
        on_read: Callable[[Key, str | None], None] = lambda _, __: None,
    ) -> None:
        self._on_read = on_read
        self._cluster = cluster
        self._planes = planes
        self._clock = clock
        self._platform = platform
        self._memories: dict[Key, Memory] = {}

    async def __call__(self, key: Key) -> float | None:
        """Bring a key to rest; return after how many seconds to look again, None = at the next event."""
        started = time.perf_counter()
        outcome = "error"
        try:
            cluster = RunCluster(self._cluster)
            for _ in range(PASSES_MAX):
                plan = await self._plan(key, cluster)
                if isinstance(plan, Rest):
                    outcome = "rest"
                    metrics.show(key, plan.readings)
                    return plan.wake_after_seconds
                outcome = await self._carry_out(key, plan, cluster)
            outcome = "unfinished"
            return 0.0
        finally:
            metrics.reconciled(key.kind, outcome, time.perf_counter() - started)

    async def _plan(self, key: Key, cluster: Cluster) -> Plan:
        memory, now = self._memories.setdefault(key, Memory()), self._clock.now()
        match key.kind:
            case Kind.KNOWLEDGE_BASE:
                knowledge = await observe_knowledge_base(cluster, self._planes, key, memory, now)
                if knowledge is not None:
                    self._on_read(key, knowledge.meta.resource_version)
                    return plan_knowledge_base(knowledge, self._platform, now)
            case Kind.RETRIEVAL_PIPELINE:
                pipeline = await observe_pipeline(cluster, self._planes, key, memory, now)
                if pipeline is not None:
                    self._on_read(key, pipeline.meta.resource_version)
                    return plan_pipeline(pipeline, self._platform, now)
            case _:
                raise AssertionError(f"{key.kind} is not a kind of key")
        self._on_read(key, None)
        self._memories.pop(key, None)
        return Rest()

    async def _carry_out(self, key: Key, plan: Decide | Act, cluster: Cluster) -> str:
        try:
            match plan:
                case Decide():
                    await self._decide(plan, cluster)
                    return "decided"
                case Act():
                    for action in plan.actions:
                        if not await self._done(key, action, cluster):
                            return "refused"
                    return "acted"
        except StaleError:
            return "stale"

    async def _decide(self, plan: Decide, cluster: Cluster) -> None:
        await cluster.replace_status(plan.ref, plan.status, resource_version=plan.resource_version)
        for cause in plan.rollbacks:
            metrics.rolled_back(plan.ref, cause)
        for note in plan.notes:
            identity = f"{plan.resource_version}/{note.reason}"
            await cluster.record_event(plan.ref, plan.uid, note, identity=identity)

    async def _done(self, key: Key, action: Action, cluster: Cluster) -> bool:
        """Carry out one action; False when the API server refused its content, which is kept for the planner."""
        if isinstance(action, Delete):
            await cluster.delete(action.ref, uid=action.uid)
            return True
        memory, ref = self._memories[key], ref_of(action.manifest)
        try:
            write = cluster.create if isinstance(action, Create) else cluster.apply
            live = await write(action.manifest)
        except (RefusedError, NameConflictError) as error:
            retry_at = self._clock.now() + timedelta(seconds=REFUSED_AGAIN_SECONDS)
            taken = isinstance(error, NameConflictError)
            memory.refusals[ref] = Refusal(ref, action.inputs, error.reason, str(error), retry_at, taken)
            logger.warning("write refused", extra={"key": str(key), "object": str(ref), "error": str(error)})
            return False
        memory.refusals.pop(ref, None)
        left = differences(action.manifest, live)
        if left:
            logger.warning("admission rewrites", extra={"key": str(key), "object": str(ref), "paths": left})
            memory.settled[ref] = left
        else:
            memory.settled.pop(ref, None)
        return True
