"""The operator's composition root: reads settings, checks the cluster, wires the parts, runs until told to stop.

    python -m tidegate_operator [--namespace NAME]…

Exit codes: 0 stopped by a signal, 1 the cluster cannot be worked with or no longer, 2 wrong settings.
"""

import asyncio
import logging
import socket
import sys
import uuid
from collections.abc import Sequence

from pydantic import ValidationError

from tidegate_operator import handlers
from tidegate_operator.adapters.clock import SystemClock
from tidegate_operator.adapters.kube import KubeCluster
from tidegate_operator.adapters.pods import PodPlanes
from tidegate_operator.errors import OperatorError
from tidegate_operator.freshness import Freshness
from tidegate_operator.logs import set_up_logs
from tidegate_operator.presence import Presence, keep_announcing
from tidegate_operator.probes import health_application, metrics_application, served
from tidegate_operator.reconcile import Reconciler
from tidegate_operator.resync import resync
from tidegate_operator.settings import Settings, read_settings
from tidegate_operator.startup import check_startup
from tidegate_operator.watching import watch
from tidegate_operator.workqueue import Pace, WorkQueue

logger = logging.getLogger(__name__)


async def run(settings: Settings, *, stop: asyncio.Event | None = None) -> None:
    """Run the operator until a signal, or `stop`.

    Raises:
        StartupError: a resource definition or a right is missing.
        UnavailableError: the API server cannot be reached at the start.
        ExceptionGroup: of a WatchEndedError; the operator has become blind to a kind.
    """
    freshness = Freshness()
    async with await KubeCluster.from_environment() as cluster, PodPlanes.open() as planes:
        await check_startup(cluster, settings.namespaces)
        reconciler = Reconciler(
            cluster=cluster, planes=planes, clock=SystemClock(), platform=settings.platform(), on_read=freshness.read
        )
        queue = WorkQueue(reconciler, pace=Pace(workers=settings.workers))
        health = health_application(lambda: _problem(queue, freshness))
        async with (
            served(health, settings.listen, settings.health_port),
            served(metrics_application(), settings.listen, settings.metrics_port),
        ):
            logger.info(
                "operator started", extra={"namespaces": list(settings.namespaces), "version": settings.version}
            )
            await _work(settings, cluster, queue, freshness, stop)


async def _work(
    settings: Settings, cluster: KubeCluster, queue: WorkQueue, freshness: Freshness, stop: asyncio.Event | None
) -> None:
    """Watch and work; when the watches end, so does the work."""
    async with asyncio.TaskGroup() as tasks:
        working = [
            tasks.create_task(queue.run(), name="work queue"),
            tasks.create_task(
                resync(
                    cluster,
                    lambda key, after: queue.wake(key, after_seconds=after),
                    namespaces=settings.namespaces,
                    period_seconds=settings.resync_seconds,
                ),
                name="resync",
            ),
            tasks.create_task(keep_announcing(_presence(settings, cluster)), name="presence"),
        ]
        await watch(handlers.Bell(queue.wake, freshness), settings.namespaces, stop=stop)
        for task in working:
            task.cancel()


def _presence(settings: Settings, cluster: KubeCluster) -> Presence:
    identity = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    place = settings.operator_namespace
    return Presence(cluster, SystemClock(), namespace=place, lease=settings.lease, identity=identity)


def _problem(queue: WorkQueue, freshness: Freshness) -> str:
    if freshness.blind():
        return "the watch has not delivered a change that a read has found minutes ago"
    if queue.stuck():
        return "keys are due and none is worked on"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operator and return its exit code."""
    try:
        settings = read_settings(arguments)
    except ValidationError as error:
        for wrong in error.errors():
            sys.stderr.write(f"TIDEGATE_{'_'.join(map(str, wrong['loc'])).upper()}: {wrong['msg']}\n")
        return 2
    set_up_logs(settings.log_level)
    failures: list[OperatorError | ExceptionGroup[OperatorError]] = []
    try:
        asyncio.run(run(settings))
    except* OperatorError as group:
        failures += group.exceptions
    for failure in failures:
        reason = failure.reason if isinstance(failure, OperatorError) else ""
        logger.error("cannot work here", extra={"reason": reason, "error": str(failure)})
    return 1 if failures else 0
