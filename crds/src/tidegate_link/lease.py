"""A Lease: at most one holder at a time, as `coordination.k8s.io/v1` has it.

The holder renews well inside the duration and stops its work when it could not renew in time:
`held` turns false before another process may take over. Clocks of two machines are never compared:
a waiting process measures by its own clock how long the same record has stood unchanged.
"""

import asyncio
import datetime
import time

from tidegate_link.client import ApiClient, Document, LinkError

DURATION_SECONDS = 15
RENEW_SECONDS = 5.0
# The holder gives up this long before others may take over.
SAFETY_SECONDS = 3.0


class Lease:
    """One holder's claim on a named Lease."""

    def __init__(self, client: ApiClient, *, namespace: str, name: str, holder: str) -> None:
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._holder = holder
        self._held_until = 0.0
        self._seen: tuple[str, float] = ("", 0.0)

    @property
    def held(self) -> bool:
        """Return whether this process may work as the holder at this moment."""
        return time.monotonic() < self._held_until

    async def acquire(self) -> None:
        """Wait until this process is the holder."""
        while not await self.try_acquire():  # noqa: ASYNC110 - the other holder is in another process
            await asyncio.sleep(RENEW_SECONDS / 2)

    async def try_acquire(self) -> bool:
        """Take or renew the lease; False while another holder's claim is alive or the API server cannot be reached."""
        asked_at = time.monotonic()
        try:
            current = await self._client.get(f"{self._collection}/{self._name}")
            if current is None:
                await self._client.create(self._collection, self._document())
            elif self._may_take(current):
                await self._client.replace(f"{self._collection}/{self._name}", self._document(current))
            else:
                return False
        except LinkError:
            return False
        self._held_until = asked_at + DURATION_SECONDS - SAFETY_SECONDS
        return True

    async def keep(self) -> None:
        """Renew until the lease is lost, then return. Run it beside the work and stop the work when it returns."""
        while self.held:
            await asyncio.sleep(RENEW_SECONDS)
            await self.try_acquire()

    async def release(self) -> None:
        """Let the next holder in at once."""
        if not self.held:
            return
        self._held_until = 0.0
        current = await self._client.get(f"{self._collection}/{self._name}")
        if current is not None and _spec(current).get("holderIdentity") == self._holder:
            freed = {**current, "spec": {**_spec(current), "holderIdentity": ""}}
            await self._client.replace(f"{self._collection}/{self._name}", freed)

    def _may_take(self, current: Document) -> bool:
        spec = _spec(current)
        if spec.get("holderIdentity") in (self._holder, "", None):
            return True
        record = f"{spec.get('holderIdentity')} {spec.get('renewTime')}"
        if record != self._seen[0]:
            self._seen = (record, time.monotonic())
        return time.monotonic() - self._seen[1] > DURATION_SECONDS

    def _document(self, current: Document | None = None) -> Document:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        before = {} if current is None else _spec(current)
        same = before.get("holderIdentity") == self._holder
        transitions = before.get("leaseTransitions")
        spec: Document = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": DURATION_SECONDS,
            "acquireTime": before.get("acquireTime", now) if same else now,
            "renewTime": now,
            "leaseTransitions": (transitions if isinstance(transitions, int) else 0) + (0 if same else 1),
        }
        metadata: object = {"name": self._name} if current is None else current["metadata"]
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _spec(document: Document) -> Document:
    spec = document.get("spec")
    return spec if isinstance(spec, dict) else {}
