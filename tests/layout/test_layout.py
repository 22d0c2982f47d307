"""The shape of the tree: rules that no linter knows."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = [ROOT / folder / "src" for folder in ("crds", "operator", "sidecar", "runtime")]
MODULES = sorted(path for source in SOURCES for path in source.rglob("*.py"))
LINES_MAX = 400
VAGUE_NAMES = {"utils.py", "helpers.py", "manager.py", "base.py", "common_utils.py"}


def test_no_python_under_operator_outside_its_src() -> None:
    """A module or package named `operator` here would replace the standard library's."""
    loose = [path for path in (ROOT / "operator").rglob("*.py") if ROOT / "operator" / "src" not in path.parents]
    assert loose == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_is_small_and_says_why_it_exists(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LINES_MAX
    assert path.name not in VAGUE_NAMES
    if path.name not in ("__init__.py", "__main__.py"):
        assert ast.get_docstring(ast.parse(text)), "a module starts with why it exists and what holds"


def test_every_plane_stays_out_of_the_others_extras() -> None:
    """`pip install tidegate[operator]` must bring no model library, and the runtime no Kubernetes client."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {
        extra: {requirement.split(">")[0].split("=")[0] for requirement in wanted} for extra, wanted in extras.items()
    }
    assert not names["operator"] & {"onnxruntime", "numpy", "tokenizers", "torch"}
    assert not (names["runtime-common"] | names["sidecar"]) & {"kubernetes", "kopf", "torch"}
    assert "onnxruntime-gpu" not in names["runtime"] | names["local"]
    assert "onnxruntime" not in names["runtime-gpu"] | names["runtime-common"]
