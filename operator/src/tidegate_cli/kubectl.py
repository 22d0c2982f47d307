"""Speaks to the cluster through `kubectl`, whose plugin we are.

The user's context, credentials, proxies and namespace apply without a line of ours, and no
Kubernetes client has to be installed beside a tool that is there already.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

FIELD_MANAGER = "tidegate-cli"
CALL_SECONDS = 30
FORWARD_SECONDS = 15

Document = dict[str, object]


class KubectlError(Exception):
    """The cluster refused or cannot be reached; the text is kubectl's own, or says what is missing."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Runs kubectl with the options that the plugin was given, such as `--context` and `-n`."""

    options: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = field(default=None, compare=False)

    def get(self, kind: str, name: str, *, group: str = ".tidegate.dev") -> Document:
        """Return one object.

        Raises:
            KubectlError: it does not exist, or may not be read.
        """
        return _object(self._run("get", f"{kind}{group}", name, "-o", "json"))

    def find(self, kind: str, *, selector: str = "", group: str = ".tidegate.dev") -> list[Document]:
        """Return the objects of a kind in the namespace."""
        chosen = ("-l", selector) if selector else ()
        items = _object(self._run("get", f"{kind}{group}", *chosen, "-o", "json")).get("items")
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []

    def annotate(self, kind: str, name: str, *, key: str, value: str) -> None:
        """Write one annotation, replacing an earlier one."""
        self._run(
            *("annotate", f"{kind}.tidegate.dev", name, f"{key}={value}"),
            *("--overwrite", f"--field-manager={FIELD_MANAGER}"),
        )

    @contextmanager
    def forwarded(self, service: str, port: int) -> Iterator[int]:
        """Forward a free local port to a Service while the block runs, and yield the local port."""
        process = subprocess.Popen(
            [*self._command(), "port-forward", f"service/{service}", f":{port}", "--address", "127.0.0.1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        try:
            yield _forwarded_port(process)
        finally:
            process.terminate()
            process.wait(timeout=FORWARD_SECONDS)
            if process.stdout is not None:
                process.stdout.close()

    def _run(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [*self._command(), *arguments],
                capture_output=True,
                text=True,
                timeout=CALL_SECONDS,
                check=False,
                env=self.environment,
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(
                f"kubectl {arguments[0]} did not end in {CALL_SECONDS} s; is the API server reachable?"
            ) from error
        if done.returncode != 0:
            raise KubectlError(done.stderr.strip() or f"kubectl {arguments[0]} failed with code {done.returncode}")
        return done.stdout

    def _command(self) -> list[str]:
        path = shutil.which("kubectl", path=(self.environment or {}).get("PATH"))
        if path is None:
            raise KubectlError("kubectl is not on PATH; install it, it brings the credentials")
        return [path, *self.options]


def _forwarded_port(process: "subprocess.Popen[str]") -> int:
    """Return the local port that kubectl chose, which is in its first line."""
    if process.stdout is None:
        raise KubectlError("kubectl port-forward has no output to read")
    line = process.stdout.readline()
    found = re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", line)
    if found is None:
        raise KubectlError(f"kubectl port-forward: {line.strip() or 'ended without a word'}")
    return int(found[1])


def _object(text: str) -> Document:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise KubectlError("kubectl get answered with something that is not a JSON object; try `kubectl version`")
    return document
