"""Which routing table is obeyed: the newest good one, and never an older one than before.

A table that can't be obeyed changes nothing but the message: requests go on by the last good one.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from tidegate_api.config import ReleaseConfig, RoutingTable
from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.policy import BrokenTableError, TableIndex, compile_table
from tidegate_sidecar.ports import TableOrigin

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnderstoodTable:
    """A table that can be obeyed."""

    pipeline: str
    index: TableIndex
    hash: str
    origin: TableOrigin
    releases: tuple[ReleaseConfig, ...]

    def here(self, deployment: str) -> tuple[ReleaseConfig, ...]:
        """Return the releases that pods of `deployment` hold; empty = the pod that holds everything."""
        return tuple(each for each in self.releases if not deployment or each.deployment in ("", deployment))

    def elsewhere(self, deployment: str) -> dict[str, str]:
        """Return the releases that other Deployments hold, with the Deployment's hash."""
        held = {release.name for release in self.here(deployment)}
        return {release.name: release.deployment for release in self.releases if release.name not in held}


class TableKeeper:
    """Holds the table in force. `message` says why the newest document is not obeyed; empty = it is.

    `link_message` says why no newer document may be known of; `deployment` is the hash of this pod's Deployment.
    """

    def __init__(self, pipeline: str, *, on_change: Callable[[], None], deployment: str = "") -> None:
        self._pipeline = pipeline
        self._on_change = on_change
        self._deployment = deployment
        self._elsewhere: dict[str, str] = {}
        self.link_message = ""
        self.current: UnderstoodTable | None = None
        self.message = "no routing table yet"

    def index(self) -> TableIndex:
        """Return the table in force.

        Raises:
            RequestError: there is none yet.
        """
        if self.current is None:
            raise RequestError(ErrorCode.RELEASE_UNAVAILABLE, f"{self.message}; try again", retry_after_seconds=1)
        return self.current.index

    def wanted(self) -> tuple[ReleaseConfig, ...] | None:
        """Return the releases of the table in force that this pod holds; None = there is no table yet."""
        return None if self.current is None else self.current.here(self._deployment)

    def elsewhere(self) -> dict[str, str]:
        """Return the releases that other Deployments hold, with the Deployment's hash."""
        return self._elsewhere

    def report_link(self, message: str) -> None:
        """Note why documents may be missing; empty = they are not."""
        if message and message != self.link_message:
            logger.warning("link lost", extra={"reason": message})
        self.link_message = message

    async def offer(self, document: bytes | None, origin: TableOrigin) -> None:
        """Obey `document` if it is good and not older than what is obeyed."""
        if document is None:
            self._refuse("there is no routing table to read" if self.current is None else "the routing table is gone")
            return
        try:
            offered = await asyncio.to_thread(_understand, document, origin)
        except BrokenTableError as error:
            self._refuse(f"the newest routing table is broken: {error}")
            return
        if problem := self._why_not(offered):
            self._refuse(problem)
            return
        self.message = ""
        if self.current is None or offered.index.version > self.current.index.version:
            self.current = offered
            self._elsewhere = offered.elsewhere(self._deployment)
            logger.info("table obeyed", extra={"version": offered.index.version, "hash": offered.hash})
            self._on_change()

    def _why_not(self, offered: UnderstoodTable) -> str:
        if offered.pipeline != self._pipeline:
            return f"the newest routing table is for pipeline {offered.pipeline}, this sidecar serves {self._pipeline}"
        if self.current is None:
            return ""
        version = self.current.index.version
        if offered.index.version < version:
            return f"routing table {offered.index.version} is older than {version}, which stays in force"
        if offered.index.version == version and offered.hash != self.current.hash:
            return f"routing table {version} came with another content; write changes under a higher version"
        return ""

    def _refuse(self, message: str) -> None:
        if message != self.message:
            logger.warning("table not obeyed", extra={"reason": message})
        self.message = message


def _understand(document: bytes, origin: TableOrigin) -> UnderstoodTable:
    try:
        table = RoutingTable.model_validate_json(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise BrokenTableError(f"{'.'.join(map(str, first['loc'])) or 'document'}: {first['msg']}") from None
    return UnderstoodTable(
        pipeline=table.pipeline,
        index=compile_table(table),
        hash=table.table_hash(),
        origin=origin,
        releases=tuple(table.releases),
    )
