"""Rendering of the chart as helm does it, or the reason why that can't be done here."""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).resolve().parents[3] / "charts" / "tidegate"
# the oldest that the chart admits; without it helm assumes the Kubernetes that it was built for
KUBE_VERSION = "1.33.0"
LAB_BIN = Path(os.environ.get("TIDEGATE_LAB", "/var/lib/tidegate-lab")) / "bin"


class HelmRefusedError(AssertionError):
    """Helm refused values or a template; the text is what it said."""


@pytest.fixture(scope="session")
def helm() -> Callable[..., str]:
    """Return a function that runs helm and returns its output."""
    found = shutil.which("helm", path=os.pathsep.join([os.environ["PATH"], str(LAB_BIN)]))
    if found is None:
        pytest.skip("no helm: install it, or build it with tests/e2e/lab/build.sh")

    def run(*arguments: str, stdin: str = "") -> str:
        command = [found, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=30, check=False)
        if done.returncode:
            raise HelmRefusedError(done.stdout + done.stderr)
        return done.stdout

    return run


@pytest.fixture(scope="session")
def render(helm: Callable[..., str]) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """Return a function from values to the manifests of a release `tidegate` in `tidegate-system`."""

    @functools.cache
    def text_of(values: str) -> str:
        release = ("template", "tidegate", str(CHART), "--namespace", "tidegate-system", "--kube-version", KUBE_VERSION)
        return helm(*release, "--values", "-", stdin=values)

    def manifests(values: dict[str, Any]) -> list[dict[str, Any]]:
        return [document for document in yaml.safe_load_all(text_of(json.dumps(values))) if document]

    return manifests
