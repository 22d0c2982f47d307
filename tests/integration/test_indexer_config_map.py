"""An indexer's config from the API server: every version once, broken ones refused, outages survived."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.api_server import ApiServer, running_api_server

from tidegate_api.config import INDEXER_CONFIG_KEY, IndexerState
from tidegate_link.client import ApiClient, Endpoint
from tidegate_runtime.indexer import telling
from tidegate_runtime.indexer.config_map import ConfigMapConfigSource
from tidegate_runtime.indexer.config_source import FileConfigSource

PATH = "/api/v1/namespaces/acme/configmaps/docs-indexer"


def config(sync: str) -> str:
    return json.dumps({"knowledgeBase": "docs", "namespace": "acme", "language": "en", "sources": [], "sync": sync})


def put(api: ApiServer, document: str | None) -> None:
    data = {} if document is None else {INDEXER_CONFIG_KEY: document}
    api.put(PATH, {"metadata": {"name": "docs-indexer"}, "data": data})


@pytest.fixture
async def running() -> AsyncIterator[tuple[ApiServer, Endpoint]]:
    async with running_api_server() as server:
        yield server


async def sync_is(source: ConfigMapConfigSource, wanted: str) -> None:
    async with asyncio.timeout(10):
        while (found := source.read()) is None or found.sync != wanted:
            await asyncio.sleep(0.01)


async def test_the_api_server_goes_before_the_mounted_copy(running: tuple[ApiServer, Endpoint], tmp_path: Path) -> None:
    api, endpoint = running
    (tmp_path / "config.json").write_text(config("mounted"))
    source = ConfigMapConfigSource(FileConfigSource(tmp_path / "config.json"), namespace="acme", name="docs-indexer")
    await sync_is(source, "mounted")
    put(api, config("one"))
    async with ApiClient(endpoint) as client:
        task = asyncio.create_task(source.follow(client))
        await sync_is(source, "one")
        put(api, config("two"))
        await sync_is(source, "two")
        assert source.problem == ""
        task.cancel()


@pytest.mark.parametrize("broken", ["{", '{"knowledgeBase": "docs"}', None])
async def test_what_cannot_be_obeyed_leaves_the_last_good_one(
    running: tuple[ApiServer, Endpoint], tmp_path: Path, broken: str | None
) -> None:
    api, endpoint = running
    source = ConfigMapConfigSource(FileConfigSource(tmp_path / "absent"), namespace="acme", name="docs-indexer")
    put(api, config("one"))
    async with ApiClient(endpoint) as client:
        task = asyncio.create_task(source.follow(client))
        await sync_is(source, "one")
        put(api, broken)
        async with asyncio.timeout(10):
            while not source.problem:
                await asyncio.sleep(0.01)
        assert "the last good" in source.problem
        assert source.read() is not None
        task.cancel()


async def test_news_touch_the_config_map_once_and_again_after_an_outage(
    running: tuple[ApiServer, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(telling, "RETRY_SECONDS", 0.01)
    api, endpoint = running
    put(api, config("one"))
    state = IndexerState(process="")

    def touched() -> str:
        return str(api.objects[PATH]["metadata"].get("annotations", {}).get(telling.ANNOTATION, ""))

    async def until(wanted: IndexerState) -> None:
        async with asyncio.timeout(10):
            while touched() != telling.news(wanted):
                await asyncio.sleep(0.01)

    async with ApiClient(endpoint) as client:
        task = asyncio.create_task(telling.keep_telling(client, ("acme", "docs-indexer"), state=lambda: state))
        state = IndexerState(process="p", message="source 'docs' is gone")
        await until(state)
        version = api.version
        asked = len(api.tokens)
        api.refuse_with = 503
        state = IndexerState(process="p")
        async with asyncio.timeout(10):
            while len(api.tokens) < asked + 2:
                await asyncio.sleep(0.01)
        api.refuse_with = 0
        await until(state)
        assert api.version == version + 1
        task.cancel()
    assert api.objects[PATH]["data"] == {INDEXER_CONFIG_KEY: config("one")}
