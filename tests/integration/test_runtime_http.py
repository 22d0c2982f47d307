"""The runtime as a process of its own: real store, real socket, an encoder that needs no weights."""

import asyncio
import io
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tidegate_api.config import IndexRef, NodeConfig, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.shape import ALGORITHMS, ChunkingShape, RevisionShape
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.ports import ChunkRecord, DocumentKey, DocumentRecord, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedWriter

DOCUMENTS = {
    "leave.md": "Staff may take thirty days of leave in a year.",
    "travel.md": "Travel is booked through the portal and paid by the company.",
    "secret.md": "The acme tenant pays for travel itself.",
}
SHAPE = RevisionShape(
    language="en",
    chunking=ChunkingShape(strategy="markdown", size_tokens=200, overlap_tokens=0),
    embedder=FAKE_FINGERPRINT,
    metadata_schema={"year": "number"},
    algorithms=ALGORITHMS,
)
REVISION = SHAPE.revision_name("handbook")
HYBRID = [
    NodeConfig(name="lexical", type="bm25"),
    NodeConfig(name="dense", type="dense"),
    NodeConfig(name="fused", type="fuse", inputs=["lexical", "dense"]),
]


def record(name: str, text: str) -> DocumentRecord:
    chunk = ChunkRecord(
        ordinal=0,
        start=0,
        end=len(text),
        content=text,
        heading="",
        vector=FakeEmbedder().embed_passages([text])[0],
    )
    return DocumentRecord(
        key=DocumentKey("policies", name),
        content_hash=text,
        title=name.removesuffix(".md"),
        chunks=(chunk,),
        metadata={"year": 2026},
        tenants=("acme",) if name.startswith("secret") else None,
    )


def write(root: Path, documents: dict[str, str]) -> int:
    writer = EmbeddedWriter.open(root / "handbook" / REVISION, revision=REVISION, shape=SHAPE)
    try:
        generation = writer.commit(
            upserts=[record(name, text) for name, text in documents.items()],
            rules={"policies": SourceRules(tenants=("*",), metadata={})},
        )
        writer.mark_ready(dense=True)
    finally:
        writer.close()
    return generation


def release() -> ReleaseConfig:
    return ReleaseConfig.make(
        pipeline=PipelineConfig(knowledge_bases=["handbook"], nodes=HYBRID, output="fused"),
        indexes=[IndexRef(knowledge_base="handbook", revision=REVISION)],
        versions=Versions(runtime="0", sidecar="0"),
    )


def start(path: Path, root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tidegate_runtime", "--socket", str(path), "--revisions-root", str(root)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


@asynccontextmanager
async def client(path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession("http://runtime", connector=aiohttp.UnixConnector(str(path))) as session:
        async with asyncio.timeout(30):
            while True:
                try:
                    async with session.get("/healthz") as answer:
                        assert answer.status == 200
                        break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.02)
        yield session


async def call(session: aiohttp.ClientSession, path: str, body: Any = None) -> tuple[int, Any, Any]:
    method = "GET" if body is None else "POST"
    data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    async with session.request(method, path, data=data) as answer:
        return answer.status, answer.headers, await answer.json(content_type=None)


async def until_settled(session: aiohttp.ClientSession, name: str | None = None) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while True:
            _, _, state = await call(session, "/v1/state")
            mine = next(each for each in state["releases"] if each["name"] == (name or release().name))
            if mine["phase"] != "Loading":
                return dict(mine)
            await asyncio.sleep(0.02)


def search(**members: Any) -> dict[str, Any]:
    request = {
        "query_id": "q-1",
        "release": release().name,
        "query": "days of leave in a year",
        "scope": {},
        "deadline_ms": 20_000,
    }
    return {**request, **members}


@dataclass
class Place:
    """A runtime process, its socket and the folder of its revisions."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def root(self) -> Path:
        return self.folder / "revisions"

    @property
    def socket(self) -> Path:
        return self.folder / "r.sock"


@contextmanager
def running(folder: Path) -> Iterator[Place]:
    write(folder / "revisions", DOCUMENTS)
    process = start(folder / "r.sock", folder / "revisions")
    try:
        yield Place(folder, process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One process for all tests that leave it as they found it."""
    with running(tmp_path_factory.mktemp("shared")) as place:
        yield place


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Place]:
    """A process for a test that changes or ends it."""
    with running(tmp_path) as place:
        yield place


