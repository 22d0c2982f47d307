"""Ports of the control plane: what the shell may ask of the world.

Adapters translate library errors into `errors.py`; a missing object is None, never an error. Every
call has a deadline of its own. Bodies are plain JSON objects, as the API server speaks them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from tidegate_api.config import IndexerState, SidecarState
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.plan import Note


class ClusterReader(Protocol):
    """Reads objects. All methods raise `UnavailableError` when the API server cannot answer."""

    async def get(self, ref: Ref) -> Manifest | None:
        """Return the object, or None when there is none."""

    async def get_metadata(self, ref: Ref) -> Manifest | None:
        """Return the object without its content, or None: enough to know that it is there and whose it is."""

    async def find(self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Manifest]:
        """Return the objects that the selectors accept; `namespace` None = everywhere."""


class ClusterWriter(Protocol):
    """Writes objects with our field manager."""

    async def create(self, manifest: Manifest) -> Manifest:
        """Make an object that was not there a moment ago; one of ours that has lost its labels gets them back.

        Raises:
            NameConflictError: somebody else's is there now; it is as they left it.
            StaleError: another operator has just made it.
            RefusedError: the content is refused.
        """

    async def apply(self, manifest: Manifest) -> Manifest:
        """Bring our own object to `manifest` by server-side apply, and return it.

        Raises:
            StaleError: the object whose uid the manifest names is gone; another of its name is as it was.
            RefusedError: the content is refused.
        """

    async def delete(self, ref: Ref, *, uid: str) -> None:
        """Delete that very object; one that is gone, or another of its name, is left alone."""

    async def replace_status(self, ref: Ref, status: Manifest, *, resource_version: str) -> None:
        """Replace the status of the version that was read.

        Raises:
            StaleError: the object has changed since, or is gone.
        """

    async def record_event(self, regarding: Ref, uid: str, note: Note, *, identity: str) -> None:
        """Write an Event; the same `identity` is written once. Failing to write one is no error."""


class Planes(Protocol):
    """Asks our own pods what is true. None = no answer in time."""

    async def indexer(self, namespace: str, knowledge_base: str) -> IndexerState | None:
        """Return what the indexer of a knowledge base says of itself."""

    async def sidecars(self, addresses: Mapping[str, str]) -> Mapping[str, SidecarState]:
        """Return what sidecars say, by pod name; pods that do not answer are left out. `addresses` are IPs by pod name."""


class Clock(Protocol):
    """Tells the time; tests move it by hand."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
