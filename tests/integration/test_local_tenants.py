"""examples/tenants under `tidegate local`: who sees what, and keys that change while it runs."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.local_server import Answer, LocalServer, Object, replace, running

pytestmark = [pytest.mark.models, pytest.mark.timeout(400)]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tenants" / "tenants.yaml"
ACME, GLOBEX = "acme-key", "globex-key"
BONUS = "When is the yearly bonus paid?"


class Tenants:
    """The example, running from a copy that can be edited."""

    def __init__(self, server: LocalServer) -> None:
        self.server = server
        self.original = EXAMPLE.read_text(encoding="utf-8")

    def edit(self, change: Callable[[dict[tuple[str, str], Object]], None]) -> None:
        """Apply `change` to the objects of the example, by kind and name."""
        objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(self.original)}
        change(objects)
        replace(self.server.files / "tenants.yaml", yaml.safe_dump_all(objects.values()))

    def set_keys(self, **entries: str) -> None:
        """Replace the entries of the key Secret."""
        self.edit(lambda objects: objects["Secret", "handbook-keys"].update(stringData=entries))

    def set_readers(self, source: str, *tenants: str) -> None:
        """Replace the tenants of one source."""

        def change(objects: dict[tuple[str, str], Object]) -> None:
            sources = objects["KnowledgeBase", "handbook"]["spec"]["sources"]
            next(each for each in sources if each["name"] == source)["tenants"] = list(tenants)

        self.edit(change)

    def trust_a_proxy(self, secret: str, *more: Object) -> None:
        """Let the pipeline believe identity headers beside the entry `secret` of the Secret of this name."""

        def change(objects: dict[tuple[str, str], Object]) -> None:
            auth = objects["RetrievalPipeline", "handbook"]["spec"]["auth"]
            auth["trustedHeaders"] = {"secretRef": {"name": secret}}
            objects.update({(each["kind"], each["metadata"]["name"]): each for each in more})

        self.edit(change)

    def restore(self) -> None:
        """Put the example back and wait until it is in force."""
        replace(self.server.files / "tenants.yaml", self.original)
        self.server.until_answered(
            BONUS, lambda found: sees(found, "acme", "leave.md"), "the example answers", key=ACME
        )
        self.server.until_answered(
            BONUS, lambda found: sees(found, "globex", "leave.md"), "the example answers", key=GLOBEX
        )


def sees(answer: Answer, source: str, document: str) -> bool:
    return source in {result["source"] for result in answer.results} and document in answer.documents


def key_entry(key: str, *tenants: str, scopes: tuple[str, ...] = ("query",), **more: Any) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return json.dumps({"sha256": digest, "tenants": tenants, "scopes": scopes, **more})


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    folder = tmp_path_factory.mktemp("tenants")
    (folder / "files").mkdir()
    shutil.copy(EXAMPLE, folder / "files")
    with running(LocalServer(folder, folder / "files")) as server:
        yield Tenants(server)


@pytest.fixture
def edited(tenants: Tenants) -> Iterator[Tenants]:
    yield tenants
    tenants.restore()


def test_each_key_sees_what_is_for_everybody_and_for_its_tenant(tenants: Tenants) -> None:
    for key, own, other in ((ACME, "Acme", "globex"), (GLOBEX, "Globex", "acme")):
        answer = tenants.server.ask(BONUS, key=key, top_k=50)
        assert answer.documents[0] == "bonus.md"
        assert own in answer.results[0]["content"]
        assert {"leave.md", "travel.md"} < set(answer.documents)
        assert other not in json.dumps(answer.body).lower()


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({}, 401, "unauthenticated: no credential; send authorization: Bearer <key>"),
        ({"authorization": "Bearer nobody"}, 401, "unauthenticated: the key is not known"),
        ({"authorization": "Basic YTpi"}, 401, "unauthenticated: header authorization must be `Bearer <key>`"),
        ({"x-tidegate-tenant": "acme"}, 401, "unauthenticated: no credential"),
        (
            {"authorization": f"Bearer {ACME}", "x-tidegate-tenant": "globex"},
            403,
            "forbidden: unknown tenant 'globex'; name one that this credential speaks for",
        ),
        ({"authorization": f"Bearer {ACME}", "x-tidegate-tenant": "*"}, 403, "forbidden: unknown tenant '*'"),
        ({"authorization": f"Bearer {ACME}", "x-tidegate-release": "rel-0123456789"}, 403, "forbidden: "),
    ],
)
def test_a_wrong_credential_is_refused_with_the_next_step(
    tenants: Tenants, headers: dict[str, str], status: int, message: str
) -> None:
    answer = tenants.server.ask(BONUS, headers=headers)
    assert (answer.status, answer.results) == (status, [])
    assert message in answer.error
    assert ACME not in answer.error


def test_scores_are_explained_to_keys_with_the_scope_alone(tenants: Tenants) -> None:
    refused = tenants.server.ask(BONUS, key=GLOBEX, explain=True)
    assert (refused.status, refused.body["error"]["code"]) == (403, "forbidden")
    answer = tenants.server.ask(BONUS, key=ACME, explain=True)
    assert answer.status == 200
    for result in answer.results:
        assert set(result["scores"]) == {"bm25", "dense", "fused"}
        assert result["scores"]["fused"] == result["score"]


def test_filters_select_by_metadata_inside_what_the_caller_may_see(tenants: Tenants) -> None:
    def found(caller: str, **filters: Any) -> set[str]:
        answer = tenants.server.ask(BONUS, key=caller, filters=filters, top_k=50)
        assert answer.status == 200, answer
        return {f"{result['source']}/{result['document_id']}" for result in answer.results}

    policies = {"policies/leave.md", "policies/travel.md"}
    assert found(ACME, type="eq", key="department", value="finance") == {"acme/bonus.md"}
    assert found(GLOBEX, type="eq", key="department", value="hr") == policies
    assert found(GLOBEX, type="in", key="department", value=["hr", "finance"]) == policies | {"globex/bonus.md"}
    either = [{"type": "eq", "key": "department", "value": value} for value in ("hr", "finance")]
    assert found(ACME, type="or", filters=either) == policies | {"acme/bonus.md"}
    assert found(ACME, type="and", filters=either) == set()
    unknown = tenants.server.ask(BONUS, key=ACME, filters={"type": "eq", "key": "colour", "value": "red"})
    assert unknown.status == 400
    assert "colour" in unknown.error
    assert "department" in unknown.error


def test_tenants_that_ask_at_once_never_see_each_other(tenants: Tenants) -> None:
    def asked(key: str) -> tuple[str, str]:
        return key, json.dumps(tenants.server.ask(BONUS, key=key, top_k=50).body)

    with ThreadPoolExecutor(16) as pool:
        for key, body in pool.map(asked, [ACME, GLOBEX] * 30):
            own, other = ("Acme", "Globex") if key == ACME else ("Globex", "Acme")
            assert own in body
            assert other not in body


def test_tenants_of_a_source_change_at_once_and_without_a_rebuild(edited: Tenants) -> None:
    server = edited.server
    before = server.ask(BONUS, key=GLOBEX, top_k=50)
    edited.set_readers("acme", "acme", "globex")
    after = server.until_answered(BONUS, lambda answer: sees(answer, "acme", "leave.md"), "globex sees it", key=GLOBEX)
    assert after.body["release"] == before.body["release"]
    assert after.results[0]["revision"] == before.results[0]["revision"]
    assert after.results[0]["content_generation"] > before.results[0]["content_generation"]
    edited.set_readers("acme", "initech")
    for key in (ACME, GLOBEX):
        server.until_answered(BONUS, lambda answer: not sees(answer, "acme", "leave.md"), "nobody sees it", key=key)


def test_keys_rotate_without_a_restart_and_one_broken_entry_costs_no_other_key(edited: Tenants) -> None:
    server = edited.server
    children, printed = server.children(), len(server.output)
    edited.set_keys(
        acme=key_entry("new-acme-key", "acme"),
        both=key_entry("both-key", "acme", "globex"),
        broken='{"sha256": "abc", "tenants": ["acme"]}',
        late=key_entry("late-key", "acme", notAfter="2020-01-01T00:00:00Z"),
    )
    server.until_answered(BONUS, lambda answer: sees(answer, "acme", "leave.md"), "the new key", key="new-acme-key")
    assert server.ask(BONUS, key=ACME).status == 401, "the old key is gone"
    # Entries are written one after the other, this one last.
    told = "unauthenticated: the key has expired; ask for a new one"
    server.until(lambda: server.ask(BONUS, key="late-key").error == told, "the late key has expired")
    unnamed = server.ask(BONUS, key="both-key")
    assert unnamed.status == 400
    assert "this key speaks for several tenants; name one in header x-tidegate-tenant" in unnamed.error
    for tenant, other in (("acme", "Globex"), ("globex", "Acme")):
        answer = server.ask(BONUS, key="both-key", headers={"x-tidegate-tenant": tenant}, top_k=50)
        assert sees(answer, tenant, "leave.md")
        assert other not in json.dumps(answer.body)
    server.until_printed("handbook: key 'broken': field sha256 must be 64 lower-case hex digits", after=printed)
    assert server.children() == children, "nothing was restarted"


def test_without_a_usable_key_the_pipeline_is_not_ready_and_says_why(edited: Tenants) -> None:
    server = edited.server
    printed = len(server.output)
    edited.set_keys(acme="not json")
    server.until(lambda: (found := server.get("/readyz")) is not None and found.status == 503, "it is not ready")
    answer = server.get("/readyz")
    assert answer is not None
    assert "key 'acme': the entry is not a JSON object" in answer.error
    server.until_printed("handbook: not ready: key 'acme': the entry is not a JSON object", after=printed)
    assert server.ask(BONUS, key=ACME).status == 401


def test_a_proxy_is_believed_beside_its_secret_alone(edited: Tenants) -> None:
    server = edited.server
    printed = len(server.output)
    edited.trust_a_proxy("handbook-keys")
    server.until_printed("Secret 'handbook-keys' has no entry 'secret': add it under stringData", after=printed)
    assert server.ask(BONUS, key=ACME).status == 200, "what was before stays in force"

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "proxy"}, "stringData": {"secret": "s3cret"}}
    edited.trust_a_proxy("proxy", secret)
    trusted = {"x-tidegate-proxy-secret": "s3cret", "x-tidegate-tenant": "globex", "x-tidegate-user": "ann"}
    server.until_answered(BONUS, lambda answer: sees(answer, "globex", "leave.md"), "the proxy", headers=trusted)
    wrong = server.ask(BONUS, headers={**trusted, "x-tidegate-proxy-secret": "guess"})
    assert wrong.status == 401
    assert "x-tidegate-proxy-secret is wrong; the identity headers are not believed" in wrong.error
    unknown = server.ask(BONUS, headers={**trusted, "x-tidegate-tenant": "initech"}, top_k=50)
    assert {result["source"] for result in unknown.results} == {"policies"}, (
        "a tenant nobody knows sees the public part"
    )
    assert server.ask(BONUS, headers={**trusted, "x-tidegate-tenant": "*"}).status == 403
    assert sees(server.ask(BONUS, key=ACME), "acme", "leave.md")