@pytest.fixture
async def session(shared: Place) -> AsyncIterator[aiohttp.ClientSession]:
    async with client(shared.socket) as opened:
        yield opened


async def open_release(session: aiohttp.ClientSession) -> dict[str, Any]:
    await call(session, "/v1/open", release().to_document())
    return await until_settled(session)


async def test_an_opened_release_answers(session: aiohttp.ClientSession) -> None:
    status, _, state = await call(session, "/v1/open", release().to_document())
    assert status == 200
    assert release().name in {each["name"] for each in state["releases"]}
    warm = await until_settled(session)
    assert (warm["phase"], warm["contentGenerations"]) == ("Warm", {"handbook": 1})

    status, headers, answer = await call(session, "/v1/search", search())
    assert status == 200
    assert headers["x-tidegate-results"] == str(len(answer["results"]))
    assert "x-tidegate-degraded" not in headers
    best = answer["results"][0]
    assert (best["document_id"], best["title"], best["content"]) == ("leave.md", "leave", DOCUMENTS["leave.md"])
    assert (best["knowledge_base"], best["revision"], best["score_kind"]) == ("handbook", REVISION, "fused")
    assert best["location"] == {"start": 0, "end": len(DOCUMENTS["leave.md"])}
    assert best["metadata"] == {"year": 2026}
    assert "scores" not in best
    assert answer["degraded"] == []


async def test_documents_of_a_tenant_are_not_there_for_others(session: aiohttp.ClientSession) -> None:
    await open_release(session)
    seen = {}
    for tenant in (None, "acme", "other"):
        _, _, answer = await call(session, "/v1/search", search(query="travel", scope={"tenant": tenant}))
        seen[tenant] = {result["document_id"] for result in answer["results"]}
    assert seen == {None: {"leave.md", "travel.md"}, "acme": set(DOCUMENTS), "other": {"leave.md", "travel.md"}}


async def test_an_edit_reaches_answers_without_a_restart(own: Place) -> None:
    async with client(own.socket) as session:
        await open_release(session)
        generation = write(own.root, {"leave.md": "Staff may take forty days of leave in a year."})
        _, _, answer = await call(session, "/v1/search", search())
    assert answer["results"][0]["content"].startswith("Staff may take forty")
    assert {result["content_generation"] for result in answer["results"]} == {generation}


async def test_a_degraded_answer_says_so_in_a_header(session: aiohttp.ClientSession) -> None:
    await open_release(session)
    status, headers, answer = await call(session, "/v1/search", search(query="   "))
    assert status == 200
    assert headers["x-tidegate-degraded"] == "dense=error"
    assert headers["x-tidegate-results"] == "0"
    assert answer["degraded"][0]["node"] == "dense"


