"""ConfigMaps, Secrets and claims as folders, laid the way a kubelet lays them."""

import base64
import stat
from pathlib import Path

import pytest

from tidegate_cli.local_files import LocalFiles, entry_violations
from tidegate_cli.manifests import Manifest, Manifests


def files(tmp_path: Path, *bodies: dict, claims: dict[str, Path] | None = None) -> LocalFiles:
    objects = {
        (body["kind"], body["metadata"]["name"]): Manifest(Path("m.yaml"), body["kind"], body["metadata"]["name"], body)
        for body in bodies
    }
    return LocalFiles(tmp_path / "state", Manifests(objects), claims or {})


def config_map(**members: object) -> dict:
    return {"kind": "ConfigMap", "metadata": {"name": "docs"}, **members}


def test_entries_become_files_and_entries_that_left_disappear(tmp_path: Path) -> None:
    encoded = base64.b64encode(b"\x00\x01").decode()
    folder = files(tmp_path, config_map(data={"a.md": "one", "b.md": "two"}, binaryData={"c.bin": encoded})).config_map(
        "docs"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a.md": b"one",
        "b.md": b"two",
        "c.bin": b"\x00\x01",
    }
    unchanged = (folder / "a.md").stat().st_mtime_ns
    files(tmp_path, config_map(data={"a.md": "one", "b.md": "three"})).config_map("docs")
    assert {path.name for path in folder.iterdir()} == {"a.md", "b.md"}
    assert (folder / "b.md").read_text() == "three"
    assert (folder / "a.md").stat().st_mtime_ns == unchanged


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_a_name_as_long_as_kubernetes_allows_is_a_name_like_any_other(tmp_path: Path, kind: str) -> None:
    member, key = {"ConfigMap": "data", "Secret": "stringData"}[kind], "k" * 253
    laid = files(tmp_path, {"kind": kind, "metadata": {"name": "n" * 253}, member: {key: "one", "b": "two"}})
    folder = laid.config_map("n" * 253) if kind == "ConfigMap" else laid.secret("n" * 253)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {key: "one", "b": "two"}


def test_what_a_kill_left_half_written_disappears(tmp_path: Path) -> None:
    laid = files(tmp_path, config_map(data={"a.md": "one"}))
    (laid.config_map("docs") / "..new").write_text("o")
    assert [path.name for path in laid.config_map("docs").iterdir()] == ["a.md"]


def test_a_secret_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    body = {"kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"app": "{}"}}
    folder = files(tmp_path, body).secret("keys")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "app").stat().st_mode) == 0o600


def test_a_claim_is_the_folder_that_was_named(tmp_path: Path) -> None:
    assert files(tmp_path, claims={"docs": tmp_path}).claim("docs") == tmp_path.resolve()


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (config_map(data={"a.md": "one"}, binaryData={"b": "YQ==", "c": "YW\nJj\n"}), []),
        (config_map(), []),
        (config_map(data={"../x": "y", "..": "z", 1: "w"}), ["cannot be the name of an entry"] * 3),
        (config_map(data={"port": 80}), ["data.port: is a int: quote it to make it text"]),
        (config_map(data=["a"]), ["data: is a list: write a mapping"]),
        (config_map(binaryData={"a": "not base64!"}), ["binaryData.a: is not base64: encode it"]),
        (
            {"kind": "Secret", "metadata": {"name": "docs"}, "data": {"a": "hunter2!"}, "stringData": {"b": 1234}},
            ["stringData.b: is a int", "data.a: is not base64: encode it, or put plain text under stringData"],
        ),
    ],
)
def test_entries_that_kubernetes_would_refuse_are_named_and_never_shown(body: dict, messages: list[str]) -> None:
    found = [str(each) for each in entry_violations(Manifest(Path("m.yaml"), body["kind"], "docs", body))]
    assert len(found) == len(messages)
    assert all(message in each for message, each in zip(messages, found, strict=True)), found
    assert "hunter2" not in str(found)
    assert "1234" not in str(found)
