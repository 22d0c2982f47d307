"""The newest version of each ConfigMap that is a source, as a folder.

A kubelet brings an edit to the mount up to a minute and a half later; the API server tells of it at once. So
each such ConfigMap is followed by name and its entries are laid down like the mount's. The mount remains
what is read until the API server has answered, and again when a ConfigMap is gone or there is no room.
"""

import asyncio
import itertools
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from tidegate_api.config import IndexerConfig, SourceConfig
from tidegate_link.client import ApiClient
from tidegate_link.configmap import ConfigMap, follow_config_map

LOOK_SECONDS = 1.0
# The one in use, and the one that a look which has just begun may still read.
VERSIONS_KEPT = 2

_logger = logging.getLogger(__name__)


class ConfigMapCopies:
    """Followed on the event loop; `locate` is called by the thread that reads sources."""

    def __init__(self, folder: Path, *, namespace: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        self._folder = folder
        self._namespace = namespace
        self._numbers = itertools.count()
        self._versions: dict[str, list[Path]] = {}
        self._newest: dict[str, Path] = {}

    def locate(self, source: SourceConfig) -> SourceConfig:
        """Return `source` with the folder where its newest content lies."""
        newest = None if source.config_map is None else self._newest.get(source.config_map.name)
        if source.config_map is None or newest is None:
            return source
        return source.model_copy(
            update={"config_map": source.config_map.model_copy(update={"path": str(newest)})},
        )

    async def follow(self, client: ApiClient, *, config: Callable[[], IndexerConfig | None]) -> None:
        """Keep a copy of every ConfigMap that the present config names, until cancelled."""
        following: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                present = config()
                named = {each.config_map.name for each in present.sources if each.config_map} if present else set()
                for name in following.keys() - named:
                    following.pop(name).cancel()
                    self._forget(name)
                for name in named - following.keys():
                    following[name] = asyncio.create_task(self._follow(client, name))
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in following.values():
                task.cancel()

    async def _follow(self, client: ApiClient, name: str) -> None:
        async for config_map in follow_config_map(client, namespace=self._namespace, name=name):
            if config_map is None:
                self._forget(name)
                continue
            try:
                self._newest[name] = await asyncio.to_thread(self._lay_down, name, config_map)
            except OSError as error:
                extra = {"config_map": name, "reason": error.strerror}
                _logger.warning("no copy of a ConfigMap, its mount is read instead", extra=extra)
                self._newest.pop(name, None)

    def _lay_down(self, name: str, config_map: ConfigMap) -> Path:
        version = self._folder / str(next(self._numbers))
        version.mkdir(parents=True)
        entries = {key: text.encode() for key, text in config_map.data.items()} | config_map.binary
        for key, content in entries.items():
            (version / key).write_bytes(content)
        kept = self._versions.setdefault(name, [])
        kept.append(version)
        while len(kept) > VERSIONS_KEPT:
            shutil.rmtree(kept.pop(0), ignore_errors=True)
        return version

    def _forget(self, name: str) -> None:
        self._newest.pop(name, None)
