"""The routing table from the API server: a GET at the start, then a watch.

An API server that cannot be reached stops nothing. At the start the mounted copy of the ConfigMap is
offered after five seconds, since a pod that comes up during an outage must serve by some table; later
the table in force stays. Both are said in the state. The keeper refuses whatever is older than what it
obeys, so a copy that lags behind does no harm.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from tidegate_api.config import TABLE_KEY
from tidegate_link.client import ApiClient, Endpoint, LinkError
from tidegate_link.configmap import ConfigMap, follow_config_map
from tidegate_sidecar.adapters.files import TableFile
from tidegate_sidecar.ports import TableOrigin

MOUNTED_COPY_AFTER_SECONDS = 5.0

Offer = Callable[[bytes | None, TableOrigin], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Where the table is: a ConfigMap, and the folder at which the kubelet mounts the same ConfigMap."""

    namespace: str
    name: str
    mounted: Path


class TableConfigMap:
    """A TableSource over one ConfigMap. `on_link` is told why the API server is out of reach; empty = it is not."""

    def __init__(self, endpoint: Endpoint, place: TablePlace, on_link: Callable[[str], None]) -> None:
        self._endpoint = endpoint
        self._place = place
        self._on_link = on_link
        self._heard = asyncio.Event()

    async def follow(self, offer: Offer) -> None:
        """Hand over the table now and after every change, until cancelled."""
        async with ApiClient(self._endpoint) as client, asyncio.TaskGroup() as group:
            group.create_task(self._serve_by_mounted_copy(offer))
            following = follow_config_map(
                client, namespace=self._place.namespace, name=self._place.name, lost=self._lost, found=self._found
            )
            async for config_map in following:
                self._heard.set()
                await offer(_table_of(config_map), "api")

    def _lost(self, error: LinkError) -> None:
        self._on_link(f"the API server is out of reach, the table in force stays: {error}")

    def _found(self) -> None:
        self._on_link("")

    async def _serve_by_mounted_copy(self, offer: Offer) -> None:
        """Offer the mounted copy while the API server has not answered yet."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), MOUNTED_COPY_AFTER_SECONDS)
            return
        copy = asyncio.create_task(TableFile(self._place.mounted / TABLE_KEY).follow(offer))
        try:
            await self._heard.wait()
        finally:
            copy.cancel()


def _table_of(config_map: ConfigMap | None) -> bytes | None:
    table = None if config_map is None else config_map.data.get(TABLE_KEY)
    return None if table is None else table.encode()
