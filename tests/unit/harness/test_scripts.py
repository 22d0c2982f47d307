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


def lab_check(script: Script, tmp_path: Path, *, go: str = "echo go1.26.8", debian: str = "12") -> str:
    """Return what the lab says that it lacks where nothing is built yet."""
    release = tmp_path / "os-release"
    release.write_text(f'ID=debian\nVERSION_ID="{debian}"\nPRETTY_NAME="Debian GNU/Linux {debian}"\n', encoding="utf-8")
    lab = str(tmp_path / "lab")
    commands = {"go": go, "id": "echo 0"}
    return script(SCRIPTS / "lab/check.sh", commands=commands, TIDEGATE_LAB=lab, LAB_OS_RELEASE=str(release)).stderr


@pytest.mark.parametrize("version", ["1.26", "1.26.8", "1.27rc1", "1.100.1"])
def test_a_go_that_is_new_enough_will_do(script: Script, tmp_path: Path, version: str) -> None:
    assert "Go " not in lab_check(script, tmp_path, go=f"echo go{version}")


@pytest.mark.parametrize(
    ("go", "found"), [("echo go1.25.9", "go1.25.9"), ("echo go1.3", "go1.3"), ("echo broken >&2; exit 1", "none")]
)
def test_a_go_that_is_too_old_is_named_with_the_next_step(script: Script, tmp_path: Path, go: str, found: str) -> None:
    said = lab_check(script, tmp_path, go=go)

    assert f"needs Go 1.26 or newer, to build Kubernetes once, and finds {found} (put one from" in said
    assert "docs/cluster.md" in said


def test_no_go_is_needed_where_everything_is_built(script: Script, tmp_path: Path) -> None:
    kube = tmp_path / "lab" / "bin" / "kube"
    kube.parent.mkdir(parents=True)
    kube.touch(mode=0o755)

    assert "Go " not in lab_check(script, tmp_path, go="exit 1")


def test_another_system_is_named_and_all_that_is_missing_stands_in_one_line(script: Script, tmp_path: Path) -> None:
    said = lab_check(script, tmp_path, go="echo go1.20", debian="13")

    assert "needs Debian 12, for its containerd, runc and CNI plugins, and this is Debian GNU/Linux 13 (" in said
    assert "needs Go 1.26" in said
    assert said.count("\n") == 1


def test_a_system_that_does_not_say_what_it_is_is_no_debian_12(script: Script, tmp_path: Path) -> None:
    commands = {"go": "echo go1.26.8", "id": "echo 0"}
    nowhere = str(tmp_path / "nowhere")
    answer = script(SCRIPTS / "lab/check.sh", commands=commands, LAB_OS_RELEASE=nowhere)

    assert answer.returncode == 1
    assert "this is a system without /etc/os-release" in answer.stderr


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_check_is_clean_to_shellcheck() -> None:
    found = subprocess.run(
        ["shellcheck", "-x", "check.sh"], cwd=SCRIPTS / "lab", capture_output=True, text=True, check=False
    )
    assert found.stdout == ""


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
