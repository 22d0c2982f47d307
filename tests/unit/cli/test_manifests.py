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
        ("apiVersion: tidegate.dev/v9\nkind: KnowledgeBase\nmetadata: {name: x}\n", "use tidegate.dev/v1alpha1"),
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
        read_manifests([tmp_path / "absent", tmp_path / "gone.yaml"])
    assert len(caught.value.problems) == 2


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="holds no .yaml file"):
        read_manifests([tmp_path])


def test_every_broken_file_is_named_in_one_run(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("kind: [")
    with pytest.raises(ManifestError) as caught:
        read_manifests([tmp_path])
    assert len(caught.value.problems) == 2
