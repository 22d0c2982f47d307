"""What `tidegate local` refuses before anything starts: every mistake by file, field, value and next step."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.local_server import (
    Object,
    config_map,
    free_port,
    knowledge_base,
    pipeline,
    replace,
    run_command,
    volume_source,
    write_manifests,
)

NOTES = {"name": "notes", "from": {"configMap": {"name": "notes"}}}


def refused(folder: Path, *more: str | Path) -> list[str]:
    """Return the lines with which the manifests in `folder` are refused; nothing may have been started or written."""
    listen = f"--listen=127.0.0.1:{free_port()}"
    done = run_command("local", "-f", folder, "--state", folder / "state", listen, *more)
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not (folder / "state").exists()
    return done.stderr.splitlines()


def secret(name: str, **entries: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": entries}


def node(name: str, type_: str, *inputs: str, **settings: Any) -> Object:
    return {"name": name, "type": type_, "inputs": list(inputs), **({"with": settings} if settings else {})}


def only_line_with(lines: list[str], text: str) -> str:
    found = [line for line in lines if text in line]
    assert len(found) == 1, (text, lines)
    return found[0]


def test_files_that_cannot_be_read_are_all_named_in_one_run(tmp_path: Path) -> None:
    replace(tmp_path / "broken.yaml", "kind: [")
    replace(tmp_path / "list.yaml", "- a\n- b\n")
    replace(tmp_path / "nameless.yaml", "apiVersion: tidegate.dev/v1alpha1\nkind: KnowledgeBase\n")
    replace(tmp_path / "version.yaml", "apiVersion: tidegate.dev/v9\nkind: KnowledgeBase\nmetadata: {name: docs}\n")
    replace(tmp_path / "date.yaml", "kind: ConfigMap\nmetadata: {name: a}\ndata: {when: 2024-99-99}\n")
    replace(tmp_path / "deep.yaml", "a: " + "[" * 5000)
    (tmp_path / "latin.yaml").write_bytes("kind: Straße".encode("latin-1"))
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nothing.yaml")
    with (tmp_path / "huge.yaml").open("wb") as huge:
        huge.truncate(200 * 1024 * 1024)
    lines = refused(tmp_path)
    for name, what in (
        ("broken.yaml", "is not YAML: "),
        ("list.yaml", "document 1: is a list, not an object; a manifest starts with apiVersion and kind"),
        ("nameless.yaml", "document 1: kind and metadata.name are missing or not text; every manifest needs both"),
        ("version.yaml", "KnowledgeBase docs: apiVersion is 'tidegate.dev/v9'; use tidegate.dev/v1alpha1"),
        ("date.yaml", "is not YAML: month must be in 1..12"),
        ("deep.yaml", "is nested too deeply"),
        ("latin.yaml", "is not UTF-8 at byte 10; convert it, for example with iconv"),
        ("dangling.yaml", "cannot be read: No such file or directory; mend or remove it"),
        ("huge.yaml", "is larger than 8388608 bytes; put documents on a volume instead of in a manifest"),
    ):
        assert what in only_line_with(lines, f"{tmp_path / name}: ")
    assert len(lines) == 9, "a folder is none of them"


def test_what_the_schema_refuses_is_named_with_field_and_value(tmp_path: Path) -> None:
    long_name = "n" * 253
    write_manifests(
        tmp_path,
        knowledge_base("docs", NOTES, language="fr", chunking={"sizeTokens": 4}, colour="red"),
        knowledge_base("both", {"name": "both", "from": {}}),
        knowledge_base(long_name, NOTES),
        pipeline("docs", "docs", auth={}, nodes=[node("a", "search")]),
    )
    lines = refused(tmp_path)
    for line in (
        f"{tmp_path}/KnowledgeBase-docs.yaml: KnowledgeBase docs: spec.colour: is an unknown field",
        f'{tmp_path}/KnowledgeBase-docs.yaml: KnowledgeBase docs: spec.language: "fr"',
        f"{tmp_path}/KnowledgeBase-docs.yaml: KnowledgeBase docs: spec.chunking.sizeTokens: 4",
        f"{tmp_path}/KnowledgeBase-both.yaml: KnowledgeBase both: spec.sources[0].from: ",
        f"{tmp_path}/KnowledgeBase-{'n' * 40}.yaml: KnowledgeBase {'n' * 63}…: metadata.name: ",
        f'{tmp_path}/RetrievalPipeline-docs.yaml: RetrievalPipeline docs: spec.nodes[0].type: "search"',
        f"{tmp_path}/RetrievalPipeline-docs.yaml: RetrievalPipeline docs: spec.auth: {{}}: set apiKeys, trustedHeaders",
    ):
        assert any(each.startswith(line) for each in lines), (line, lines)
    assert all(len(line) < 500 for line in lines)


def test_what_names_something_that_is_not_there_is_refused_with_the_next_step(tmp_path: Path) -> None:
    api_keys, proxy = {"secretRef": {"name": "keys"}}, {"secretRef": {"name": "proxy"}}
    cycle = [node("one", "fuse", "two"), node("two", "fuse", "one"), node("words", "bm25")]
    write_manifests(
        tmp_path,
        config_map("bad", **{"a.md": "text"}) | {"binaryData": {"b.md": "no base64!", "../c": "YQ=="}},
        secret("proxy", port=8080),
        knowledge_base("docs", NOTES, embedding={"model": "gpt"}),
        knowledge_base("files", volume_source("unmapped"), volume_source("gone", name="gone")),
        knowledge_base("bad", {"name": "bad", "from": {"configMap": {"name": "bad"}}}),
        pipeline("ask", "docs", "nosuch", auth={"apiKeys": api_keys, "trustedHeaders": proxy}),
        pipeline("cycle", "docs", nodes=cycle, output="one"),
        pipeline("input", "docs", nodes=[node("words", "bm25"), node("f", "fuse", "word")], output="f"),
        pipeline("setting", "docs", nodes=[node("words", "bm25", topk=3)], output="words"),
        {
            "apiVersion": "tidegate.dev/v1alpha1",
            "kind": "RoutingPolicy",
            "metadata": {"name": "lost"},
            "spec": {"pipeline": {"name": "lost"}},
        },
    )
    lines = refused(tmp_path, f"--volume=gone={tmp_path / 'gone'}")
    missing = "is not among the given files: add it or correct the name"
    for line in (
        'KnowledgeBase docs: spec.embedding.model: "gpt" is not a known model',
        f"KnowledgeBase docs: spec.sources[notes].from.configMap.name: ConfigMap 'notes' {missing}",
        "KnowledgeBase files: spec.sources[files].from.volume.claimName: claim 'unmapped' has no folder here: "
        "add --volume unmapped=PATH",
        f"KnowledgeBase files: spec.sources[gone].from.volume.claimName: --volume gone={tmp_path / 'gone'} "
        "is not a folder: correct the path",
        "ConfigMap bad: binaryData.b.md: is not base64: encode it, or put plain text under data instead",
        'ConfigMap bad: binaryData.../c: "../c" cannot be the name of an entry: use letters, digits',
        "Secret proxy: stringData.port: is a int: quote it to make it text",
        f"RetrievalPipeline ask: spec.knowledgeBases: KnowledgeBase 'nosuch' {missing}",
        f"RetrievalPipeline ask: spec.auth.apiKeys.secretRef.name: Secret 'keys' {missing}",
        "RetrievalPipeline ask: spec.auth.trustedHeaders.secretRef.name: Secret 'proxy' has no entry 'secret': "
        "add it under stringData",
        "RetrievalPipeline cycle: spec.nodes",
        'RetrievalPipeline input: spec.nodes[f].inputs: "word" is not a node: ',
        "RetrievalPipeline setting: spec.nodes[words].with",
        f"RoutingPolicy lost: spec.pipeline.name: RetrievalPipeline 'lost' {missing}",
    ):
        assert any(line in each for each in lines), (line, lines)
    assert any("one -> two -> one" in each or "two -> one -> two" in each for each in lines), lines


def test_files_without_a_pipeline_have_nothing_to_serve(tmp_path: Path) -> None:
    write_manifests(tmp_path, config_map("notes", **{"a.md": "text"}), knowledge_base("docs", NOTES))
    assert refused(tmp_path) == [
        "no RetrievalPipeline is among the given files; add one, as in examples/quickstart/pipeline.yaml"
    ]
    assert refused(tmp_path / "nothing") == [f"{tmp_path / 'nothing'}: no such file or folder; check what follows -f"]


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (
            lambda state: replace(state / "local.json", '{"format": "tidegate-local/0"}'),
            "was written as 'tidegate-local/0', this version reads 'tidegate-local/1'; use another --state, or remove",
        ),
        (lambda state: replace(state / "thesis.txt", "mine"), "is not empty and not a state folder; choose another"),
    ],
    ids=["another version", "somebody else's"],
)
def test_a_state_folder_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, prepare: Callable[[Path], None], message: str
) -> None:
    write_manifests(
        tmp_path / "files",
        config_map("notes", **{"a.md": "text"}),
        knowledge_base("docs", NOTES),
        pipeline("docs", "docs"),
    )
    state = tmp_path / "state"
    prepare(state)
    before = {path: path.read_text() for path in state.rglob("*") if path.is_file()}
    done = run_command("local", "-f", tmp_path / "files", "--state", state, "--listen", f"127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert done.stderr.startswith(str(state))
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    after = {path: path.read_text() for path in state.rglob("*") if path.is_file() and path.name != "lock"}
    assert after == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("local",), "the following arguments are required: -f/--filename"),
        (("local", "-f", "x", "--listen", "8080"), "'8080' is not HOST:PORT, such as 127.0.0.1:8080"),
        (("local", "-f", "x", "--listen", ":8080"), "':8080' leaves out the host or the port, say both"),
        (("local", "-f", "x", "--listen", "127.0.0.1:0"), "'127.0.0.1:0' leaves out the host or the port, say both"),
        (("local", "-f", "x", "--listen", "127.0.0.1:99999"), "'127.0.0.1:99999' is not HOST:PORT"),
        (("local", "-f", "x", "--volume", "docs"), "'docs' is not CLAIM=PATH, for example docs=./documents"),
        (("query",), "the following arguments are required: query"),
        (("serve",), "invalid choice: 'serve'"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_right(arguments: tuple[str, ...], message: str) -> None:
    done = run_command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("203.0.113.7:8080", "--listen 203.0.113.7:8080: Cannot assign requested address; choose another address"),
        ("a" * 64 + ":80", "--listen " + "a" * 64 + ":80: no host can have this name; choose another address"),
        (
            "127.0.0.1:65530",
            "--listen 127.0.0.1:65540: there is no such port; each further pipeline adds 10, begin lower",
        ),
    ],
    ids=["elsewhere", "no name", "beyond the last port"],
)
def test_an_address_that_cannot_be_ours_is_refused(tmp_path: Path, address: str, message: str) -> None:
    notes = config_map("notes", **{"a.md": "text"})
    write_manifests(tmp_path, notes, knowledge_base("docs", NOTES), pipeline("docs", "docs"), pipeline("more", "docs"))
    assert refused(tmp_path, f"--listen={address}") == [message]


def test_a_question_to_nobody_says_so() -> None:
    done = run_command("query", "anybody?", "--url", f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "is it running?" in done.stderr
    assert len(done.stderr.splitlines()) == 1
