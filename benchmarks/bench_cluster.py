"""A cluster with the operator in it, and fresh namespaces, for what is measured from outside."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.e2e.cluster import SCRIPTS, Cluster, Namespace, images_by_plane, run, running_cluster

EXAMPLES = SCRIPTS.parent.parent / "examples"
CLUSTER_SECONDS = 3600
DEPLOY_SECONDS = 1800
DELETE_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Bed:
    """What a measurement lies on: the cluster and the names of our images by plane."""

    cluster: Cluster
    images: Mapping[str, str]

    @contextmanager
    def namespace(self, name: str) -> Iterator[Namespace]:
        """Yield an empty namespace; what an earlier run left there is deleted first, and it is deleted afterwards."""
        self.cluster.kubectl("delete", "namespace", name, "--ignore-not-found", timeout_seconds=DELETE_SECONDS)
        self.cluster.kubectl("create", "namespace", name)
        try:
            yield Namespace(self.cluster, name)
        finally:
            self.cluster.kubectl("delete", "namespace", name, "--wait=false")


def prepared() -> Bed:
    """Return a running cluster with this tree's images and chart."""
    print("cluster, images and chart …", flush=True)
    run(SCRIPTS / "cluster.sh", "up", timeout_seconds=CLUSTER_SECONDS)
    run(SCRIPTS / "deploy.sh", timeout_seconds=DEPLOY_SECONDS)
    return Bed(running_cluster(), images_by_plane(run(SCRIPTS / "images.sh", "names")))
