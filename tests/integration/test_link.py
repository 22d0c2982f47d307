"""The in-cluster link against a small API server of our own over a real socket.

Inputs: scripted answers. Not covered here: TLS and RBAC, which the cluster tests cover.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.api_server import ApiServer, running_api_server

from tidegate_link.client import ApiClient, Endpoint, LinkError
from tidegate_link.configmap import ConfigMap, follow_config_map, read_config_map
from tidegate_link.lease import Lease

NAME = "docs-routing"


PATH = f"/api/v1/namespaces/acme/configmaps/{NAME}"


@pytest.fixture
async def server() -> AsyncIterator[tuple[ApiServer, Endpoint]]:
    async with running_api_server() as running:
        yield running


def config_map(**data: str) -> dict:
    return {"metadata": {"name": NAME}, "data": data}


async def test_follows_changes_deletion_and_return(server: tuple[ApiServer, Endpoint]) -> None:
    api, endpoint = server
    async with ApiClient(endpoint) as client:
        seen: asyncio.Queue[ConfigMap | None] = asyncio.Queue()

        async def follow() -> None:
            async for item in follow_config_map(client, namespace="acme", name=NAME):
                seen.put_nowait(item)

        task = asyncio.create_task(follow())
        assert await asyncio.wait_for(seen.get(), 5) is None
        while not api.watchers:
            await asyncio.sleep(0)
        api.put(PATH, config_map(table="1"), "ADDED")
        assert (await asyncio.wait_for(seen.get(), 5)).data == {"table": "1"}
        api.put(PATH, config_map(table="2"))
        assert (await asyncio.wait_for(seen.get(), 5)).data == {"table": "2"}
        api.remove(PATH)
        assert await asyncio.wait_for(seen.get(), 5) is None
        task.cancel()


@pytest.mark.parametrize("failure", ["ended", "too old", "refused"])
async def test_a_change_during_an_interruption_is_seen_once(server: tuple[ApiServer, Endpoint], failure: str) -> None:
    api, endpoint = server
    api.put(PATH, config_map(table="1"))
    lost: list[LinkError] = []
    async with ApiClient(endpoint) as client:
        seen: asyncio.Queue[ConfigMap | None] = asyncio.Queue()

        async def follow() -> None:
            async for item in follow_config_map(client, namespace="acme", name=NAME, lost=lost.append):
                seen.put_nowait(item)

        task = asyncio.create_task(follow())
        assert (await asyncio.wait_for(seen.get(), 5)).data == {"table": "1"}
        while not api.watchers:
            await asyncio.sleep(0)
        if failure == "too old":
            api.watch_errors = [410, 410]
        if failure == "refused":
            api.refuse_with = 503
        api.end_watches()
        while api.watchers:
            await asyncio.sleep(0)
        api.put(PATH, config_map(table="2"))
        if failure == "refused":
            while not lost:
                await asyncio.sleep(0.01)
            api.refuse_with = 0
        assert (await asyncio.wait_for(seen.get(), 5)).data == {"table": "2"}
        assert seen.empty()
        assert bool(lost) == (failure == "refused")
        task.cancel()


async def test_a_missing_config_map_is_none_and_a_refusal_is_an_error(server: tuple[ApiServer, Endpoint]) -> None:
    api, endpoint = server
    async with ApiClient(endpoint) as client:
        assert await read_config_map(client, namespace="acme", name=NAME) is None
        api.refuse_with = 403
        with pytest.raises(LinkError, match="403") as caught:
            await read_config_map(client, namespace="acme", name=NAME)
        assert caught.value.status == 403


async def test_a_rotated_token_is_used_for_the_next_request(server: tuple[ApiServer, Endpoint], tmp_path: Path) -> None:
    api, endpoint = server
    token = tmp_path / "token"
    token.write_text("first\n")
    async with ApiClient(Endpoint(endpoint.url, token, None)) as client:
        await read_config_map(client, namespace="acme", name=NAME)
        token.write_text("second\n")
        await read_config_map(client, namespace="acme", name=NAME)
    assert api.tokens == ["Bearer first", "Bearer second"]


async def test_one_lease_holder_at_a_time_and_release_lets_the_next_in(server: tuple[ApiServer, Endpoint]) -> None:
    _, endpoint = server
    async with ApiClient(endpoint) as client:
        first = Lease(client, namespace="acme", name="docs-indexer", holder="a")
        second = Lease(client, namespace="acme", name="docs-indexer", holder="b")
        assert await first.try_acquire()
        assert not await second.try_acquire()
        assert first.held
        assert not second.held
        await first.release()
        assert not first.held
        assert await second.try_acquire()
        assert not await first.try_acquire()


async def test_a_lease_is_not_held_when_the_api_server_is_away(server: tuple[ApiServer, Endpoint]) -> None:
    api, endpoint = server
    api.refuse_with = 503
    async with ApiClient(endpoint) as client:
        lease = Lease(client, namespace="acme", name="docs-indexer", holder="a")
        assert not await lease.try_acquire()
        assert not lease.held


def test_outside_a_pod_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(LinkError, match="use a file"):
        Endpoint.in_cluster(tmp_path)
