"""examples/quickstart under `tidegate local`: what a newcomer does in the first five minutes."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from tests.integration.local_server import LocalServer, free_port, kill_process, run_command, running

pytestmark = [pytest.mark.models, pytest.mark.timeout(400)]

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"
QUESTIONS = [
    "What survives a kill -9 between any two steps?",
    "How do I use a folder on my machine in place of a PersistentVolumeClaim?",
    "Which header carries the API key?",
    "What is a release?",
    "Where are the logs?",
    "How does an edit of a document reach the answers?",
]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with running(LocalServer(tmp_path_factory.mktemp("quickstart"), QUICKSTART)) as server:
        yield server


@pytest.fixture(scope="module")
def originals() -> dict[str, str]:
    manifests = yaml.safe_load_all((QUICKSTART / "documents.yaml").read_text(encoding="utf-8"))
    return {name: text for manifest in manifests for name, text in manifest["data"].items()}


def test_an_answer_shows_where_every_chunk_stands_in_the_original(
    quickstart: LocalServer, originals: dict[str, str]
) -> None:
    answer = quickstart.ask("How do I use a folder on my machine in place of a PersistentVolumeClaim?", top_k=5)
    assert answer.status == 200
    assert len(answer.results) == 5
    assert "docs.local.md" in answer.documents[:3]
    for result in answer.results:
        place = result["location"]
        assert result["content"] == originals[result["document_id"]][place["start"] : place["end"]]
        assert (result["source"], result["knowledge_base"]) == ("docs", "docs")
        assert result["revision"].startswith("docs-")
        assert result["title"]
        assert "scores" not in result
    scores = [result["score"] for result in answer.results]
    assert scores == sorted(scores, reverse=True)
    assert len({result["chunk_id"] for result in answer.results}) == 5


def test_an_answer_says_which_release_gave_it_and_why(quickstart: LocalServer) -> None:
    answer = quickstart.ask("what is a release?")
    body = answer.body
    assert answer.headers["x-tidegate-release"] == body["release"]
    assert re.fullmatch(r"rel-[0-9a-f]{10}", body["release"])
    assert answer.headers["x-tidegate-arm"] == body["arm"] == "stable"
    assert answer.headers["x-tidegate-rule"] == body["route"]["rule"] == "stable"
    assert answer.headers["x-tidegate-table"] == str(body["route"]["table"])
    assert body["degraded"] == []
    assert body["timings_ms"]["total"] > 0
    assert re.fullmatch(r"[0-9a-f]{24}", body["query_id"])


def test_health_readiness_state_and_metrics_are_told(quickstart: LocalServer) -> None:
    for path in ("/healthz", "/readyz"):
        answer = quickstart.get(path)
        assert answer is not None
        assert answer.status == 200
    state = quickstart.state_of("docs-sidecar")
    assert state["ready"] is True
    assert [release["phase"] for release in state["releases"]] == ["Warm"]
    indexer = quickstart.state_of("docs-indexer")
    assert [revision["phase"] for revision in indexer["revisions"]] == ["Ready"]
    assert indexer["sync"]["failed"] == 0
    metrics = quickstart.get("/metrics", port=quickstart.state_port("docs-sidecar"))
    assert metrics is not None
    assert 'tidegate_requests_total{arm="stable",outcome="ok",pipeline="docs"}' in metrics.body["text"]
    assert 'tidegate_node_seconds_count{node="dense"}' in metrics.body["text"]
    assert quickstart.get("/v1/state") is not None
    assert quickstart.get("/v1/state").status == 404, "state is not for the public port"


def test_the_query_command_prints_the_sources_or_json(quickstart: LocalServer) -> None:
    shown = run_command("query", "what is a release?", "--url", quickstart.url, "--top-k", "2")
    assert shown.returncode == 0
    assert re.match(r"1\. .+  \[[\w.-]+\.md:\d+-\d+\]  fused [01]\.\d+\n", shown.stdout), shown.stdout
    assert re.search(r"-- rel-[0-9a-f]{10} \(stable by rule stable\), \d", shown.stdout)
    as_json = run_command("query", "what is a release?", "--url", quickstart.url, "-o", "json")
    assert json.loads(as_json.stdout)["results"]
    refused = run_command("query", "where?", "--url", quickstart.url, "--explain")
    assert refused.returncode == 1
    assert refused.stderr.startswith("forbidden (403): explain needs a key with scope `explain`")


def test_the_same_question_has_the_same_answer_in_the_same_order(quickstart: LocalServer) -> None:
    for question in QUESTIONS:
        answers = [json.dumps(quickstart.ask(question, top_k=50).results) for _ in range(5)]
        assert len(set(answers)) == 1


def test_parallel_questions_do_not_mix(quickstart: LocalServer) -> None:
    alone = {question: quickstart.ask(question).results for question in QUESTIONS}
    with ThreadPoolExecutor(16) as pool:
        asked = QUESTIONS * 10
        answers = list(pool.map(quickstart.ask, asked))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["query_id"] for answer in answers}) == len(asked)
    for question, answer in zip(asked, answers, strict=True):
        assert answer.results == alone[question]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b'{"query": "x", "topk": 3}', 400, "invalid_request: unknown member 'topk'; allowed are query"),
        (b'{"query": ""}', 400, "invalid_request: member query: ''"),
        (b'{"query": "  "}', 400, "invalid_request: query"),
        (b"{}", 400, "invalid_request: member query is missing; add it"),
        (b'{"query": "x"', 400, "invalid_request: the body is not JSON"),
        (b'"x"', 400, "invalid_request: the body must be a JSON object"),
        (b'{"query": "x", "top_k": 101}', 400, "invalid_request: top_k 101 is more than 100 (limits.maxTopK)"),
        (b'{"query": "x", "top_k": 0}', 400, "invalid_request: member top_k: 0"),
        (b'{"query": "x", "knowledge_bases": ["nosuch"]}', 400, "nosuch; this release has docs"),
        (b'{"query": "x", "filters": {"type": "eq", "key": "year", "value": 1}}', 400, "year"),
        (b'{"query": "x", "filters": {"type": "like", "key": "year", "value": 1}}', 400, "filters"),
        (b'{"query": "x", "explain": true}', 403, "forbidden: explain needs a key with scope `explain`"),
        (json.dumps({"query": "a" * 9000}).encode(), 413, "too_large: query has 9000 bytes, more than 8192"),
        (json.dumps({"query": "a" * 10_000_000}).encode(), 413, "too_large: "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_request_is_refused_by_name_and_harms_nobody(
    quickstart: LocalServer, body: bytes, status: int, message: str
) -> None:
    answer = quickstart.post(body)
    assert answer.status == status, answer
    assert message in answer.error
    assert len(answer.error) < 400
    assert quickstart.ask("what is a release?").status == 200


def test_a_call_that_is_not_served_names_those_that_are(quickstart: LocalServer) -> None:
    answer = quickstart.get("/v1/retrieve")
    assert answer is not None
    assert (answer.status, answer.body["error"]["code"]) == (404, "not_found")
    assert "POST /v1/retrieve" in answer.error


def test_a_state_folder_in_use_and_a_taken_port_are_refused(quickstart: LocalServer, tmp_path: Path) -> None:
    free, taken = f"127.0.0.1:{free_port()}", f"127.0.0.1:{quickstart.port}"
    twice = run_command("local", "-f", QUICKSTART, "--state", quickstart.state, "--listen", free)
    assert twice.returncode == 1
    assert twice.stderr == (
        f"{quickstart.state}: is in use by another `tidegate local`; stop that one, "
        "or choose another folder with --state\n"
    )
    port = run_command("local", "-f", QUICKSTART, "--state", tmp_path / "state", "--listen", taken)
    assert port.returncode == 1
    assert port.stderr == f"--listen {taken}: Address already in use; choose another address\n"
    assert quickstart.ask("what is a release?").status == 200


@pytest.mark.parametrize("part", ["indexer", "runtime", "sidecar"])
def test_a_killed_process_is_replaced_and_answers_come_back(quickstart: LocalServer, part: str) -> None:
    before = quickstart.children()
    printed = len(quickstart.output)
    kill_process(before[f"docs-{part}"])
    quickstart.until(
        lambda: quickstart.children().get(f"docs-{part}", before[f"docs-{part}"]) != before[f"docs-{part}"],
        f"another {part} runs",
    )
    quickstart.until_answered("what is a release?", lambda answer: answer.results, "answers come back")
    quickstart.until_printed(f"docs-{part} ended with signal SIGKILL and is started again", after=printed)
    quickstart.until(
        lambda: [each["phase"] for each in quickstart.state_of("docs-indexer")["revisions"]] == ["Ready"],
        "the indexer has its revision again",
    )
    others = {name: pid for name, pid in before.items() if name != f"docs-{part}"}
    assert others.items() <= quickstart.children().items()


def test_what_is_printed_is_few_and_readable_lines(quickstart: LocalServer, originals: dict[str, str]) -> None:
    quickstart.until_printed("answers at")
    lines = quickstart.output.splitlines()[:3]
    assert re.fullmatch(rf"docs-[0-9a-f]{{10}}: building, {len(originals)} documents", lines[0])
    assert re.fullmatch(rf"docs-[0-9a-f]{{10}}: {len(originals)} documents, \d+ chunks, ready in [\d.]+ s", lines[1])
    assert re.fullmatch(rf"docs: rel-[0-9a-f]{{10}} answers at {quickstart.url}", lines[2])