async def test_closing_ends_a_release(session: aiohttp.ClientSession) -> None:
    await open_release(session)
    _, _, state = await call(session, "/v1/close", {"release": release().name})
    assert release().name not in {each["name"] for each in state["releases"]}
    status, _, answer = await call(session, "/v1/search", search())
    assert (status, answer["error"]["code"]) == (503, "release_unavailable")


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("handbook-none", "no revision is here yet"),
        ("../../etc", "is no name of a knowledge base or revision"),
    ],
)
async def test_a_revision_that_is_not_there_fails_with_the_reason(
    session: aiohttp.ClientSession, revision: str, said: str
) -> None:
    name = f"rel-{len(revision)}"
    indexes = [{"knowledgeBase": "handbook", "revision": revision}]
    await call(session, "/v1/open", {**release().to_document(), "name": name, "indexes": indexes})
    failed = await until_settled(session, name)
    assert failed["phase"] == "Failed"
    assert said in failed["message"]


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "said"),
    [
        ("/v1/search", search(limit=3), 400, "invalid_request", "limit: "),
        ("/v1/search", b"{", 400, "invalid_request", "body: "),
        ("/v1/search", search(top_k=0), 400, "invalid_request", "top_k is 0; ask for 1 to 1000"),
        ("/v1/search", search(knowledge_bases=["hr"]), 400, "invalid_request", "names hr; this release has handbook"),
        (
            "/v1/search",
            search(filters={"type": "eq", "key": "colour", "value": "red"}),
            400,
            "invalid_request",
            "colour",
        ),
        ("/v1/search", search(release="rel-0"), 503, "release_unavailable", "rel-0 is not open"),
        ("/v1/open", {"name": "rel-0"}, 400, "invalid_request", "pipeline: "),
        ("/v1/close", {}, 400, "invalid_request", "release: "),
        ("/v1/nothing", {}, 404, "not_found", "POST /v1/nothing"),
    ],
)
async def test_an_error_has_a_closed_code_and_says_what_is_wrong(
    session: aiohttp.ClientSession, path: str, body: Any, status: int, code: str, said: str
) -> None:
    await open_release(session)
    answered, _, answer = await call(session, path, body)
    assert (answered, answer["error"]["code"]) == (status, code)
    assert said in answer["error"]["message"]
    assert "Traceback" not in answer["error"]["message"]


async def test_a_body_that_is_too_large_is_refused(session: aiohttp.ClientSession, shared: Place) -> None:
    await open_release(session)
    # By hand: an aiohttp session ends before its transport has got rid of what the server did not read.
    body = b" " * (5 << 20)
    reader, writer = await asyncio.open_unix_connection(shared.socket)
    try:
        writer.write(b"POST /v1/search HTTP/1.1\r\nHost: runtime\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        async with asyncio.timeout(30):
            answer = await reader.readuntil(b"}}")
        head, _, said = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 413 ")
        error = json.loads(said)["error"]
        assert error["code"] == "too_large"
        assert "send less" in error["message"]
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def test_metrics_count_searches_and_nodes(session: aiohttp.ClientSession) -> None:
    await open_release(session)
    await call(session, "/v1/search", search())
    async with session.get("/metrics") as answer:
        text = await answer.text()
    assert re.search(r'tidegate_searches_total\{outcome="ok"\} [1-9]', text)
    assert re.search(r'tidegate_node_seconds_count\{node="fused"\} [1-9]', text)


async def test_sigterm_lets_running_requests_end_and_exits_with_zero(own: Place) -> None:
    async with client(own.socket) as session:
        await open_release(session)
        asked = [asyncio.ensure_future(call(session, "/v1/search", search())) for _ in range(20)]
        await asked[0]
        own.process.send_signal(signal.SIGTERM)
        for status, _, answer in await asyncio.gather(*asked[1:]):
            assert (status, bool(answer["results"])) == (200, True)
    assert await asyncio.to_thread(own.process.wait, 30) == 0
    assert not own.socket.exists()


async def test_the_socket_is_for_its_user_and_group_and_replaces_a_left_over(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "r.sock"))
    with running(tmp_path) as place:
        async with client(place.socket):
            assert stat.S_IMODE(os.stat(place.socket).st_mode) == 0o660


async def test_a_second_runtime_on_the_same_socket_gives_up(session: aiohttp.ClientSession, shared: Place) -> None:
    second = start(shared.socket, shared.root)
    _, said = await asyncio.to_thread(second.communicate, timeout=60)
    assert second.returncode == 1
    assert b"another process answers on --socket" in said
    assert (await call(session, "/v1/state"))[0] == 200


@pytest.mark.parametrize("name", ["file", "missing/r.sock"])
def test_a_socket_path_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("not a socket")
    process = start(tmp_path / name, tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    line = json.loads(said)
    assert (line["message"], line["socket"]) == ("cannot listen", str(tmp_path / name))
    assert line["reason"]
    assert (tmp_path / "file").read_text() == "not a socket"
