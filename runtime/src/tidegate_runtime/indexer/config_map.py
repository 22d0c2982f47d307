"""An indexer's orders in a cluster: the config from a watched ConfigMap, and a Lease to be the only writer.

The mounted copy of the same ConfigMap serves until the API server has answered, and an API server
that goes away stops nothing: the last good config stays in force. The Lease is different: whoever
cannot renew it stops writing, because another indexer may begin.
"""

import logging

from tidegate_api.config import INDEXER_CONFIG_KEY, IndexerConfig
from tidegate_link.client import ApiClient, LinkError
from tidegate_link.configmap import follow_config_map
from tidegate_runtime.indexer.config_source import FileConfigSource, understood

_logger = logging.getLogger(__name__)


class ConfigMapConfigSource:
    """A ConfigSource that is fed by `follow`, which runs on the event loop; `read` is called by the loop's thread."""

    def __init__(self, mounted: FileConfigSource, *, namespace: str, name: str) -> None:
        self._mounted = mounted
        self._namespace = namespace
        self._name = name
        self._heard = False
        self._config: IndexerConfig | None = None
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why the newest document is not obeyed; empty = it is."""
        return self._problem if self._heard else self._mounted.problem

    def read(self) -> IndexerConfig | None:
        """Return the newest good config, the same object while it is unchanged; None when there was none yet."""
        return self._config if self._heard else self._mounted.read()

    async def follow(self, client: ApiClient) -> None:
        """Take every version of the ConfigMap, until cancelled."""
        place = f"ConfigMap {self._name}"
        following = follow_config_map(client, namespace=self._namespace, name=self._name, lost=_log_loss)
        async for config_map in following:
            document = None if config_map is None else config_map.data.get(INDEXER_CONFIG_KEY)
            if document is None:
                self._problem = (
                    f"{place} or its entry {INDEXER_CONFIG_KEY} is gone; the last good config stays in force"
                )
                continue
            config, self._problem = understood(document.encode(), place=place)
            if config is not None and config != self._config:
                self._config = config
            self._heard = self._heard or config is not None


def _log_loss(error: LinkError) -> None:
    _logger.warning("the API server is out of reach, the last good config stays in force", extra={"reason": str(error)})
