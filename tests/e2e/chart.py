"""Installs the chart with the images of this session, as a user would with helm."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.cluster import SCRIPTS, Cluster

CHART = SCRIPTS.parents[1] / "charts" / "tidegate"
RELEASE = "tidegate"
HELM_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart, a cluster, and image names by plane."""

    cluster: Cluster
    images: Mapping[str, str]

    def install(self, namespace: str, *settings: str, wait: bool = True) -> None:
        """Install the release in a namespace, or upgrade it there; `settings` are `name=value` as for `--set`."""
        images = []
        for plane, image in self.images.items():
            repository, _, tag = image.rpartition(":")
            images += [f"images.{plane}.repository={repository}", f"images.{plane}.tag={tag}"]
        values = [word for setting in (*images, *settings) for word in ("--set", setting)]
        waiting = ["--wait", "--timeout", f"{HELM_SECONDS}s"] if wait else []
        command = ("upgrade", "--install", RELEASE, str(CHART), "--namespace", namespace, "--create-namespace")
        self.cluster.helm(*command, *values, *waiting, timeout_seconds=HELM_SECONDS + 30)

    def uninstall(self, namespace: str) -> None:
        """Uninstall the release and wait until its pods are gone."""
        self.cluster.helm("uninstall", RELEASE, "--namespace", namespace, "--wait", timeout_seconds=HELM_SECONDS)
