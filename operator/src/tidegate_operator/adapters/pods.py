"""Asks indexers and sidecars what is true. Silence is an answer: a pod that does not speak in time is left out.

An answer is bounded in time and size, because a pod that is broken must not hold up a decision about
the others.
"""

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
from pydantic import ValidationError

from tidegate_api.config import IndexerState, SidecarState
from tidegate_api.model import Model
from tidegate_operator.core.names import indexer_name
from tidegate_operator.core.render.indexer_deployment import INDEXER_PORT
from tidegate_operator.core.render.networkpolicy import STATE_PORT

logger = logging.getLogger(__name__)

INDEXER_SECONDS = 3.0
SIDECAR_SECONDS = 0.5
ANSWER_BYTES_MAX = 4 * 1024 * 1024

State = TypeVar("State", bound=Model)


class PodPlanes:
    """Implements `Planes` over HTTP. Open it with `async with`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    def open(cls) -> Self:
        """Return one with connections of its own; pods come and go, so few are kept."""
        return cls(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=100, keepalive_timeout=15)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def indexer(self, namespace: str, knowledge_base: str) -> IndexerState | None:
        """Return what the indexer of a knowledge base says of itself."""
        host = f"{indexer_name(knowledge_base)}.{namespace}.svc"
        return await self._state(IndexerState, f"http://{host}:{INDEXER_PORT.number}", seconds=INDEXER_SECONDS)

    async def sidecars(self, addresses: Mapping[str, str]) -> Mapping[str, SidecarState]:
        """Return what sidecars say, by pod name."""
        urls = {pod: f"http://{_host(address)}:{STATE_PORT.number}" for pod, address in addresses.items()}
        answers = await asyncio.gather(
            *(self._state(SidecarState, url, seconds=SIDECAR_SECONDS) for url in urls.values())
        )
        return {pod: answer for pod, answer in zip(urls, answers, strict=True) if answer is not None}

    async def _state(self, model: type[State], url: str, *, seconds: float) -> State | None:
        try:
            async with self._session.get(
                f"{url}/v1/state", timeout=aiohttp.ClientTimeout(total=seconds), allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    return None
                body = await _bounded(answer.content)
                return model.model_validate_json(body) if body is not None else None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            logger.debug("no answer", extra={"url": url, "error": type(error).__name__})
        except ValidationError as error:
            logger.warning("answer not understood", extra={"url": url, "error": error.errors()[0]["msg"]})
        return None


async def _bounded(content: aiohttp.StreamReader) -> bytes | None:
    """Return the whole body, or None when it is larger than any state."""
    body = bytearray()
    async for chunk in content.iter_chunked(65_536):
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            return None
    return bytes(body)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
