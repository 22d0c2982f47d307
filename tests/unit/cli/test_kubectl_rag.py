"""The commands of `kubectl rag` against a cluster that is a dictionary: what they print, and how they end."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from tests.unit.cli.test_explain import ANSWER
from tests.unit.cli.test_rag_diff import changed, frozen
from tests.unit.cli.test_rag_views import AT, release

from tidegate_cli import kubectl_rag, rag_requests
from tidegate_cli.kubectl import Document, Kubectl, KubectlError
from tidegate_cli.kubectl_rag import COMMANDS, main
from tidegate_cli.query import Question
from tidegate_cli.rag_grammar import parser

Status = dict[str, Any]


@dataclass(frozen=True)
class Cluster(Kubectl):
    """Holds objects by kind and name. An annotation is answered at once with `outcome`, as the operator would."""

    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    outcome: Status = field(default_factory=lambda: {"result": "done", "message": "rel-1 serves"})

    def get(self, kind: str, name: str, *, group: str = ".tidegate.dev") -> Document:
        if (kind, name) not in self.objects:
            raise KubectlError(f'Error from server (NotFound): {kind}{group} "{name}" not found')
        return self.objects[kind, name]

    def find(self, kind: str, *, selector: str = "", group: str = ".tidegate.dev") -> list[Document]:
        return [item for (found, _), item in self.objects.items() if found == kind]

    def annotate(self, kind: str, name: str, *, key: str, value: str) -> None:
        order = json.loads(value)
        outcome = {"id": order["id"], "verb": order["verb"], "by": order["by"], "at": AT, **self.outcome}
        self.objects[kind, name].setdefault("status", {})["requests"] = [outcome]

    @contextmanager
    def forwarded(self, service: str, port: int) -> Iterator[int]:
        yield 1


def cluster(*items: dict[str, Any], **outcome: str) -> Cluster:
    objects = {(item["kind"], item["metadata"]["name"]): item for item in items}
    return Cluster(objects=objects, outcome=outcome or {"result": "done", "message": "rel-1 serves"})


def pipeline(name: str = "docs", **status: object) -> dict[str, Any]:
    return {
        "kind": "retrievalpipelines",
        "metadata": {"name": name},
        "spec": {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}},
        "status": {"observedGeneration": 1, **status},
    }


def policy(name: str, *, of: str = "docs", created: str = AT, **status: object) -> dict[str, Any]:
    return {
        "kind": "routingpolicies",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"pipeline": {"name": of}},
        "status": {"observedGeneration": 1, **status},
    }


def base(**status: object) -> dict[str, Any]:
    return {
        "kind": "knowledgebases",
        "metadata": {"name": "docs"},
        "spec": {"sources": [{"name": "a", "from": {"configMap": {"name": "a"}}}]},
        "status": status,
    }


class Told:
    """Runs commands against one cluster and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, at: Cluster, *arguments: str, code: int = 0) -> str:
        assert main(arguments, connect=lambda _: at) == code
        captured = self._capsys.readouterr()
        self.error = captured.err
        return captured.out

    def document(self, at: Cluster, *arguments: str, code: int = 0) -> Any:
        """Return the command's document, which JSON and YAML must agree on."""
        found = json.loads(self(at, *arguments, "-o", "json", code=code))
        assert yaml.safe_load(self(at, *arguments, "-o", "yaml", code=code)) == found
        return found

    def outcome(self, at: Cluster, *arguments: str, code: int = 0) -> dict[str, Any]:
        """Return an order's document but for the id: each form is an order of its own."""
        forms = (
            json.loads(self(at, *arguments, "-o", "json", code=code)),
            yaml.safe_load(self(at, *arguments, "-o", "yaml", code=code)),
        )
        first, second = ({name: member for name, member in form.items() if name != "id"} for form in forms)
        assert first == second
        return first


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(rag_requests, "POLL_SECONDS", 0.0)
    return Told(capsys)


def test_every_command_of_the_grammar_is_carried_out_by_something() -> None:
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(commands.choices) == set(COMMANDS)


