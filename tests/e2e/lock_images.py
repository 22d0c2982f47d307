"""Pins what each image installs: `<plane>/requirements.txt`, the whole closure at exact versions.

The images install these lists with `--no-deps`, so what is not listed is not there. One edge of the
dependency graph is cut on purpose (`OMITTED_EDGES`); everything else that a listed distribution
declares is listed too, which a unit test checks without asking an index. Run this after a change of
the extras in pyproject.toml, or to move to newer versions:

    .venv/bin/python tests/e2e/lock_images.py
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PLANES = ("operator", "sidecar", "runtime")
PROJECT = "tidegate"

# tokenizers uses huggingface-hub only to download; we load tokenizers from files, and the hub client
# would bring an HTTP stack and a 11 MB extension module with it.
OMITTED_EDGES = frozenset({("tokenizers", "huggingface-hub")})


@dataclass(frozen=True, slots=True)
class Resolved:
    """One distribution that pip chose: its version and what it declares."""

    version: str
    requires: tuple[str, ...]


def needed(declared: Iterable[str], *, owner: str, extra: str) -> list[Requirement]:
    """Return the requirements of `owner` that apply here, the omitted edges left out."""
    applicable = []
    for line in declared:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if (owner, canonicalize_name(requirement.name)) not in OMITTED_EDGES:
            applicable.append(requirement)
    return applicable


def closure(resolved: Mapping[str, Resolved], *, extra: str) -> dict[str, str]:
    """Return name -> version of everything that the project with this extra needs, itself left out."""
    pins: dict[str, str] = {}
    pending = [(PROJECT, extra)]
    walked: set[tuple[str, str]] = set()
    while pending:
        owner, owner_extra = pending.pop()
        if (owner, owner_extra) in walked:
            continue
        walked.add((owner, owner_extra))
        if owner != PROJECT:
            pins[owner] = resolved[owner].version
        for requirement in needed(resolved[owner].requires, owner=owner, extra=owner_extra):
            name = canonicalize_name(requirement.name)
            pending += [(name, wanted) for wanted in ("", *requirement.extras)]
    return pins


def resolve(plane: str) -> dict[str, Resolved]:
    """Ask pip which versions the extra of this plane resolves to today."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        subprocess.run([*command, "--report", report.name, f"{ROOT}[{plane}]"], check=True)
        found = json.loads(Path(report.name).read_text(encoding="utf-8"))["install"]
    return {
        canonicalize_name(item["metadata"]["name"]): Resolved(
            version=item["metadata"]["version"], requires=tuple(item["metadata"].get("requires_dist", ()))
        )
        for item in found
    }


def requirements_text(plane: str, pins: Mapping[str, str]) -> str:
    """Render the list that the image of this plane installs with `--no-deps`."""
    lines = [f"# What the {plane} image installs, complete. Written by tests/e2e/lock_images.py."]
    return "\n".join([*lines, *(f"{name}=={version}" for name, version in sorted(pins.items()))]) + "\n"


def main() -> None:
    """Write the three lists."""
    for plane in PLANES:
        pins = closure(resolve(plane), extra=plane)
        (ROOT / plane / "requirements.txt").write_text(requirements_text(plane, pins), encoding="utf-8")
        sys.stdout.write(f"{plane}: {len(pins)} distributions\n")


if __name__ == "__main__":
    main()
