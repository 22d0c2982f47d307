"""What the demos take for granted of the examples: a heading to edit under, names, and a policy that stops at 30 %."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec
from tidegate_cli import demo, demo_cluster, demo_rollout
from tidegate_cli.local_check import accept
from tidegate_cli.manifests import read_manifests

EXAMPLES = demo.ROOT / "examples"


def entries(document: Path) -> dict[str, str]:
    (manifest,) = yaml.safe_load_all(document.read_text(encoding="utf-8"))
    data: dict[str, str] = manifest["data"]
    return data


def spec_of(kind: str, folder: str) -> Any:
    manifest = read_manifests([EXAMPLES / folder]).find(kind, demo_rollout.NAME)
    assert manifest is not None, f"examples/{folder} holds no {kind} {demo_rollout.NAME}"
    return manifest.body["spec"]


def test_the_edit_adds_its_sentence_to_the_readme_and_changes_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "quickstart", tmp_path / "quickstart")
    document = tmp_path / "quickstart" / "documents.yaml"
    before = entries(document)
    demo._edit(document)
    after = entries(document)
    heading, _, rest = before["README.md"].partition("\n")
    assert after == {**before, "README.md": f"{heading}\n\n{demo.EDIT}\n{rest}"}
    assert not any(demo.EDIT in text for text in before.values()), "the answer would be there without the edit"
    assert list(accept(read_manifests([tmp_path]), {}).pipelines) == [demo_rollout.NAME]


def test_an_answer_counts_once_it_holds_the_edit() -> None:
    new, old = {"results": [{"content": f"# Tidegate\n\n{demo.EDIT}"}]}, {"results": [{"content": "# Tidegate"}]}
    assert demo._holding(demo.EDIT, new) == new
    assert demo._holding(demo.EDIT, old) is None
    assert demo._holding(demo.EDIT, {"results": []}) is None


def test_the_change_of_the_cluster_demo_is_one() -> None:
    chunking = KnowledgeBaseSpec.model_validate(spec_of("KnowledgeBase", "quickstart")).chunking
    assert (chunking.size_tokens or 200) == 200, "demo_rollout says: instead of 200"
    assert demo_rollout.CHUNK_TOKENS != 200


def test_the_policy_of_the_cluster_demo_stops_when_30_percent_of_the_sessions_have_moved() -> None:
    policy = RoutingPolicySpec.model_validate(spec_of("RoutingPolicy", "rollout"))
    assert (policy.pipeline.name, policy.unit) == (demo_rollout.NAME, "session")
    first, second = policy.rollout.steps[:2]
    assert (first.percent, second.percent) == (30, None)
    assert second.pause is not None


@pytest.mark.parametrize("script", ["cluster.sh", "deploy.sh"])
def test_what_the_cluster_demo_runs_is_there(script: str) -> None:
    assert (demo_cluster.E2E / script).is_file()
