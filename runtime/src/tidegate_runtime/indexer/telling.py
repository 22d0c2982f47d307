"""Wakes the operator: the indexer touches the ConfigMap that it obeys when there is something new to read in its state.

The operator watches that ConfigMap and asks for the state then, so it need not ask idle indexers over and
over. Progress is no news: who waits for a build asks by itself. Nothing is lost when a touch fails: it is
tried again, and the operator looks now and then in any case.
"""

import asyncio
import logging
from collections.abc import Callable

from tidegate_api.config import IndexerState, RevisionState
from tidegate_api.hashing import content_hash
from tidegate_link.client import ApiClient, Document, LinkError
from tidegate_link.configmap import config_map_path

ANNOTATION = "tidegate.dev/told"
LOOK_SECONDS = 1.0
RETRY_SECONDS = 10.0

_logger = logging.getLogger(__name__)


def news(state: IndexerState) -> str:
    """Return a hash that differs when a reader of the state would do or show something else."""
    document = state.sync.model_dump(mode="json", exclude={"last_at", "added", "changed", "deleted"})
    census = state.census.language if state.census is not None else ""
    told = [
        state.message,
        state.reason,
        state.config_hash,
        census,
        document,
        [_news_of(each) for each in state.revisions],
    ]
    return content_hash(told)  # type: ignore[arg-type]


def _news_of(revision: RevisionState) -> list[object]:
    found: list[object] = [revision.name, revision.phase, revision.message, revision.reason]
    return [*found, revision.documents, revision.content_generation] if revision.phase == "Ready" else found


async def keep_telling(client: ApiClient, place: tuple[str, str], *, state: Callable[[], IndexerState]) -> None:
    """Touch the ConfigMap `place` (namespace, name) after each change, until cancelled."""
    told = ""
    while True:
        pause, current = LOOK_SECONDS, state()
        if current.process and (fresh := news(current)) != told:
            touch: Document = {"metadata": {"annotations": {ANNOTATION: fresh}}}
            try:
                await client.merge(config_map_path(*place), touch)
                told = fresh
            except LinkError as error:
                _logger.warning("the operator cannot be woken, it will look by itself", extra={"reason": str(error)})
                pause = RETRY_SECONDS
        await asyncio.sleep(pause)
