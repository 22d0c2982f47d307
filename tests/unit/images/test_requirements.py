"""The images' lists of dependencies are complete, exact, and hold to what pyproject.toml allows."""

import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.e2e.lock_images import PLANES, Resolved, closure, needed

ROOT = Path(__file__).resolve().parents[3]


def pins_of(plane: str) -> dict[str, str]:
    """Return name -> version as the image of the plane installs them."""
    lines = (ROOT / plane / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def declared_by(plane: str) -> list[Requirement]:
    """Return what pyproject.toml asks for in this plane's image, its own extras followed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pending = [*project["dependencies"], *project["optional-dependencies"][plane]]
    found = []
    while pending:
        requirement = Requirement(pending.pop())
        if requirement.name == project["name"]:
            pending += [line for extra in requirement.extras for line in project["optional-dependencies"][extra]]
        else:
            found.append(requirement)
    return found


@pytest.mark.parametrize("plane", PLANES)
def test_every_declared_dependency_is_pinned_within_its_bounds(plane: str) -> None:
    pins = pins_of(plane)

    for requirement in declared_by(plane):
        pinned = pins.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{plane}/requirements.txt lacks {requirement}: run tests/e2e/lock_images.py"
        assert requirement.specifier.contains(pinned), f"{plane}: {requirement} does not allow {pinned}"


@pytest.mark.parametrize("plane", PLANES)
def test_what_a_pinned_distribution_needs_is_pinned_too(plane: str) -> None:
    pins = pins_of(plane)

    for name in pins:
        for requirement in needed(distribution(name).requires or [], owner=name, extra=""):
            assert canonicalize_name(requirement.name) in pins, f"{plane}: {name} needs {requirement}"


def test_planes_leave_out_what_they_have_no_use_for() -> None:
    assert not {"numpy", "onnxruntime", "tokenizers"} & pins_of("operator").keys()
    assert not {"kubernetes", "kopf", "numpy", "onnxruntime"} & pins_of("sidecar").keys()
    assert not {"kubernetes", "kopf", "huggingface-hub"} & pins_of("runtime").keys()


def test_the_closure_follows_extras_and_markers_and_stops_at_omitted_edges() -> None:
    resolved = {
        "tidegate": Resolved(
            "1", ("pydantic", "tidegate[common]; extra == 'runtime'", "tokenizers; extra == 'common'")
        ),
        "pydantic": Resolved("2", ("old; python_version < '3'",)),
        "tokenizers": Resolved("3", ("huggingface-hub",)),
    }

    assert closure(resolved, extra="runtime") == {"pydantic": "2", "tokenizers": "3"}
    assert closure(resolved, extra="") == {"pydantic": "2"}
