"""Follows one ConfigMap: a GET first, then a watch, for ever.

A watch can end, break, be too old (410) or fall silent; after each of these the object is read
anew, with growing jittered pauses while the API server cannot be reached. A version is handed out
once, and a deletion is handed out as None, so a follower never has to ask twice.
"""

import asyncio
import base64
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from tidegate_link.client import ApiClient, Document, LinkError

PAUSE_SECONDS = 0.2
PAUSE_MAX_SECONDS = 15.0
LASTED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ConfigMap:
    """The entries of a ConfigMap at one version: texts, and what is not text."""

    data: dict[str, str]
    resource_version: str
    binary: dict[str, bytes] = field(default_factory=dict)


def config_map_path(namespace: str, name: str = "") -> str:
    """Return the API path of one ConfigMap, or of all of a namespace."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return f"{path}/{name}" if name else path


async def read_config_map(client: ApiClient, *, namespace: str, name: str) -> ConfigMap | None:
    """Return the ConfigMap, None when it does not exist."""
    document = await client.get(config_map_path(namespace, name))
    return None if document is None else _config_map(document)


async def follow_config_map(
    client: ApiClient,
    *,
    namespace: str,
    name: str,
    lost: Callable[[LinkError], None] = lambda _: None,
    found: Callable[[], None] = lambda: None,
) -> AsyncIterator[ConfigMap | None]:
    """Yield the ConfigMap now and after every change, None while it does not exist.

    `lost` is told each time the API server could not be reached or refused; following goes on. `found` is told
    each time it has answered, also with nothing new: who said that it is away can say that it is back.
    """
    last: str | None = None
    pause_seconds = PAUSE_SECONDS
    while True:
        started = time.monotonic()
        try:
            current = await read_config_map(client, namespace=namespace, name=name)
            found()
            version = "" if current is None else current.resource_version
            if version != last:
                last = version
                yield current
            async for changed in _changes(client, namespace, name, version):
                version = "" if changed is None else changed.resource_version
                if version != last:
                    last = version
                    yield changed
        except LinkError as error:
            if error.status != 410:
                lost(error)
        # A watch that lasted ended well and is opened again at once; a server that closes each at once, or is away,
        # is asked less and less often.
        if time.monotonic() - started > LASTED_SECONDS:
            pause_seconds = PAUSE_SECONDS
        await asyncio.sleep(pause_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
        pause_seconds = min(2 * pause_seconds, PAUSE_MAX_SECONDS)


async def _changes(client: ApiClient, namespace: str, name: str, version: str) -> AsyncIterator[ConfigMap | None]:
    query = {"fieldSelector": f"metadata.name={name}"}
    if version:
        query["resourceVersion"] = version
    async for event in client.watch(config_map_path(namespace), query=query):
        body = event.get("object")
        if event.get("type") == "BOOKMARK" or not isinstance(body, dict):
            continue
        yield None if event.get("type") == "DELETED" else _config_map(body)


def _config_map(document: Document) -> ConfigMap:
    metadata, data, binary = document.get("metadata"), document.get("data") or {}, document.get("binaryData") or {}
    if not isinstance(metadata, dict) or not isinstance(data, dict) or not isinstance(binary, dict):
        raise LinkError("a ConfigMap without metadata came back")
    return ConfigMap(
        data={str(key): str(value) for key, value in data.items()},
        resource_version=str(metadata.get("resourceVersion", "")),
        binary={str(key): base64.b64decode(str(value)) for key, value in binary.items()},
    )
