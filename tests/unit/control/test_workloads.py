"""What Deployments and pods say: trouble in stable words, and only when it is one."""

from datetime import UTC, datetime, timedelta

import pytest

from tidegate_operator.core.kinds import Manifest
from tidegate_operator.core.observed import Live
from tidegate_operator.core.pacing import until_told
from tidegate_operator.core.workloads import Pod, Trouble, first_trouble, read_pod, read_workload

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(*, age_seconds: int = 60, **status: object) -> Pod:
    manifest = {
        "metadata": {
            "name": "p",
            "creationTimestamp": (NOW - timedelta(seconds=age_seconds)).isoformat(),
            "labels": {"tidegate.dev/deployment": "abc"},
        },
        "status": status,
    }
    return read_pod(manifest, deployment_label="tidegate.dev/deployment", gpu_resource="nvidia.com/gpu", now=NOW)


def unscheduled(message: str) -> list[Manifest]:
    return [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]


def waiting(reason: str, **container: object) -> list[Manifest]:
    return [{"name": "runtime", "image": "host/runtime:1", "state": {"waiting": {"reason": reason}}, **container}]


@pytest.mark.parametrize(
    ("status", "reason", "says"),
    [
        ({"conditions": unscheduled("0/1 nodes: 1 Insufficient nvidia.com/gpu.")}, "InsufficientGPU", "nvidia.com/gpu"),
        ({"conditions": unscheduled("0/1 nodes: 1 Insufficient cpu.")}, "Unschedulable", "Insufficient cpu"),
        ({"initContainerStatuses": waiting("ImagePullBackOff")}, "ImagePullFailed", "host/runtime:1 cannot be pulled"),
        ({"containerStatuses": waiting("ErrImagePull")}, "ImagePullFailed", "host/runtime:1"),
        ({"containerStatuses": waiting("CreateContainerConfigError")}, "ContainerFailed", "CreateContainerConfigError"),
        (
            {
                "containerStatuses": waiting(
                    "CrashLoopBackOff", lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}}
                )
            },
            "ContainerFailed",
            "OOMKilled, exit code 137",
        ),
    ],
)
def test_a_pod_that_does_not_start_says_why(status: dict[str, object], reason: str, says: str) -> None:
    trouble = pod(**status).trouble
    assert trouble is not None
    assert trouble.reason == reason
    assert says in trouble.message


def test_what_has_just_begun_is_no_trouble_yet() -> None:
    assert pod(age_seconds=5, conditions=unscheduled("0/1 nodes")).trouble is None
    assert pod(containerStatuses=waiting("ContainerCreating")).trouble is None


def deployment(spec: Manifest | None = None, generation: int = 1, **status: object) -> Live:
    metadata = {"name": "d", "namespace": "acme", "generation": generation, "creationTimestamp": NOW.isoformat()}
    return Live({"kind": "Deployment", "metadata": metadata, "spec": spec or {"replicas": 2}, "status": status})


@pytest.mark.parametrize(
    ("status", "current"),
    [
        ({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, True),
        ({"observedGeneration": 0, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2}, False),
        ({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 3}, False),
        ({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1}, False),
        ({}, False),
    ],
)
def test_a_rollout_is_over_when_all_pods_are_of_the_newest_template_and_ready(
    status: dict[str, object], current: bool
) -> None:
    assert read_workload(deployment(**status)).current is current


@pytest.mark.parametrize(
    ("progress", "seen", "rolling"),
    [
        ("ReplicaSetUpdated", 1, True),
        ("ProgressDeadlineExceeded", 1, True),
        ("NewReplicaSetAvailable", 1, False),
        ("NewReplicaSetAvailable", 0, True),
    ],
)
def test_a_template_is_being_rolled_out_until_all_its_pods_were_ready_once(
    progress: str, seen: int, rolling: bool
) -> None:
    conditions = [{"type": "Progressing", "reason": progress}]
    assert read_workload(deployment(observedGeneration=seen, conditions=conditions)).rolling is rolling


def test_the_text_of_a_quota_is_kept_and_the_random_pod_name_is_not() -> None:
    message = 'pods "desk-7d4-x2" is forbidden: exceeded quota: small, requested: limits.memory=1Gi'
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    trouble = read_workload(deployment(conditions=[condition])).trouble

    assert trouble == Trouble(
        "PodCreationFailed", "a pod is forbidden: exceeded quota: small, requested: limits.memory=1Gi"
    )


def test_of_several_troubles_the_same_one_is_told_at_every_look() -> None:
    first, second = pod(conditions=unscheduled("b")), pod(conditions=unscheduled("a"))
    assert first_trouble(None, [first, second]) == first_trouble(None, [second, first])


def test_a_pod_is_unready_since_it_turned_so_or_since_it_was_made() -> None:
    turned = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T11:59:30Z"}]
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:59:30Z"}]

    assert pod(age_seconds=500, conditions=turned).unready_since == NOW - timedelta(seconds=30)
    assert pod(age_seconds=500).unready_since == NOW - timedelta(seconds=500)
    assert pod(conditions=ready).unready_since is None


def test_a_pod_that_does_not_start_is_looked_at_again_when_it_may_be_called_in_trouble() -> None:
    young, old = pod(age_seconds=5), pod(age_seconds=60)
    ready = pod(age_seconds=5, conditions=[{"type": "Ready", "status": "True"}])

    assert until_told([young, old, ready], NOW) == 10.5
    assert until_told([old, ready], NOW) is None
