"""The operator as a process of its own, started, killed and stopped by tests."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.wait import wait_for

START_SECONDS = 60


@dataclass
class OperatorProcess:
    """A running operator and what it said."""

    process: subprocess.Popen[bytes]
    log: Path
    health: str
    metrics: str

    def healthy(self) -> bool:
        """Return whether its liveness probe answers well."""
        try:
            with urllib.request.urlopen(self.health, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def messages(self) -> list[dict[str, object]]:
        """Return its log, a document per line."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def kill(self) -> None:
        """Let it die between two instructions."""
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self, *, timeout_seconds: float = 20) -> int:
        """Ask it to stop and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=timeout_seconds)


@contextmanager
def running_operator(
    kubeconfig: Path, folder: Path, *namespaces: str, settings: Mapping[str, str] | None = None
) -> Iterator[OperatorProcess]:
    """Start an operator and yield it when it is well; whatever is left of it ends with the context."""
    operator = start_operator(kubeconfig, folder, *namespaces, settings=settings)
    try:
        wait_for(
            lambda: operator.healthy() or operator.process.poll() is not None,
            what="the operator has started",
            timeout_seconds=START_SECONDS,
            describe=operator.log.read_text,
        )
        assert operator.process.poll() is None, operator.log.read_text()
        yield operator
    finally:
        if operator.process.poll() is None:
            operator.kill()


def start_operator(
    kubeconfig: Path, folder: Path, *namespaces: str, settings: Mapping[str, str] | None = None
) -> OperatorProcess:
    """Start an operator and do not wait for it."""
    health, metrics = _free_port(), _free_port()
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "TIDEGATE_RUNTIME_IMAGE": "localhost/tidegate/runtime:1",
        "TIDEGATE_SIDECAR_IMAGE": "localhost/tidegate/sidecar:1",
        "TIDEGATE_LISTEN": "127.0.0.1",
        "TIDEGATE_HEALTH_PORT": str(health),
        "TIDEGATE_METRICS_PORT": str(metrics),
        **(settings or {}),
    }
    log = folder / f"operator-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", "tidegate_operator", *(f"--namespace={name}" for name in namespaces)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    return OperatorProcess(process, log, f"http://127.0.0.1:{health}/healthz", f"http://127.0.0.1:{metrics}/metrics")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
