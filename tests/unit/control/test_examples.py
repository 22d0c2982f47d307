"""An example folder is all that its reader has to apply."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FOLDERS = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
NAMED = {"configMap": "ConfigMap", "configMapRef": "ConfigMap", "secretRef": "Secret"}


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and name of every ConfigMap and Secret that a manifest names."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in NAMED and isinstance(item, dict):
                yield NAMED[key], item["name"]
            yield from references(item)


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_an_example_names_is_in_its_folder(folder: str) -> None:
    files = sorted((EXAMPLES / folder).rglob("*.yaml"))
    manifests = [each for file in files for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]
    there = {(each["kind"], each["metadata"]["name"]) for each in manifests}

    assert {reference for each in manifests for reference in references(each.get("spec"))} <= there


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_pipeline_of_an_example_has_its_knowledge_bases_there(folder: str) -> None:
    files = sorted((EXAMPLES / folder).rglob("*.yaml"))
    manifests = [each for file in files for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]
    bases = {each["metadata"]["name"] for each in manifests if each["kind"] == "KnowledgeBase"}

    wanted = [each["spec"]["knowledgeBases"] for each in manifests if each["kind"] == "RetrievalPipeline"]
    assert {base["name"] for named in wanted for base in named} <= bases
