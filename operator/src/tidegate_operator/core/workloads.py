"""What Deployments and their pods say, as far as a decision needs it.

A Deployment that makes no pods, or whose pods do not start, knows why; users look at our condition
and not at a ReplicaSet's events, so the reason is read here and copied there. Names of single pods
are taken out of messages: they are random and would make every look a change.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidegate_api.conditions import Reason
from tidegate_api.v1alpha1.common import quantity_value
from tidegate_operator.core.kinds import Manifest
from tidegate_operator.core.observed import Live

# A pod is given this long to be scheduled or pulled before its trouble is called one.
TROUBLE_AFTER = timedelta(seconds=15)

# What a Deployment says from the moment when all pods of its newest template were ready, whatever becomes of them.
_ROLLED_OUT = "NewReplicaSetAvailable"

_POD_NAME = re.compile(r'\bpods? "[^"]*"')
_WAITING_IS_TROUBLE = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there are no pods, or why they do not start."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of ours."""

    name: str
    address: str
    deployment: str  # value of the label that names its Deployment's hash; empty for an indexer
    ready: bool
    deleting: bool
    trouble: Trouble | None = None
    created_at: datetime | None = None
    unready_since: datetime | None = None  # None while it is ready
    memory_bytes: int | None = None  # limit of its runtime; None = it has none, or is no runtime's


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment's own figures.

    `current` = every pod is of the newest template and ready; `rolling` = that was never so yet.
    """

    desired: int
    ready: int
    current: bool
    trouble: Trouble | None
    rolling: bool = False


def read_pod(manifest: Manifest, *, deployment_label: str, gpu_resource: str, now: datetime) -> Pod:
    """Return what matters of a pod."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    conditions = {item.get("type"): item for item in status.get("conditions") or []}
    created = metadata.get("creationTimestamp")
    created_at = datetime.fromisoformat(created) if created else None
    young = created_at is not None and now - created_at < TROUBLE_AFTER
    readiness = conditions.get("Ready") or {}
    ready, turned = readiness.get("status") == "True", readiness.get("lastTransitionTime")
    unready_since = datetime.fromisoformat(turned) if turned else created_at
    return Pod(
        name=metadata["name"],
        address=status.get("podIP") or "",
        deployment=(metadata.get("labels") or {}).get(deployment_label, ""),
        ready=ready,
        deleting=bool(metadata.get("deletionTimestamp")),
        trouble=None if young else _pod_trouble(status, conditions, gpu_resource),
        created_at=created_at,
        unready_since=None if ready else unready_since,
        memory_bytes=runtime_memory_bytes(manifest.get("spec") or {}),
    )


def runtime_memory_bytes(pod_spec: Manifest) -> int | None:
    """Return the memory limit of the runtime in a pod, as admission may have set it; None = it has none."""
    for container in pod_spec.get("initContainers") or []:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
        if container["name"] == "runtime" and limit is not None:
            return int(quantity_value(limit))
    return None


def read_workload(live: Live) -> Workload:
    """Return what matters of a Deployment."""
    spec, status = live.manifest.get("spec") or {}, live.manifest.get("status") or {}
    desired = int(spec.get("replicas", 1))
    ready, updated = int(status.get("readyReplicas") or 0), int(status.get("updatedReplicas") or 0)
    seen = int(status.get("observedGeneration") or 0) >= int(live.manifest["metadata"].get("generation") or 0)
    total = int(status.get("replicas") or 0)
    conditions = {item.get("type"): item for item in status.get("conditions") or []}
    return Workload(
        desired=desired,
        ready=ready,
        current=seen and ready >= desired and updated >= desired and total == updated,
        trouble=_creation_trouble(conditions.get("ReplicaFailure") or {}),
        rolling=(conditions.get("Progressing") or {}).get("reason", _ROLLED_OUT) != _ROLLED_OUT or not seen,
    )


def first_trouble(workload: Workload | None, pods: Iterable[Pod]) -> Trouble | None:
    """Return the first reason why pods are missing or do not start; the same one while nothing changes."""
    if workload is not None and workload.trouble is not None:
        return workload.trouble
    troubles = (pod.trouble for pod in pods if pod.trouble is not None and not pod.deleting)
    return min(troubles, key=lambda trouble: (trouble.reason, trouble.message), default=None)


def _creation_trouble(condition: Manifest) -> Trouble | None:
    if condition.get("status") != "True":
        return None
    return Trouble(
        Reason.POD_CREATION_FAILED, _without_pod_names(str(condition.get("message") or condition.get("reason")))
    )


def _pod_trouble(status: Manifest, conditions: dict[str, Manifest], gpu_resource: str) -> Trouble | None:
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        message = _without_pod_names(str(scheduled.get("message") or "no node was found"))
        no_gpu = bool(gpu_resource) and f"Insufficient {gpu_resource}" in message
        return Trouble(Reason.INSUFFICIENT_GPU if no_gpu else Reason.UNSCHEDULABLE, message)
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _WAITING_IS_TROUBLE:
            return Trouble(
                _container_reason(waiting["reason"]),
                f"container {container['name']}: {_container_message(waiting, container)}",
            )
    return None


def _container_reason(reason: str) -> str:
    return Reason.IMAGE_PULL_FAILED if "Image" in reason else Reason.CONTAINER_FAILED


def _container_message(waiting: Manifest, container: Manifest) -> str:
    # The kubelet's own text holds pod names, uids and growing pauses; what is stable is said instead.
    image = container.get("image") or "its image"
    if "Image" in waiting["reason"]:
        return f"{image} cannot be pulled"
    last = (container.get("lastState") or {}).get("terminated") or {}
    if waiting["reason"] == "CrashLoopBackOff":
        return f"it ends again and again ({last.get('reason') or 'Error'}, exit code {last.get('exitCode', 'unknown')})"
    return str(waiting["reason"])


def _without_pod_names(message: str) -> str:
    return _POD_NAME.sub("a pod", message)