def test_the_status_document_names_every_pipeline_and_the_policy_that_rules_it(told: Told) -> None:
    at = cluster(
        pipeline("docs", servingRelease="rel-1"),
        pipeline("faq"),
        policy("later", created="2026-11-30T10:00:00Z", stable="rel-9"),
        policy("first", stable="rel-1"),
    )
    docs, faq = told.document(at, "status")
    assert (docs["name"], docs["status"]["servingRelease"]) == ("docs", "rel-1")
    assert (docs["policy"]["name"], docs["policy"]["status"]["stable"]) == ("first", "rel-1")
    assert faq["name"] == "faq"
    assert "policy" not in faq
    assert told.document(at, "status", "faq") == [faq]
    assert told.document(cluster(), "status") == []
    assert told(cluster(), "status") == "no RetrievalPipeline in this namespace\n"


def test_wide_status_is_the_text_and_the_releases(told: Told) -> None:
    at = cluster(pipeline(releases=[release("rel-1", "docs-1")]), base())
    text = told(at, "status", "docs")
    assert told(at, "status", "docs", "-o", "wide") == f"{text}\n{told(at, 'releases', 'docs', '-o', 'wide')}"
    none = cluster(pipeline(), base())
    assert told(none, "status", "-o", "wide") == told(none, "status")


