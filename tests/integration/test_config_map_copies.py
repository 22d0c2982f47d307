"""ConfigMaps that are sources: an edit is read at once, whatever the kubelet does with the mount."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.api_server import ApiServer, running_api_server

from tidegate_api.config import ConfigMapFrom, IndexerConfig, SourceConfig
from tidegate_link.client import ApiClient, Endpoint
from tidegate_runtime.indexer import config_map_copies
from tidegate_runtime.indexer.config_map_copies import VERSIONS_KEPT, ConfigMapCopies
from tidegate_runtime.indexer.loaders import EXTENSIONS
from tidegate_runtime.indexer.sources import list_source, read_file

PATH = "/api/v1/namespaces/acme/configmaps/handbook"


@pytest.fixture
async def running(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ApiServer, Endpoint]]:
    monkeypatch.setattr(config_map_copies, "LOOK_SECONDS", 0.01)
    async with running_api_server() as server:
        yield server


def put(api: ApiServer, data: dict[str, str], **more: object) -> None:
    api.put(PATH, {"metadata": {"name": "handbook"}, "data": data, **more})


class Indexer:
    """A config with one source over the ConfigMap, mounted with old content."""

    def __init__(self, folder: Path) -> None:
        mount = folder / "mount"
        mount.mkdir()
        (mount / "leave.md").write_text("mounted")
        place = ConfigMapFrom(name="handbook", path=str(mount))
        self.source = SourceConfig(
            name="docs", config_map=place, include=[], refresh_seconds=900, metadata={}, tenants=["*"]
        )
        self.sources = [self.source]
        self.copies = ConfigMapCopies(folder / "copies", namespace="acme")

    def config(self) -> IndexerConfig:
        return IndexerConfig(
            knowledge_base="docs", namespace="acme", language="en", sources=self.sources, revisions=[], sync=""
        )

    def content(self) -> dict[str, bytes]:
        listing = list_source(self.copies.locate(self.source), extensions=EXTENSIONS)
        return {file.name: read_file(file) for file in listing.files}

    async def until(self, content: dict[str, bytes]) -> None:
        async with asyncio.timeout(10):
            while self.content() != content:
                await asyncio.sleep(0.01)

    @asynccontextmanager
    async def following(self, endpoint: Endpoint) -> AsyncIterator[None]:
        async with ApiClient(endpoint) as client:
            task = asyncio.create_task(self.copies.follow(client, config=self.config))
            yield
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_an_edit_goes_before_the_mount_and_a_config_map_that_is_gone_leaves_it(
    running: tuple[ApiServer, Endpoint], tmp_path: Path
) -> None:
    api, endpoint = running
    indexer = Indexer(tmp_path)
    assert indexer.content() == {"leave.md": b"mounted"}
    put(api, {"leave.md": "one", "travel.md": "by train"})
    async with indexer.following(endpoint):
        await indexer.until({"leave.md": b"one", "travel.md": b"by train"})
        put(api, {"leave.md": "two"}, binaryData={"gb.txt": base64.b64encode(b"\xc4\xea").decode()})
        await indexer.until({"leave.md": b"two", "gb.txt": b"\xc4\xea"})
        api.remove(PATH)
        await indexer.until({"leave.md": b"mounted"})


async def test_old_versions_go_and_a_source_that_is_no_longer_named_is_not_followed(
    running: tuple[ApiServer, Endpoint], tmp_path: Path
) -> None:
    api, endpoint = running
    indexer = Indexer(tmp_path)
    async with indexer.following(endpoint):
        for number in range(5):
            put(api, {"leave.md": str(number)})
            await indexer.until({"leave.md": str(number).encode()})
        assert len(list((tmp_path / "copies").iterdir())) <= VERSIONS_KEPT
        indexer.sources = []
        await indexer.until({"leave.md": b"mounted"})


async def test_without_room_for_a_copy_the_mount_is_read(
    running: tuple[ApiServer, Endpoint], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api, endpoint = running
    indexer = Indexer(tmp_path)
    (tmp_path / "copies").write_text("in the way")
    put(api, {"leave.md": "one"})
    async with indexer.following(endpoint), asyncio.timeout(10):
        while "its mount is read instead" not in caplog.text:
            await asyncio.sleep(0.01)
    assert indexer.content() == {"leave.md": b"mounted"}
