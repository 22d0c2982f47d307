"""Wakes every key now and then, spread over the period: what a watch has missed is found here."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind
from tidegate_operator.errors import OperatorError
from tidegate_operator.ports import ClusterReader

logger = logging.getLogger(__name__)

KEY_KINDS = (Kind.KNOWLEDGE_BASE, Kind.RETRIEVAL_PIPELINE)


async def list_keys(cluster: ClusterReader, namespaces: Sequence[str]) -> list[Key]:
    """Return every key that exists in the namespaces; none named = everywhere."""
    scopes: list[str | None] = [*namespaces] or [None]
    keys = []
    for kind in KEY_KINDS:
        for scope in scopes:
            for manifest in await cluster.find(kind, scope):
                metadata = manifest["metadata"]
                keys.append(Key(kind, metadata["namespace"], metadata["name"]))
    return keys


async def resync(
    cluster: ClusterReader,
    wake: Callable[[Key, float], None],
    *,
    namespaces: Sequence[str],
    period_seconds: float,
    jitter: Callable[[], float] = random.random,
) -> None:
    """Wake all keys once per period, each at a moment of its own, until cancelled."""
    while True:
        await asyncio.sleep(period_seconds * (0.9 + 0.2 * jitter()))
        try:
            keys = await list_keys(cluster, namespaces)
        except OperatorError as error:
            logger.warning("resync failed", extra={"error": str(error)})
            continue
        for key in keys:
            wake(key, period_seconds * jitter())