@dataclass(frozen=True)
class Vanishing(Cluster):
    """Cannot be reached any more after two looks."""

    looks: list[str] = field(default_factory=lambda: ["first", "second"])

    def get(self, kind: str, name: str, *, group: str = ".tidegate.dev") -> Document:
        if not self.looks:
            raise KubectlError("connection refused")
        self.looks.pop()
        return super().get(kind, name, group=group)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_watched_status_keeps_its_documents_apart(told: Told, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr(kubectl_rag, "WATCH_SECONDS", 0.0)
    at = Vanishing(objects=cluster(pipeline()).objects)
    seen = told(at, "status", "docs", "--watch", "-o", output, code=1)
    assert told.error == "connection refused\n"
    if output == "yaml":
        assert [document and document[0]["name"] for document in yaml.safe_load_all(seen)] == ["docs", "docs", None]
    else:
        first, end = json.JSONDecoder().raw_decode(seen)
        assert json.loads(seen[end:]) == first


def test_releases_and_revisions_are_documents_too(told: Told) -> None:
    revision = {"name": "docs-2", "phase": "Ready", "sizeBytes": 7, "readyAt": AT}
    at = cluster(pipeline(releases=[release("rel-1", "docs-1")]), base(desiredRevision="docs-2", revisions=[revision]))
    releases = told.document(at, "releases", "docs")
    assert (releases["pipeline"], [each["name"] for each in releases["releases"]]) == ("docs", ["rel-1"])
    revisions = told.document(at, "revisions", "docs")
    assert (revisions["knowledgeBase"], revisions["desiredRevision"]) == ("docs", "docs-2")
    assert revision.items() <= revisions["revisions"][0].items()
    assert AT not in told(at, "revisions", "docs")
    assert AT in told(at, "revisions", "docs", "-o", "wide")


@pytest.mark.parametrize("verb", ["promote", "rollback", "abort", "retry"])
def test_an_order_ends_with_its_outcome(told: Told, verb: str) -> None:
    at = cluster(pipeline(), policy("docs"))
    assert told(at, verb, "docs") == f"{verb}: done; rel-1 serves\n"
    outcome = told.outcome(at, verb, "docs")
    assert (outcome["verb"], outcome["result"], outcome["message"], outcome["at"]) == (verb, "done", "rel-1 serves", AT)
    assert "everywhere" not in outcome


def test_an_order_that_is_refused_fails_and_says_so_in_every_form(told: Told) -> None:
    at = cluster(pipeline(), result="refused", message="nothing waits")
    assert told(at, "promote", code=1) == "promote: refused; nothing waits\n"
    assert told.outcome(at, "promote", code=1)["result"] == "refused"


class Obedient(Cluster):
    """Writes the next table with every order, and every pod obeys it."""

    def annotate(self, kind: str, name: str, *, key: str, value: str) -> None:
        super().annotate(kind, name, key=key, value=value)
        status = self.objects["retrievalpipelines", "docs"]["status"]
        status["routing"] = {"version": status.get("routing", {}).get("version", 1) + 1, "summary": "2/2"}


def test_rollback_that_waits_says_where_it_is_obeyed(told: Told) -> None:
    at = Obedient(objects=cluster(pipeline(servingRelease="rel-1")).objects)
    told(at, "rollback")
    assert told(at, "rollback", "--wait").splitlines() == [
        "rollback: done; rel-1 serves",
        "rel-1 serves on 2/2 pods, by table 3",
    ]
    document = json.loads(told(at, "rollback", "--wait", "-o", "json"))
    assert (document["result"], document["everywhere"]) == ("done", "rel-1 serves on 2/2 pods, by table 4")


def test_an_outcome_is_told_although_the_pods_take_too_long(told: Told) -> None:
    at = cluster(pipeline(servingRelease="rel-1"))
    document = told.outcome(at, "rollback", "--wait", "--timeout", "0.01", code=3)
    assert document["result"] == "done"
    assert "everywhere" not in document
    assert "still waits for a new table" in told.error


def test_a_difference_is_read_from_what_the_releases_froze(told: Told) -> None:
    first, second = frozen(), frozen(*changed("dense", topK=20))
    names = [each.release.name for each in (first, second)]
    releases = [release(each.release.name, "docs-1", each.release.pipeline.revision()) for each in (first, second)]
    at = cluster(pipeline(releases=releases))
    for each in (first, second):
        at.objects["controllerrevisions", f"docs-{each.release.name}"] = {"data": each.to_document()}
    assert told(at, "diff", *names).splitlines()[1:] == ["nodes[dense].topK: 50 -> 20"]
    document = told.document(at, "diff", *names)
    assert document["changes"][1] == {"path": "nodes[dense].topK", "before": 50, "after": 20}
    assert document["unread"] == []


def test_a_release_that_is_gone_is_compared_by_its_status(told: Told) -> None:
    at = cluster(pipeline(releases=[release("rel-1", "docs-1"), release("rel-2", "docs-2")]))
    gone = 'Error from server (NotFound): controllerrevisions.apps "docs-rel-{}" not found'
    assert told(at, "diff", "rel-1", "rel-2").splitlines() == [
        "indexes[docs]: docs-1 -> docs-2",
        f"nodes, settings and images are not compared: {gone.format(1)}; {gone.format(2)}",
    ]
    document = told.document(at, "diff", "rel-1", "rel-2")
    assert [change["path"] for change in document["changes"]] == ["indexes[docs]"]
    assert document["unread"] == [gone.format(1), gone.format(2)]
    told(at, "diff", "rel-1", "rel-9", code=1)
    assert told.error == "docs has no release 'rel-9'; it has rel-1, rel-2\n"


def test_a_question_and_an_explanation_are_documents_too(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.cli.test_decision import table

    answer = {
        **ANSWER,
        "query_id": "q-1",
        "results": [{**each, "title": "a", "content": "b"} for each in ANSWER["results"]],
    }
    asked: list[Question] = []

    def ask(question: Question) -> dict[str, object]:
        asked.append(question)
        return answer

    monkeypatch.setattr(kubectl_rag, "ask", ask)
    routing = {"kind": "ConfigMap", "data": {"routing.json": table().model_dump_json(by_alias=True)}}
    at = Cluster(objects={("configmaps", "docs-routing"): routing})
    assert told.document(at, "query", "docs", "when is high water") == answer
    assert "-- rel-new" in told(at, "query", "docs", "when is high water")
    explained = told.document(at, "explain", "docs", "when is high water", "--user", "u-11")
    assert (explained["decision"]["release"], explained["answer"]) == ("rel-new", answer)
    assert explained["decision"]["passed_over"][0]["what"] == "forced release"
    text = told(at, "explain", "docs", "when is high water", "--user", "u-11")
    assert "release     rel-new (candidate)" in text
    assert "skipped     node lexical" in text
    assert {question.query for question in asked} == {"when is high water"}


def test_errors_are_as_they_were_in_every_form(told: Told) -> None:
    for output in ("text", "json", "yaml"):
        assert told(cluster(), "releases", "gone", "-o", output, code=1) == ""
        assert told.error == 'Error from server (NotFound): retrievalpipelines.tidegate.dev "gone" not found\n'
    broken = {"kind": "retrievalpipelines", "metadata": {"name": "docs"}, "spec": {"auth": {}}}
    told(cluster(broken), "status", "-o", "json", code=1)
    assert told.error.startswith("the object is not what this version expects: ")


def test_wide_is_for_tables_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["promote", "docs", "-o", "wide"])
    assert "invalid choice: 'wide'" in capsys.readouterr().err
