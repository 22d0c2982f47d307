"""The cluster through kubectl: what it says is passed on, and what it should not say is named."""

from pathlib import Path

import pytest

from tidegate_cli.kubectl import Kubectl, KubectlError


def kubectl(folder: Path, script: str) -> Kubectl:
    """Return one that finds `script` when it looks for kubectl."""
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Kubectl(("--namespace=a",), {"PATH": str(folder)})


def test_an_object_is_what_kubectl_prints(tmp_path: Path) -> None:
    told = kubectl(tmp_path, """echo "{\\"asked\\": \\"$*\\"}\"""")
    assert told.get("things", "one") == {"asked": "--namespace=a get things.tidegate.dev one -o json"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Error from server (NotFound)' >&2; exit 1", "Error from server (NotFound)"),
        ("exit 4", "kubectl get failed with code 4"),
        ("echo hello", "kubectl get answered with something that is not a JSON object; try `kubectl version`"),
        ("echo '[]'", "kubectl get answered with something that is not a JSON object; try `kubectl version`"),
    ],
)
def test_a_failure_is_a_line(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(KubectlError) as caught:
        kubectl(tmp_path, script).get("things", "one")
    assert str(caught.value) == message


def test_no_kubectl_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(KubectlError, match="not on PATH; install it"):
        Kubectl(environment={"PATH": str(tmp_path)}).find("things")


def test_a_forward_that_does_not_come_about_is_in_its_own_words(tmp_path: Path) -> None:
    refusing = kubectl(tmp_path, "echo 'error: services \"docs\" not found' >&2; exit 1")
    with pytest.raises(KubectlError, match='kubectl port-forward: error: services "docs" not found'):
        refusing.forwarded("docs", 8080).__enter__()
