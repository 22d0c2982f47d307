"""Where a sidecar's routing table comes from in a pod: the API server first, the mounted copy when it is away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.api_server import ApiServer, running_api_server

from tidegate_api.config import TABLE_KEY
from tidegate_link.client import Endpoint
from tidegate_sidecar.adapters import table_config_map
from tidegate_sidecar.adapters.table_config_map import TableConfigMap, TablePlace

PATH = "/api/v1/namespaces/acme/configmaps/docs-routing"


class Offered:
    """What was handed over, and what was said of the link."""

    def __init__(self) -> None:
        self.documents: asyncio.Queue[tuple[bytes | None, str]] = asyncio.Queue()
        self.link: list[str] = []

    async def offer(self, document: bytes | None, origin: str) -> None:
        self.documents.put_nowait((document, origin))

    async def next(self) -> tuple[bytes | None, str]:
        return await asyncio.wait_for(self.documents.get(), 10)


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ApiServer, Endpoint]]:
    monkeypatch.setattr(table_config_map, "MOUNTED_COPY_AFTER_SECONDS", 0.3)
    async with running_api_server() as running:
        yield running


@pytest.fixture
async def offered() -> Offered:
    return Offered()


def put(api: ApiServer, table: str) -> None:
    api.put(PATH, {"metadata": {"name": "docs-routing"}, "data": {TABLE_KEY: table}})


async def follow(endpoint: Endpoint, mounted: Path, offered: Offered) -> "asyncio.Task[None]":
    source = TableConfigMap(endpoint, TablePlace("acme", "docs-routing", mounted), offered.link.append)
    return asyncio.create_task(source.follow(offered.offer))


async def test_the_table_and_its_changes_come_from_the_api_server(
    server: tuple[ApiServer, Endpoint], offered: Offered, tmp_path: Path
) -> None:
    api, endpoint = server
    (tmp_path / TABLE_KEY).write_text("mounted")
    put(api, "one")
    task = await follow(endpoint, tmp_path, offered)
    assert await offered.next() == (b"one", "api")
    while not api.watchers:
        await asyncio.sleep(0)
    put(api, "two")
    assert await offered.next() == (b"two", "api")
    assert offered.link[-1] == ""
    task.cancel()


async def test_the_mounted_copy_serves_while_the_api_server_is_away_and_says_so(
    server: tuple[ApiServer, Endpoint], offered: Offered, tmp_path: Path
) -> None:
    api, endpoint = server
    api.refuse_with = 503
    (tmp_path / TABLE_KEY).write_text("mounted")
    task = await follow(endpoint, tmp_path, offered)
    assert await offered.next() == (b"mounted", "file")
    assert "out of reach" in offered.link[-1]
    put(api, "newer")
    api.refuse_with = 0
    assert await offered.next() == (b"newer", "api")
    assert offered.link[-1] == ""
    task.cancel()


async def test_an_api_server_that_is_back_with_nothing_new_is_no_longer_said_to_be_away(
    server: tuple[ApiServer, Endpoint], offered: Offered, tmp_path: Path
) -> None:
    api, endpoint = server
    put(api, "one")
    task = await follow(endpoint, tmp_path, offered)
    assert await offered.next() == (b"one", "api")
    while not api.watchers:
        await asyncio.sleep(0)
    api.refuse_with = 503
    api.end_watches()
    async with asyncio.timeout(10):
        while not offered.link[-1]:
            await asyncio.sleep(0.01)
        assert "the table in force stays" in offered.link[-1]
        api.refuse_with = 0
        while offered.link[-1]:
            await asyncio.sleep(0.01)
    assert offered.documents.empty()
    task.cancel()


async def test_no_table_anywhere_is_said_once_the_api_server_answers(
    server: tuple[ApiServer, Endpoint], offered: Offered, tmp_path: Path
) -> None:
    _, endpoint = server
    task = await follow(endpoint, tmp_path, offered)
    assert await offered.next() == (None, "api")
    task.cancel()
