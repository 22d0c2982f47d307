"""Which cluster the scripts choose, what they refuse, and what an image's tag depends on."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "tests" / "e2e"
BLANK = ("KUBECONFIG", "TIDEGATE_LAB", "LAB_NAME", "TIDEGATE_IMAGE_PREFIX")

Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return a function that runs a script with commands that the test stands in for first on its path."""
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()

    def run(
        path: Path, *arguments: str, commands: dict[str, str] | None = None, **extra: str
    ) -> subprocess.CompletedProcess[str]:
        for name, body in (commands or {}).items():
            (stand_ins / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (stand_ins / name).chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if name not in BLANK} | extra
        environment["PATH"] = os.pathsep.join([str(stand_ins), environment["PATH"]])
        return subprocess.run(
            [str(path), *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_a_kubeconfig_of_the_user_is_respected(script: Script) -> None:
    answer = script(SCRIPTS / "cluster.sh", "kubeconfig", KUBECONFIG="/home/me/config")

    assert answer.stdout == "/home/me/config\n"
    assert script(SCRIPTS / "cluster.sh", "provider", KUBECONFIG="/home/me/config").stdout == "given\n"


def test_the_cluster_of_a_user_is_never_ended(script: Script) -> None:
    answer = script(SCRIPTS / "cluster.sh", "down", KUBECONFIG="/home/me/config")

    assert answer.returncode == 1
    assert "not ended here" in answer.stderr


def test_an_exported_kubeconfig_of_the_lab_is_still_the_lab(script: Script, tmp_path: Path) -> None:
    lab = str(tmp_path / "lab")
    own = script(SCRIPTS / "cluster.sh", "kubeconfig", TIDEGATE_LAB=lab, commands={"docker": "exit 1"}).stdout.strip()

    assert own == f"{lab}/run/lab/admin.kubeconfig"
    assert script(SCRIPTS / "cluster.sh", "provider", TIDEGATE_LAB=lab, KUBECONFIG=own).stdout == "lab\n"


def test_kind_is_used_when_a_docker_engine_answers(script: Script) -> None:
    answering = {"docker": "exit 0", "kind": "exit 0"}
    silent = {"docker": "exit 1", "kind": "exit 0"}

    assert script(SCRIPTS / "cluster.sh", "provider", commands=answering).stdout == "kind\n"
    assert script(SCRIPTS / "cluster.sh", "provider", commands=silent).stdout == "lab\n"


def test_a_cluster_that_does_not_answer_is_named(script: Script) -> None:
    answer = script(SCRIPTS / "cluster.sh", "check", KUBECONFIG="/nowhere", commands={"kubectl": "exit 1"})

    assert answer.returncode == 1
    assert answer.stderr == "the cluster of KUBECONFIG=/nowhere does not answer\n"


def test_the_lab_says_what_it_lacks(script: Script) -> None:
    answer = script(SCRIPTS / "cluster.sh", "check", commands={"docker": "exit 1", "id": "echo 1000"})

    assert answer.returncode == 1
    assert "needs root" in answer.stderr


def test_an_unknown_command_shows_the_usage(script: Script) -> None:
    for name in ("cluster.sh", "images.sh", "lab/images.sh"):
        answer = script(SCRIPTS / name, "dance")

        assert answer.returncode == 2, name
        assert "load" in answer.stderr, name


def test_a_tag_follows_what_goes_into_the_images(script: Script, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("cluster.sh", "images.sh", "lab/env.sh"):
        (tree / "tests/e2e" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SCRIPTS / name, tree / "tests/e2e" / name)
    for folder in ("crds/src", "operator", "sidecar", "runtime"):
        (tree / folder).mkdir(parents=True)
    (tree / "pyproject.toml").write_text('version = "1.2.3"\n', encoding="utf-8")
    images = tree / "tests/e2e/images.sh"

    def names() -> list[str]:
        return script(images, "names").stdout.split()

    before = names()
    (tree / "README.md").write_text("words", encoding="utf-8")
    unchanged = names()
    (tree / "sidecar" / "main.py").write_text("1", encoding="utf-8")
    changed = names()

    assert before[1].startswith("sidecar=localhost/tidegate/sidecar:1.2.3-dev.")
    assert before == unchanged
    assert [old == new for old, new in zip(before, changed, strict=True)] == [True, False, True]
