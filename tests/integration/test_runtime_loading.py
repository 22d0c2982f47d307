"""The liveness probe is answered while models load and warm up: a loop that stands still would get the pod killed."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp import web
from tests.integration import test_runtime_http as lab

from tidegate_api.builtins import BUILTINS
from tidegate_api.config import IndexRef, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime import main
from tidegate_runtime.dataplane import DataPlane
from tidegate_runtime.engine import Engine
from tidegate_runtime.http import Endpoints
from tidegate_runtime.metrics import SearchMetrics
from tidegate_runtime.models.fake import FakeEmbedder
from tidegate_runtime.ports import ChunkRecord, DocumentKey, DocumentRecord, FloatVector, SourceRules
from tidegate_runtime.releases import Releases
from tidegate_runtime.revisions import LocalRevisions
from tidegate_runtime.stores.embedded import EmbeddedWriter
from tidegate_runtime.warmup import warm_up

# The probe's own.
PROBE_SECONDS = 3.0


class Gates:
    """Holds the thread that comes to a step until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = {step: threading.Event() for step in ("load", "warm")}
        self.open = {step: threading.Event() for step in ("load", "warm")}

    def pass_through(self, step: str) -> None:
        self.reached[step].set()
        assert self.open[step].wait(60)


class SlowEmbedder(FakeEmbedder):
    """Stops at its first inference."""

    def __init__(self, fingerprint: EmbedderFingerprint, gates: Gates) -> None:
        super().__init__(fingerprint)
        self._gates = gates

    def embed_query(self, text: str) -> FloatVector:
        self._gates.pass_through("warm")
        return super().embed_query(text)


@asynccontextmanager
async def runtime(folder: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Serve the parts of `main` in this process."""
    engine, metrics = Engine(), SearchMetrics()
    releases = Releases(
        revisions=LocalRevisions(folder / "revisions"),
        embedders=main.BuiltInEmbedders(threads=1),
        warm_up=lambda release: warm_up(engine, release, deadline_seconds=60),
    )
    dataplane = DataPlane(releases=releases, engine=engine, metrics=metrics)
    endpoints = Endpoints(dataplane=dataplane, releases=releases, metrics=metrics, process="p")
    runner = web.AppRunner(endpoints.application(), shutdown_timeout=0.1)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "r.sock")).start()
    try:
        async with lab.client(folder / "r.sock") as session:
            yield session
    finally:
        await runner.cleanup()
        await releases.close_all()
        engine.close()


async def is_alive(session: aiohttp.ClientSession) -> bool:
    async with asyncio.timeout(PROBE_SECONDS), session.get("/healthz") as answer:
        return answer.status == 200


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


async def test_the_probe_is_answered_while_an_encoder_loads_and_while_it_warms_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = Gates()

    def slow(fingerprint: EmbedderFingerprint, **_: Any) -> SlowEmbedder:
        gates.pass_through("load")
        return SlowEmbedder(fingerprint, gates)

    monkeypatch.setattr(main, "open_embedder", slow)
    lab.write(tmp_path / "revisions", lab.DOCUMENTS)
    async with runtime(tmp_path) as session:
        try:
            await lab.call(session, "/v1/open", lab.release().to_document())
            for step in ("load", "warm"):
                await until(gates.reached[step])
                assert await is_alive(session)
                _, _, state = await lab.call(session, "/v1/state")
                assert [each["phase"] for each in state["releases"]] == ["Loading"]
                gates.open[step].set()
            assert (await lab.until_settled(session))["phase"] == "Warm"
        finally:
            for gate in gates.open.values():
                gate.set()


@pytest.mark.models
async def test_the_probe_is_answered_all_along_while_real_weights_load(tmp_path: Path) -> None:
    shape = lab.SHAPE.model_copy(update={"embedder": BUILTINS["minilm"]})
    name = shape.revision_name("handbook")
    write(tmp_path / "revisions" / "handbook" / name, name, shape)
    config = ReleaseConfig.make(
        pipeline=PipelineConfig(knowledge_bases=["handbook"], nodes=lab.HYBRID, output="fused"),
        indexes=[IndexRef(knowledge_base="handbook", revision=name)],
        versions=Versions(runtime="0", sidecar="0"),
    )
    process = lab.start(tmp_path / "r.sock", tmp_path / "revisions")
    try:
        async with lab.client(tmp_path / "r.sock") as session:
            await lab.call(session, "/v1/open", config.to_document())
            settled = asyncio.create_task(lab.until_settled(session, config.name))
            probes = 0
            while not settled.done():
                assert await is_alive(session)
                probes += 1
            assert (await settled)["phase"] == "Warm"
            assert probes > 0
    finally:
        process.kill()
        process.communicate()


def write(folder: Path, revision: str, shape: Any) -> None:
    """Write a revision of one document whose vector no encoder made."""
    vector = np.eye(1, BUILTINS["minilm"].dimension, dtype=np.float32)[0]
    text = "Staff may take thirty days of leave in a year."
    chunk = ChunkRecord(ordinal=0, start=0, end=len(text), content=text, heading="", vector=vector)
    document = DocumentRecord(
        key=DocumentKey("policies", "leave.md"), content_hash="1", title="leave", chunks=(chunk,), metadata={}
    )
    writer = EmbeddedWriter.open(folder, revision=revision, shape=shape)
    try:
        writer.commit(upserts=[document], rules={"policies": SourceRules(tenants=("*",), metadata={})})
        writer.mark_ready(dense=True)
    finally:
        writer.close()
