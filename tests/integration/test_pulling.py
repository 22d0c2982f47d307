"""Copying revisions from a real indexer server over a real socket, with the failures of the way."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tidegate_api.config import IndexerState, IndexRef, RevisionState
from tidegate_api.shape import ChunkingShape, RevisionShape
from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.indexer.server import IndexerServer
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.ports import ChunkRecord, DocumentKey, DocumentRecord, Permission, SourceRules
from tidegate_runtime.pulling import Origin, PulledRevisions
from tidegate_runtime.stores.embedded import EmbeddedWriter

SHAPE = RevisionShape(
    language="en",
    chunking=ChunkingShape(strategy="markdown", size_tokens=200, overlap_tokens=24),
    embedder=FAKE_FINGERPRINT,
    algorithms={"markdown": "markdown/1", "analyzer": "analyzer/1", "embedded": "embedded/1"},
)
INDEX = IndexRef(knowledge_base="docs", revision=SHAPE.revision_name("docs"))


class Indexer:
    """A writer and the server of its folder, on a port of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root / "indexer"
        self.token_file = root / "token"
        self.token_file.write_text("secret\n")
        self.writer = EmbeddedWriter.open(self.root / INDEX.revision, revision=INDEX.revision, shape=SHAPE)
        self.refuse = False
        self.corrupt = False
        self.origin = Origin("http://unset", self.token_file)

    def put(self, *texts: str) -> int:
        embedder = FakeEmbedder()
        records = [
            DocumentRecord(
                key=DocumentKey("files", f"{text}.md"),
                content_hash=text,
                title=text,
                chunks=(ChunkRecord(0, 0, len(text), text, "", embedder.embed_passages([text])[0]),),
            )
            for text in texts
        ]
        return self.writer.commit(upserts=records, rules={"files": SourceRules(("*",), {})})

    def state(self) -> IndexerState:
        return IndexerState(process="p", revisions=[RevisionState(name=INDEX.revision, phase="Ready", language="en")])

    @web.middleware
    async def faults(self, request: web.Request, handler: object) -> web.StreamResponse:
        if self.refuse:
            return web.Response(status=503)
        if self.corrupt and "/files/" in request.path:
            return web.Response(body=b"something else")
        return await handler(request)  # type: ignore[operator]

    def application(self) -> web.Application:
        application = IndexerServer(state=self.state, root=self.root, token_file=self.token_file).application()
        application.middlewares.append(self.faults)
        return application


@pytest.fixture
async def indexer(tmp_path: Path) -> AsyncIterator[Indexer]:
    indexer = Indexer(tmp_path)
    indexer.put("harbour", "lighthouse")
    indexer.writer.mark_ready(dense=True)
    runner = web.AppRunner(indexer.application(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    indexer.origin = Origin(f"http://127.0.0.1:{runner.addresses[0][1]}", indexer.token_file)
    yield indexer
    await runner.cleanup()
    indexer.writer.close()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def found(snapshot: object, query: str) -> list[str]:
    selection = snapshot.select(Permission(), None)  # type: ignore[attr-defined]
    rows = snapshot.lexical(snapshot.analyse(query), selection, top_k=10).rows  # type: ignore[attr-defined]
    return [chunk.content for chunk in snapshot.chunks(rows)]  # type: ignore[attr-defined]


async def test_a_copied_revision_answers_and_follows_edits_and_deletions(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    revisions = PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session)
    reader = await revisions.open(INDEX)
    assert found(reader.snapshot(), "harbour") == ["harbour"]
    generation = indexer.put("breakwater")
    async with asyncio.timeout(20):
        while reader.snapshot().content_generation != generation:
            await asyncio.sleep(0.05)
    assert found(reader.snapshot(), "breakwater") == ["breakwater"]
    generation = indexer.writer.commit(deletes=[DocumentKey("files", "harbour.md")])
    async with asyncio.timeout(20):
        while reader.snapshot().content_generation != generation:
            await asyncio.sleep(0.05)
    assert found(reader.snapshot(), "harbour") == []
    reader.close()


async def test_an_indexer_that_is_away_leaves_the_copy_serving_and_is_found_again(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    revisions = PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session)
    reader = await revisions.open(INDEX)
    indexer.refuse = True
    generation = indexer.put("breakwater")
    await asyncio.sleep(0)
    assert found(reader.snapshot(), "harbour") == ["harbour"]
    indexer.refuse = False
    async with asyncio.timeout(30):
        while reader.snapshot().content_generation != generation:
            await asyncio.sleep(0.05)
    reader.close()


async def test_a_second_start_fetches_no_file_again(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    first = await PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session).open(INDEX)
    first.close()
    indexer.corrupt = True
    second = await PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session).open(INDEX)
    assert found(second.snapshot(), "lighthouse") == ["lighthouse"]
    second.close()


async def test_another_digest_is_refused_and_leaves_nothing(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    indexer.corrupt = True
    revisions = PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session)
    with pytest.raises(RevisionUnavailableError, match="another digest"):
        await revisions.open(INDEX)
    assert list((tmp_path / "pod" / "docs" / INDEX.revision).iterdir()) == []


@pytest.mark.parametrize(
    ("token", "knowledge_base", "message"),
    [
        ("wrong", "docs", "bearer token is not the indexer's"),
        ("secret", "other", "no indexer is known for knowledge base 'other'"),
    ],
)
async def test_what_cannot_be_copied_says_why(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path, token: str, knowledge_base: str, message: str
) -> None:
    ours = tmp_path / "our-token"
    ours.write_text(token)
    revisions = PulledRevisions(tmp_path / "pod", origins={"docs": Origin(indexer.origin.url, ours)}, session=session)
    with pytest.raises(RevisionUnavailableError, match=message):
        await revisions.open(IndexRef(knowledge_base=knowledge_base, revision=INDEX.revision))


async def test_a_revision_that_is_not_proven_is_not_copied(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    revisions = PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session)
    with pytest.raises(RevisionUnavailableError, match="404 for revision docs-0000000000; it is not built there"):
        await revisions.open(IndexRef(knowledge_base="docs", revision="docs-0000000000"))


async def test_names_that_lead_elsewhere_are_refused(
    indexer: Indexer, session: aiohttp.ClientSession, tmp_path: Path
) -> None:
    revisions = PulledRevisions(tmp_path / "pod", origins={"docs": indexer.origin}, session=session)
    with pytest.raises(RevisionUnavailableError, match="is no name of a knowledge base or revision"):
        await revisions.open(IndexRef(knowledge_base="docs", revision="../../etc"))
