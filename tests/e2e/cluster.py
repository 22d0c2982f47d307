"""The cluster that tests run in, as kubectl sees it, and one namespace of it per test.

kubectl is used on purpose, not a client library: tests see what users see, and cannot share a bug
with the operator's adapter. Whatever is read again and again is read through one `kubectl proxy`
(`reading.py`). Whatever a wait does not get, `Namespace.diagnosis` explains.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.e2e.following import Follower
from tests.e2e.reading import Manifest, Reader
from tests.e2e.wait import wait_for

SCRIPTS = Path(__file__).resolve().parent
LOG_LINES = 40


class CommandError(AssertionError):
    """A command failed; the text holds what it said."""


def run(*command: str | Path, stdin: str | None = None, timeout_seconds: float = 60, path: str | None = None) -> str:
    """Run a command and return its standard output.

    Raises:
        CommandError: it exited non-zero.
    """
    environment = with_path(path) if path else None
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout_seconds, check=False, env=environment
    )
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise CommandError(f"{words}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}".strip())
    return done.stdout


def with_path(path: str) -> dict[str, str]:
    """Return this process's environment with another PATH."""
    return {**os.environ, "PATH": path}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster and the tools to reach it."""

    provider: str
    kubeconfig: Path
    path: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 60) -> str:
        """Run kubectl against this cluster and return its output."""
        command = self.kubectl_command(*arguments)
        return run(*command, stdin=stdin, timeout_seconds=timeout_seconds, path=self.path)

    def kubectl_command(self, *arguments: str) -> tuple[str, ...]:
        """Return the command that runs kubectl against this cluster."""
        return ("kubectl", f"--kubeconfig={self.kubeconfig}", *arguments)

    def helm(self, *arguments: str, timeout_seconds: float = 180) -> str:
        """Run helm against this cluster and return its output."""
        config = f"--kubeconfig={self.kubeconfig}"
        return run("helm", config, *arguments, timeout_seconds=timeout_seconds, path=self.path)

    def fault(self, *words: str) -> None:
        """Break or mend one thing of the cluster; see `cluster.sh fault`."""
        run(SCRIPTS / "cluster.sh", "fault", *words, path=self.path, timeout_seconds=180)


@cache
def reader_of(cluster: Cluster) -> Reader:
    """Return what reads a cluster for this process."""
    return Reader(cluster.kubectl_command(), with_path(cluster.path))


def running_cluster() -> Cluster:
    """Return the cluster that `cluster.sh up` has found or started."""
    script = SCRIPTS / "cluster.sh"
    environment = dict(re.findall(r"(\w+)=(\S+)", run(script, "env")))
    return Cluster(
        provider=run(script, "provider").strip(),
        kubeconfig=SCRIPTS / run(script, "kubeconfig").strip(),
        path=os.pathsep.join([environment["PATH"].removesuffix(":$PATH"), os.environ["PATH"]]),
    )


def images_by_plane(told: str) -> dict[str, str]:
    """Return the image names that `images.sh` prints, by plane."""
    return dict(line.split("=", maxsplit=1) for line in told.split())


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace: reads, writes, waits and diagnoses within it."""

    cluster: Cluster
    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 60) -> str:
        """Run kubectl in this namespace."""
        return self.cluster.kubectl("-n", self.name, *arguments, stdin=stdin, timeout_seconds=timeout_seconds)

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Apply manifests as a user would; the API server's refusal is the error's text."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))

    def get(self, resource: str) -> Manifest | None:
        """Return an object named as `kind/name`, None when there is none."""
        return reader_of(self.cluster).get(resource, namespace=self.name)

    def items(self, kind: str, *, labels: str = "") -> list[Manifest]:
        """Return the objects of a kind that the label selector accepts."""
        return reader_of(self.cluster).items(kind, namespace=self.name, labels=labels)

    def logs(self, pod: str) -> str:
        """Return all that the only container of a pod has written."""
        return reader_of(self.cluster).logs(pod, namespace=self.name)

    def delete(self, resource: str) -> None:
        """Delete an object without waiting for its end; one that is gone is fine."""
        self.kubectl("delete", resource, "--ignore-not-found", "--wait=false")

    def wait_for(
        self, resource: str, condition: Callable[[Manifest], object], *, what: str, timeout_seconds: float = 60
    ) -> Manifest:
        """Wait until the object is there and the condition accepts it, and return it as it was then."""

        def accepted() -> Manifest | None:
            found = follower.latest
            return found if found is not None and condition(found) else None

        with Follower(reader_of(self.cluster), resource, namespace=self.name) as follower:
            return wait_for(
                accepted,
                what=f"{resource} {what}",
                timeout_seconds=timeout_seconds,
                describe=lambda: self.diagnosis(resource),
                pause=follower.wait_for_news,
            )

    def wait_for_condition(
        self, resource: str, condition_type: str, status: str = "True", *, timeout_seconds: float = 60
    ) -> Manifest:
        """Wait until the object has that condition for its present generation."""
        return self.wait_for(
            resource,
            lambda found: condition_status(found, condition_type) == status,
            what=f"has {condition_type}={status}",
            timeout_seconds=timeout_seconds,
        )

    def diagnosis(self, resource: str) -> str:
        """Return the object, the namespace's events and every pod's logs, as text for a failed test."""
        pods = [str(pod["metadata"]["name"]) for pod in self.items("pods")]
        parts = [
            (resource, ("get", resource, "-o", "yaml")),
            ("events", ("get", "events", "--sort-by", ".lastTimestamp")),
            ("pods", ("get", "pods", "-o", "wide")),
            *((f"logs of {pod}", _logs_of(pod)) for pod in pods),
        ]
        return "\n".join(f"--- {title}\n{self._said(*arguments)}" for title, arguments in parts)

    @contextmanager
    def port_forward(self, resource: str, port: int) -> Iterator[str]:
        """Yield the URL on this machine under which a pod or Service port is reached."""
        command = self._command("port-forward", resource, f":{port}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self._environment()) as forward:
            try:
                # the line says which port it took; no line means that it ended, its reason is on stderr
                line = forward.stdout.readline() if forward.stdout else ""
                local = re.search(r"127\.0\.0\.1:(\d+)", line)
                if local is None:
                    raise CommandError(f"port-forward to {resource}:{port} did not start\n{self.diagnosis(resource)}")
                yield f"http://127.0.0.1:{local.group(1)}"
            finally:
                forward.terminate()

    def _command(self, *arguments: str) -> tuple[str, ...]:
        return self.cluster.kubectl_command("-n", self.name, *arguments)

    def _environment(self) -> dict[str, str]:
        return with_path(self.cluster.path)

    def _said(self, *arguments: str) -> str:
        try:
            return self.kubectl(*arguments).rstrip()
        except CommandError as error:
            return str(error)


def condition_status(found: Mapping[str, Any], condition_type: str) -> str | None:
    """Return a condition's status, None when it is missing or speaks of an earlier generation."""
    conditions: Sequence[Mapping[str, Any]] = found.get("status", {}).get("conditions", [])
    generation = found["metadata"].get("generation")
    for condition in conditions:
        if condition["type"] == condition_type:
            return str(condition["status"]) if condition.get("observedGeneration", generation) == generation else None
    return None


def condition(found: Mapping[str, Any], condition_type: str) -> Mapping[str, Any]:
    """Return a condition as it stands, empty where there is none."""
    conditions: Sequence[Mapping[str, Any]] = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == condition_type), {})


def _logs_of(pod: str) -> tuple[str, ...]:
    return ("logs", pod, "--all-containers", "--prefix", "--tail", str(LOG_LINES), "--ignore-errors")
