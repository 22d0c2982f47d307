"""Documents, manifests and chunking change under a running `tidegate local`; answers never stop."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.local_server import (
    Answer,
    Asker,
    LocalServer,
    config_map,
    knowledge_base,
    pipeline,
    replace,
    running,
    volume_source,
    write_manifests,
)

pytestmark = [pytest.mark.models, pytest.mark.timeout(400)]

HARBOUR = "The harbour office opens at seven and answers questions about berths, tides and pilots."
# A document of several chunks: each paragraph is about as long as a chunk may be in these tests.
LONG = "\n\n".join(
    f"## Part {part}\n\n" + f"The logbook of voyage {part} tells of {cargo} and of the weather on the way. " * 5
    for part, cargo in enumerate(["amber", "barley", "copper", "dates", "ebony", "figs"], start=1)
)


def base(**spec: Any) -> list[dict[str, Any]]:
    """Return the manifests of the server: a volume, a ConfigMap and one pipeline over both."""
    sources = [
        volume_source("papers", include=["**/*.md", "*.txt", "*.html", "*.jsonl"]),
        {"name": "notes", "from": {"configMap": {"name": "notes"}}},
    ]
    return [
        config_map("notes", **{"harbour.md": f"# Harbour\n\n{HARBOUR}"}),
        knowledge_base("port", *sources, **{"chunking": {"sizeTokens": 100, "overlapTokens": 0}, **spec}),
        pipeline("port", "port"),
    ]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder = tmp_path_factory.mktemp("port")
    papers, outside = folder / "papers", folder / "outside.md"
    replace(papers / "deep" / "below" / "crane.md", "# Crane\n\nThe crane lifts forty tonnes.\n")
    replace(papers / "ferry.txt", "The ferry leaves for the island every two hours.\n")
    replace(papers / "fog.html", "<html><title>Fog</title><body><p>In fog the horn sounds twice.</p></body></html>")
    lines = [{"id": "buoy-7", "title": "Buoy", "text": "Buoy seven marks the wreck.", "metadata": {"colour": "red"}}]
    replace(papers / "lights.jsonl", "\n".join(json.dumps(line) for line in lines))
    replace(papers / "deep" / "not-included.txt", "The submarine is painted yellow.\n")
    replace(papers / "drawing.png", "no document\n")
    replace(outside, "# Vault\n\nThe vault holds the smuggled emeralds.\n")
    (papers / "link.md").symlink_to(outside)
    write_manifests(folder / "files", *base())
    with running(LocalServer(folder, folder / "files", {"papers": papers})) as server:
        yield server


def found(server: LocalServer, query: str, document: str) -> Answer:
    return server.until_answered(query, lambda answer: answer.documents[:1] == [document], f"{document} is found")


def not_found(server: LocalServer, query: str, document: str) -> Answer:
    return server.until_answered(
        query, lambda answer: document not in answer.documents, f"{document} is gone", top_k=50
    )


def chunks(server: LocalServer, document: str) -> dict[str, str]:
    """Return the chunks of a document, text by id."""
    answer = server.ask("tells of the weather on the way", top_k=100)
    return {each["chunk_id"]: each["content"] for each in answer.results if each["document_id"] == document}


def test_every_format_of_a_volume_is_found_by_its_path_or_id(port: LocalServer) -> None:
    for query, document, title in (
        ("how much does the crane lift?", "deep/below/crane.md", "Crane"),
        ("when does the ferry leave?", "ferry.txt", "ferry"),
        ("what sounds in fog?", "fog.html", "Fog"),
        ("which buoy marks the wreck?", "buoy-7", "Buoy"),
        ("when does the harbour office open?", "harbour.md", "Harbour"),
    ):
        answer = port.ask(query)
        assert answer.documents[0] == document
        assert answer.results[0]["title"] == title
    content = port.ask("when does the ferry leave?").results[0]
    original = (port.folder / "papers" / "ferry.txt").read_text()
    assert original[content["location"]["start"] : content["location"]["end"]] == content["content"]


def test_what_include_leaves_out_and_links_that_lead_outside_are_not_indexed(port: LocalServer) -> None:
    for query in ("what colour is the submarine?", "where are the smuggled emeralds?"):
        answer = port.ask(query, top_k=50)
        assert not {"deep/not-included.txt", "drawing.png", "link.md"} & set(answer.documents)
        assert "yellow" not in json.dumps(answer.body)
        assert "emeralds" not in json.dumps(answer.results)
    assert "port: files/link.md: is a link that leads outside the source; copy the file instead" in port.output


def test_a_new_document_an_edit_and_a_deletion_reach_the_answers(port: LocalServer) -> None:
    path = port.folder / "papers" / "signal.md"
    query = "what does the quarantine signal look like?"
    replace(path, "# Signal\n\nThe quarantine signal is a yellow flag.\n")
    first = found(port, query, "signal.md")
    replace(path, "# Signal\n\nThe quarantine signal is a white lantern over a red one.\n")
    second = port.until_answered(query, lambda answer: "lantern" in answer.results[0]["content"], "the edit is found")
    path.unlink()
    last = not_found(port, query, "signal.md")
    assert first.body["release"] == second.body["release"] == last.body["release"]
    assert first.results[0]["content_generation"] < second.results[0]["content_generation"]


def test_a_document_that_shrinks_leaves_no_chunk_behind(port: LocalServer) -> None:
    path = port.folder / "papers" / "logbook.md"
    replace(path, f"# Logbook\n\n{LONG}")
    port.until(lambda: len(chunks(port, "logbook.md")) >= 6, "all parts of the logbook are found")
    whole = chunks(port, "logbook.md")
    assert len(set(whole.values())) == len(whole), "no text twice"
    replace(path, "# Logbook\n\n" + "\n\n".join(LONG.split("\n\n")[:4]))
    port.until(lambda: len(chunks(port, "logbook.md")) <= 2, "the chunks of the parts that left are gone")
    assert not [content for content in chunks(port, "logbook.md").values() if "copper" in content or "figs" in content]
    replace(path, f"# Logbook\n\n{LONG}")
    port.until(lambda: chunks(port, "logbook.md") == whole, "the same text has the same chunks again")
    path.unlink()
    not_found(port, "logbook of the voyage", "logbook.md")


def test_a_change_of_chunking_builds_another_revision_beside_the_serving_one(port: LocalServer) -> None:
    path = port.folder / "papers" / "almanac.md"
    replace(path, f"# Almanac\n\n{LONG}")
    before = found(port, "almanac of the voyage", "almanac.md")
    first = chunks(port, "almanac.md")
    with Asker(port, "almanac of the voyage") as asker:
        write_manifests(port.files, *base(chunking={"sizeTokens": 40, "overlapTokens": 0}))
        other = port.until_answered(
            "almanac of the voyage", lambda answer: answer.body["release"] != before.body["release"], "it serves"
        )
        second = chunks(port, "almanac.md")
        assert len(second) > len(first)
        assert not first.keys() & second.keys()
        write_manifests(port.files, *base())
        port.until_answered(
            "almanac of the voyage",
            lambda answer: answer.body["release"] == before.body["release"],
            "the first is back",
        )
        assert chunks(port, "almanac.md") == first
    assert asker.failed() == []
    assert asker.releases == {before.body["release"], other.body["release"]}
    assert other.results[0]["revision"] != before.results[0]["revision"]
    kept = port.state / "indexes" / "port"
    port.until(
        lambda: [each.parent.name for each in kept.glob("*/manifest.json")] == [before.results[0]["revision"]],
        "the revision that nobody needs is removed",
    )
    path.unlink()


def test_a_broken_edit_is_named_and_the_old_files_go_on_until_it_is_mended(port: LocalServer) -> None:
    manifest = port.files / "KnowledgeBase-port.yaml"
    good, printed, children = manifest.read_text(), len(port.output), port.children()
    release = port.ask(HARBOUR).body["release"]
    replace(manifest, good.replace("sizeTokens: 100", "sizeTokens: many"))
    port.until_printed(f"{manifest}: KnowledgeBase port: spec.chunking.sizeTokens: ", after=printed)
    port.until_printed("the files as they were before stay in force", after=printed)
    replace(manifest, good + "\n- [")
    port.until_printed(f"{manifest}: is not YAML: ", after=printed)
    assert port.ask(HARBOUR).body["release"] == release
    replace(manifest, good)
    port.until_printed("files read anew", after=printed)
    found(port, "when does the harbour office open?", "harbour.md")
    assert (port.ask(HARBOUR).body["release"], port.children()) == (release, children)


def test_an_edit_of_what_may_not_change_is_refused_as_a_cluster_would(port: LocalServer) -> None:
    manifest = port.files / "RoutingPolicy-port.yaml"
    policy = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": "port"},
        "spec": {"pipeline": {"name": "port"}, "salt": "one"},
    }
    write_manifests(port.files, policy)
    port.until_printed("RoutingPolicy port: is checked but not obeyed here")
    printed = len(port.output)
    replace(manifest, manifest.read_text().replace("salt: one", "salt: two"))
    port.until_printed(f'{manifest}: RoutingPolicy port: spec.salt: "two": can\'t change once it is set', after=printed)
    port.until_printed("the files as they were before stay in force", after=printed)
    manifest.unlink()
    port.until_printed("files read anew", after=printed)


def test_documents_that_cannot_be_read_are_named_with_the_reason_and_harm_no_other(port: LocalServer) -> None:
    papers = port.folder / "papers"
    bad = papers / "bad"
    bad.mkdir()
    (bad / "binary.md").write_bytes(b"\x89PNG\0\0")
    (bad / "chinese.md").write_bytes("潮汐表".encode("gb18030"))
    (bad / "empty.md").write_bytes(b"")
    (bad / "folder.md").mkdir()
    (bad / "dangling.md").symlink_to(bad / "nothing.md")
    os.mkfifo(bad / "pipe.md")
    with (bad / "huge.md").open("wb") as huge:
        huge.truncate(200 * 1024 * 1024)
    lines = ['{"id": "ok", "text": "The dredger works at night."}', '{"id": "cut', '{"id": "ok", "text": "Again."}']
    replace(papers / "lines.jsonl", "\n".join([*lines, '{"id": "t", "text": "x", "tenant": ["a"]}']))
    for line in (
        "port: files/bad/binary.md: is binary (NUL at byte 4); leave it out with include, or export its text",
        "port: files/bad/chinese.md: is not UTF-8 at byte 0; convert it, e.g. with iconv -f GB18030 -t UTF-8",
        "port: files/bad/dangling.md: is a link that leads to nothing; mend or remove it",
        "port: files/bad/empty.md: is empty; give it text, or remove it",
        "port: files/bad/huge.md: has 200.0 MiB, the limit for one file is 16 MiB; split it",
        "port: files/bad/pipe.md: is not a regular file; remove it or leave it out with include",
        "port: files/lines.jsonl:2: is not JSON",
        "port: files/lines.jsonl:3: id 'ok' is already that of line 1; give it its own",
        "port: files/lines.jsonl:4: unknown member 'tenant'; put fields of your own under metadata",
    ):
        port.until_printed(line)
    assert "folder.md" not in port.output
    found(port, "when does the dredger work?", "ok")
    found(port, "how much does the crane lift?", "deep/below/crane.md")
    (papers / "lines.jsonl").unlink()
    not_found(port, "when does the dredger work?", "ok")


def test_a_source_that_loses_everything_keeps_its_index_until_a_person_confirms(port: LocalServer) -> None:
    printed = len(port.output)
    write_manifests(port.files, config_map("notes"))
    port.until_printed("port: source 'notes' lists no document any more; what was indexed of it stays", after=printed)
    found(port, "when does the harbour office open?", "harbour.md")
    confirmed = base()[1]
    confirmed["metadata"]["annotations"] = {"tidegate.dev/sync": "confirmed"}
    write_manifests(port.files, confirmed)
    not_found(port, "when does the harbour office open?", "harbour.md")
    write_manifests(port.files, *base())
    found(port, "when does the harbour office open?", "harbour.md")


def test_a_second_pipeline_comes_and_goes_beside_the_first(port: LocalServer) -> None:
    second = LocalServer(port.folder, port.files, port=port.port + 10)
    children = port.children()
    only_words = {"nodes": [{"name": "words", "type": "bm25"}], "output": "words"}
    policy = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": "a-words"},
        "spec": {"pipeline": {"name": "a-words"}},
    }
    write_manifests(port.files, pipeline("a-words", "port", **only_words), policy)
    port.until_printed("RoutingPolicy a-words: is checked but not obeyed here; one release serves everybody")
    answer = second.until_answered("crane", lambda answer: answer.results, "the second pipeline answers")
    assert answer.documents == ["deep/below/crane.md"]
    assert answer.results[0]["score_kind"] == "bm25"
    assert children.items() <= port.children().items()
    for kind in ("RetrievalPipeline", "RoutingPolicy"):
        (port.files / f"{kind}-a-words.yaml").unlink()
    port.until(lambda: port.children() == children, "its processes are gone")
    found(port, "how much does the crane lift?", "deep/below/crane.md")


def test_a_volume_that_goes_away_is_said_and_its_index_stays(port: LocalServer) -> None:
    papers, away = port.folder / "papers", port.folder / "away"
    printed = len(port.output)
    papers.rename(away)
    try:
        port.until_printed(f"port: source 'files': {papers} does not exist; check from.volume.path", after=printed)
        found(port, "how much does the crane lift?", "deep/below/crane.md")
    finally:
        away.rename(papers)
    replace(papers / "tug.md", "# Tug\n\nThe tug waits at pier nine.\n")
    found(port, "where does the tug wait?", "tug.md")


def test_a_full_disk_in_mid_run_is_said_once_each_time_and_what_waited_for_room_comes(port: LocalServer) -> None:
    blocked = port.state / "config" / ".port-indexer.json.new"
    query = "when does the harbour office open?"
    said = f"{port.state}: No space left on device; it is tried again"
    for readers, seen in ((["nobody"], not_found), (["*"], found)):
        printed = len(port.output)
        blocked.symlink_to("/dev/full")
        objects = base()
        objects[1]["spec"]["sources"][1]["tenants"] = readers
        write_manifests(port.files, *objects)
        port.until_printed(said, after=printed)
        assert port.ask(query).status == 200, "what serves goes on"
        blocked.unlink()
        seen(port, query, "harbour.md")
        assert port.output[printed:].count(said) == 1


def test_a_change_made_while_it_was_stopped_comes_as_an_edit(port: LocalServer) -> None:
    before = port.ask(HARBOUR)
    port.stop()
    write_manifests(port.files, *base(chunking={"sizeTokens": 40, "overlapTokens": 0}))
    port.start()
    port.until_ready()
    with Asker(port, HARBOUR) as asker:
        port.until_answered(HARBOUR, lambda answer: answer.body["release"] != before.body["release"], "the new serves")
    assert asker.failed() == []
    assert before.body["release"] in asker.releases, "what answered before answers at once"
    write_manifests(port.files, *base())
    port.until_answered(HARBOUR, lambda answer: answer.body["release"] == before.body["release"], "the first is back")


@pytest.mark.parametrize(("name", "word"), [("n" * 250 + ".md", "anchor"), ("a 'b' \"c\" %2e.md", "bollard")])
def test_a_file_name_of_253_characters_or_with_odd_ones_is_a_name_like_any_other(
    port: LocalServer, name: str, word: str
) -> None:
    (port.folder / "papers" / name).write_text(f"# {word}\n\nThe {word} is new.\n")
    found(port, f"the {word} is new", name)
