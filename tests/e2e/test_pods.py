"""Pods of a pipeline come and go, by a change of their template, by scaling and by a drain: no question is lost."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e.cluster import CommandError, Namespace
from tests.e2e.serving import PIPELINE, READY_SECONDS, change, failed, pods_of, serve, under_load, wait_until_serving

pytestmark = pytest.mark.usefixtures("operator")


def names_of_pods(namespace: Namespace) -> set[str]:
    """Return the names of the pods that answer."""
    return {str(pod["metadata"]["name"]) for pod in pods_of(namespace, "retrieval")}


def wait_for_pods(namespace: Namespace, count: int, *, but: frozenset[str] = frozenset()) -> None:
    """Wait until so many pods are ready, none of those in `but` among them."""

    def there(found: Mapping[str, Any]) -> bool:
        return found["status"].get("pods") == f"{count}/{count}" and not names_of_pods(namespace) & but

    what = f"runs {count} pods, all of them ready and new"
    namespace.wait_for(PIPELINE, there, what=what, timeout_seconds=READY_SECONDS)
    wait_until_serving(namespace)


def evict(namespace: Namespace, pod: str) -> None:
    """Ask for a pod's eviction, as a drain does."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace.name},
    }
    path = f"/api/v1/namespaces/{namespace.name}/pods/{pod}/eviction"
    namespace.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))


def test_no_question_is_lost_while_pods_are_replaced_added_and_evicted(
    namespace: Namespace, images: Mapping[str, str]
) -> None:
    serve(namespace, replicas=2)
    with under_load(namespace, images) as load:
        first = frozenset(names_of_pods(namespace))
        change(namespace, PIPELINE, {"runtime": {"pod": {"labels": {"team": "harbour"}}}})
        wait_for_pods(namespace, 2, but=first)

        namespace.kubectl("scale", PIPELINE, "--replicas=3")
        wait_for_pods(namespace, 3)

        evicted, other, _ = sorted(names_of_pods(namespace))
        evict(namespace, evicted)
        with pytest.raises(CommandError, match="disruption budget"):
            evict(namespace, other)
        wait_for_pods(namespace, 3, but=frozenset({evicted}))
        assert failed(load) == []
