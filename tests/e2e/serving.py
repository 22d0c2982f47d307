"""A namespace in which the quickstart serves, and ways to change it, break something under it and ask it meanwhile."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.asking import Load, start_load
from tests.e2e.cluster import Namespace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
READY_SECONDS = 240
PIPELINE = "retrievalpipelines/docs"
KNOWLEDGE_BASE = "knowledgebases/docs"
# A small node has room for these beside whatever else it runs.
SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}}


def documents(**entries: str) -> dict[str, object]:
    """Return a ConfigMap of documents; `_` in a name stands for a dot."""
    data = {name.replace("_", "."): text for name, text in entries.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "docs"}, "data": data}


def wait_until_serving(namespace: Namespace, pipeline: str = "docs") -> None:
    """Wait until the pipeline's present generation is in force."""
    namespace.wait_for_condition(f"retrievalpipelines/{pipeline}", "Ready", timeout_seconds=READY_SECONDS)


def quickstart(*, replicas: int = 1, **knowledge_base: object) -> list[dict[str, Any]]:
    """Return a document and the quickstart's two resources, with so many pods and more of the KnowledgeBase's spec."""
    base, pipeline = (
        yaml.safe_load((EXAMPLES / "quickstart" / name).read_text(encoding="utf-8"))
        for name in ("knowledgebase.yaml", "pipeline.yaml")
    )
    base["spec"] |= {"build": {"resources": SMALL}, **knowledge_base}
    pipeline["spec"] |= {"runtime": {"replicas": replicas, "resources": SMALL}, "sidecar": {"resources": SMALL}}
    return [documents(tides_md="# Tides\n\nHigh water is at 14:05."), base, pipeline]


def apply_quickstart(namespace: Namespace) -> None:
    """Apply the two resources of the quickstart; the documents are there, or come later."""
    _, *resources = quickstart()
    namespace.apply(*resources)


def serve(namespace: Namespace, *, replicas: int = 1) -> None:
    """Serve one document with so many pods."""
    namespace.apply(*quickstart(replicas=replicas))
    wait_until_serving(namespace)


def serving_release(namespace: Namespace) -> str:
    """Return the release that serves."""
    found = namespace.get(PIPELINE)
    assert found is not None
    return str(found["status"]["servingRelease"])


def change(namespace: Namespace, resource: str, spec: Mapping[str, Any]) -> None:
    """Change members of a spec; None removes one."""
    namespace.kubectl("patch", resource, "--type=merge", "-p", json.dumps({"spec": spec}))


def pods_of(namespace: Namespace, component: str) -> list[dict[str, Any]]:
    """Return the pods of a component, such as indexer, that are not going away."""
    found = namespace.items("pods", labels=f"app.kubernetes.io/component={component}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


@contextmanager
def under_load(namespace: Namespace, images: Mapping[str, str]) -> Iterator[Load]:
    """Ask the pipeline ten times a second or less while the block lasts."""
    load = start_load(namespace, image=images["sidecar"], pipeline="docs")
    try:
        load.wait_for_answers()
        yield load
    finally:
        namespace.kubectl("delete", "pod", load.pod, "--ignore-not-found")


def failed(load: Load) -> list[dict[str, Any]]:
    """Return what was not answered so far."""
    return [each for each in load.answers() if "error" in each]
