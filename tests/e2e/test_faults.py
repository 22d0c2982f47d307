"""What a cluster refuses: images, pods, room. The reason is in a condition, what serves goes on, and it converges."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.asking import ask
from tests.e2e.cluster import Cluster, Namespace, condition
from tests.e2e.conftest import new_namespace
from tests.e2e.serving import (
    KNOWLEDGE_BASE,
    PIPELINE,
    change,
    documents,
    pods_of,
    quickstart,
    serve,
    serving_release,
    wait_until_serving,
)

# The API server's own word must be in a condition within a minute.
SAID_SECONDS = 60
# A ReplicaSet that was refused tries again after pauses that double.
CONVERGED_SECONDS = 180

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture(scope="module")
def served(operator: Namespace) -> Iterator[Namespace]:
    """Return a namespace in which the quickstart serves; every test leaves it serving."""
    with new_namespace(operator.cluster, "refusals") as created:
        serve(created)
        yield created


def wait_for_reason(namespace: Namespace, resource: str, condition_type: str, reason: str) -> str:
    """Wait until a condition has this reason, and return its message."""
    found = namespace.wait_for(
        resource,
        lambda found: condition(found, condition_type).get("reason") == reason,
        what=f"has {condition_type} because of {reason}",
        timeout_seconds=SAID_SECONDS,
    )
    return str(condition(found, condition_type)["message"])


def quota(pods: int) -> dict[str, Any]:
    """Return a ResourceQuota that allows so many pods, and none with a container that has no limits."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"pods": str(pods), "limits.cpu": "100", "limits.memory": "100Gi"}},
    }


def largest_container(memory: str) -> dict[str, Any]:
    """Return a LimitRange that allows containers up to a size."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "tight"},
        "spec": {"limits": [{"type": "Container", "max": {"memory": memory}}]},
    }


def answers_still(namespace: Namespace) -> bool:
    """Return whether the pipeline answers from its document."""
    with namespace.port_forward("service/docs", 8080) as url:
        return "14:05" in ask(url, "when is high water").text


@pytest.mark.xdist_group("refusals")
def test_an_image_that_cannot_be_pulled_is_named_and_the_earlier_release_serves(served: Namespace) -> None:
    before = serving_release(served)
    # Versions come with a release, so something that answers depend on has to change, too.
    lexical = {"nodes": [{"name": "lexical", "type": "bm25", "with": {"topK": 20}}], "output": "lexical"}
    change(served, PIPELINE, {"runtime": {"version": "0.0.0-absent"}, **lexical})
    try:
        message = wait_for_reason(served, PIPELINE, "Ready", "ImagePullFailed")
        assert "runtime:0.0.0-absent cannot be pulled" in message
        found = served.get(PIPELINE)
        assert found is not None
        assert condition(found, "Available")["status"] == "True"
        assert found["status"]["servingRelease"] == before
        assert answers_still(served)
    finally:
        change(served, PIPELINE, {"runtime": {"version": None}, "nodes": None, "output": None})
    wait_until_serving(served)


@pytest.mark.xdist_group("refusals")
def test_pods_that_admission_refuses_are_said_in_its_words_and_the_old_ones_serve(served: Namespace) -> None:
    host = {"volumes": [{"name": "host", "hostPath": {"path": "/etc"}}]}
    change(served, PIPELINE, {"runtime": {"pod": host}})
    try:
        message = wait_for_reason(served, PIPELINE, "Ready", "PodCreationFailed")
        assert 'violates PodSecurity "restricted' in message
        assert "hostPath" in message
        assert answers_still(served)
    finally:
        change(served, PIPELINE, {"runtime": {"pod": None}})
    wait_until_serving(served)


def test_what_a_namespace_may_use_is_the_reason_until_there_is_more(namespace: Namespace) -> None:
    namespace.apply(largest_container("16Mi"), *quickstart())
    message = wait_for_reason(namespace, KNOWLEDGE_BASE, "Ready", "PodCreationFailed")
    assert "maximum memory usage per Container is 16Mi" in message

    namespace.apply(quota(1))
    namespace.delete("limitrange/tight")
    namespace.wait_for_condition(KNOWLEDGE_BASE, "Ready", timeout_seconds=CONVERGED_SECONDS)
    assert "exceeded quota: small" in wait_for_reason(namespace, PIPELINE, "Ready", "PodCreationFailed")

    namespace.delete("resourcequota/small")
    namespace.wait_for_condition(PIPELINE, "Ready", timeout_seconds=CONVERGED_SECONDS)

    # One that comes later bites when a pod is lost; what is built goes on serving.
    namespace.apply(quota(1))
    (indexer,) = pods_of(namespace, "indexer")
    namespace.kubectl("delete", "pod", indexer["metadata"]["name"])
    message = wait_for_reason(namespace, KNOWLEDGE_BASE, "Degraded", "PodCreationFailed")
    assert "exceeded quota: small" in message
    assert answers_still(namespace)

    namespace.delete("resourcequota/small")
    namespace.wait_for(
        KNOWLEDGE_BASE,
        lambda found: not condition(found, "Degraded"),
        what="is well again",
        timeout_seconds=CONVERGED_SECONDS,
    )


def test_a_volume_that_is_full_in_mid_build_is_said_and_the_build_goes_on_when_there_is_room(
    namespace: Namespace, cluster: Cluster
) -> None:
    if cluster.provider != "lab":
        pytest.skip("volumes of a given size are made in the lab only")
    # Room for one index of these documents and not for another one beside it.
    cluster.fault("volume", namespace.name, "180k")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "index"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "180k"}},
            "storageClassName": "small",
            "volumeName": namespace.name,
        },
    }
    many = "\n\n".join(f"Paragraph {n} about piers, ferries, buoys and the harbour of the town." for n in range(600))
    both = documents(tides_md="# Tides\n\nHigh water is at 14:05.", harbour_md=f"# Harbour\n\n{many}")
    _, *resources = quickstart(store={"index": {"embedded": {"claimName": "index"}}})
    namespace.apply(claim, both, *resources)
    wait_until_serving(namespace)
    before = serving_release(namespace)

    change(namespace, KNOWLEDGE_BASE, {"chunking": {"sizeTokens": 100}})
    message = wait_for_reason(namespace, KNOWLEDGE_BASE, "Stalled", "StoreFull")
    assert "claim index (spec.store.index.embedded.claimName) is full: enlarge that claim" in message
    assert answers_still(namespace)

    cluster.fault("volume", namespace.name, "64m")
    namespace.wait_for(
        PIPELINE,
        lambda found: found["status"]["servingRelease"] != before,
        what="serves from the new index",
        timeout_seconds=CONVERGED_SECONDS,
    )
    wait_until_serving(namespace)
    assert answers_still(namespace)
