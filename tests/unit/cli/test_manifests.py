"""Reading the user's files: everything wrong is named at once, with file, object and next step."""

from pathlib import Path

import pytest

from tidegate_cli.manifests import ManifestError, read_manifests

KNOWLEDGE_BASE = """
apiVersion: tidegate.dev/v1alpha1
kind: KnowledgeBase
metadata: {name: docs}
spec: {sources: [{name: docs, from: {configMap: {name: docs}}}]}
"""


def test_reads_files_and_folders_and_passes_other_kinds_over(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "kb.yaml").write_text(KNOWLEDGE_BASE)
    (tmp_path / "rest.yml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\n---\nkind: Kustomization\n"
    )
    (tmp_path / "folder.yaml").mkdir()
    manifests = read_manifests([tmp_path])
    assert [manifest.name for manifest in manifests.of_kind("KnowledgeBase")] == ["docs"]
    assert list(manifests.objects) == [("KnowledgeBase", "docs")]
    assert manifests.find("KnowledgeBase", "other") is None


def test_what_a_list_holds_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    held = "".join(
        f"- {{kind: {kind}, metadata: {{name: {name}}}}}\n" for kind, name in [("ConfigMap", "a"), ("Pod", "b")]
    )
    (tmp_path / "all.yaml").write_text(
        f"apiVersion: v1\nkind: List\nitems:\n{held}---\nkind: SecretList\nitems: [{{kind: Secret, metadata: {{name: c}}}}]\n"
        "---\nkind: PodList\nitems: [no object]\n"
    )
    assert list(read_manifests([tmp_path]).objects) == [("ConfigMap", "a"), ("Secret", "c")]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "kb.yaml").write_text(KNOWLEDGE_BASE)
    assert len(read_manifests([tmp_path, tmp_path / "kb.yaml"]).objects) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: [", "is not YAML: .* at line 1"),
        ("a: " + "[" * 5000, "is nested too deeply"),
        ("kind: ConfigMap\nmetadata: {name: x}\ndata: {a: 2024-99-99}\n", "is not YAML: month must be in 1..12"),
        ("- a\n- b\n", "document 1: is a list, not an object"),
        ("kind: KnowledgeBase\n", "metadata.name are missing"),
        ("kind: {a: b}\nmetadata: {name: x}\n", "kind and metadata.name are missing or not text"),
        ("apiVersion: tidegate.dev/v9\nkind: KnowledgeBase\nmetadata: {name: x}\n", "use tidegate.dev/v1alpha1"),
        (
            "apiVersion: tidegate.dev/v1alpha1\nkind: KnowledgeBse\nmetadata: {name: x}\n",
            'document 1: "KnowledgeBse" is not a kind of tidegate.dev/v1alpha1; did you mean KnowledgeBase\\?',
        ),
        (
            "apiVersion: tidegate.dev/v1\nkind: Deployment\n",
            '"Deployment" is not a kind of tidegate.dev/v1alpha1; write one of KnowledgeBase, RetrievalPipeline and Rou',
        ),
        ("apiVersion: tidegate.dev/v1alpha1\nkind: Secret\nmetadata: {name: x}\n", '"Secret" is not a kind of tide'),
        ("apiVersion: tidegate.dev/v1\nkind: RoutingPolicy\nmetadata: {name: x}\n", "apiVersion is 'tidegate.dev/v1'"),
        ("kind: List\nitems: {}\n", "document 1: is a List without a list of items, or inside another"),
        ("kind: List\nitems: [{kind: List, items: []}]\n", "document 1: item 1: is a List without a list of items"),
        ("kind: List\nitems: [3]\n", "document 1: item 1: is a int, not an object"),
        (KNOWLEDGE_BASE + "---" + KNOWLEDGE_BASE, "is also in .*; keep one"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "kb.yaml").write_text(content)
    with pytest.raises(ManifestError, match=f"(?s)kb.yaml.*{message}"):
        read_manifests([tmp_path])


def test_wrong_encoding_and_missing_paths_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("kind: Stra\u00dfe".encode("latin-1"))
    with pytest.raises(ManifestError, match="not UTF-8 at byte"):
        read_manifests([tmp_path])
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path / "absent", tmp_path / "gone.yaml", tmp_path / ("n" * 300)])
    assert len(caught.value.problems) == 3


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="holds no .yaml file"):
        read_manifests([tmp_path])


def test_every_broken_file_is_named_in_one_run(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("kind: [")
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path])
    assert len(caught.value.problems) == 2


def test_every_mistake_in_one_file_is_named(tmp_path: Path) -> None:
    misspelt = KNOWLEDGE_BASE.replace("KnowledgeBase", "KnowledgeBases")
    (tmp_path / "all.yaml").write_text("---".join([misspelt, KNOWLEDGE_BASE, "\n- a\n", KNOWLEDGE_BASE]))
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path])
    assert len(caught.value.problems) == 3
