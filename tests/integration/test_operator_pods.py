"""Asking pods: answers are bounded in time and size, and silence is an answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from tidegate_api.config import IndexerState, SidecarState
from tidegate_operator.adapters import pods
from tidegate_operator.adapters.pods import PodPlanes
from tidegate_operator.core.render.service import Port

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def answer_with(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[Handler], Awaitable[None]]]:
    """Return a function that lets 127.0.0.1 answer for a sidecar."""
    runners: list[web.AppRunner] = []
    monkeypatch.setattr(pods, "SIDECAR_SECONDS", 0.3)

    async def start(handler: Handler) -> None:
        application = web.Application()
        application.add_routes([web.get("/v1/state", handler)])
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        monkeypatch.setattr(pods, "STATE_PORT", Port("state", int(runner.addresses[0][1])))

    yield start
    for runner in runners:
        await runner.cleanup()


async def asked() -> dict[str, SidecarState]:
    async with PodPlanes.open() as planes:
        return dict(await planes.sidecars({"pod-1": "127.0.0.1"}))


async def test_a_state_is_read(answer_with: Callable[[Handler], Awaitable[None]]) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(SidecarState(process="p", table_version=3).to_document())

    await answer_with(handler)
    assert (await asked())["pod-1"].table_version == 3


async def test_a_large_state_that_comes_in_pieces_is_read_whole(
    answer_with: Callable[[Handler], Awaitable[None]],
) -> None:
    text = SidecarState(process="p", message="x" * 300_000).model_dump_json(by_alias=True).encode()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(text), 50_000):
            await response.write(text[start : start + 50_000])
            await asyncio.sleep(0)
        return response

    await answer_with(handler)
    assert len((await asked())["pod-1"].message) == 300_000


@pytest.mark.parametrize("case", ["slow", "error", "garbage", "redirect", "endless"])
async def test_anything_else_is_silence(answer_with: Callable[[Handler], Awaitable[None]], case: str) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        match case:
            case "slow":
                await asyncio.sleep(30)
            case "error":
                return web.Response(status=503)
            case "redirect":
                raise web.HTTPFound("http://127.0.0.1:1/")
            case "endless":
                response = web.StreamResponse()
                await response.prepare(request)
                while True:
                    await response.write(b"x" * 65536)
        return web.Response(text="not a state")

    await answer_with(handler)
    assert await asked() == {}


async def test_a_pod_that_is_not_there_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "STATE_PORT", Port("state", 1))
    assert await asked() == {}


async def test_an_indexer_whose_name_is_not_known_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "INDEXER_SECONDS", 0.3)
    async with PodPlanes.open() as planes:
        found: IndexerState | None = await planes.indexer("no-such-namespace", "docs")
    assert found is None
