"""Is there another operator? Two do no harm to each other, but both do all the work, and nobody meant it.

Each writes its own name into one Lease now and then. Who finds another's name there, after having
written its own, knows that the other one is alive: no clocks are compared, and what a dead one has left
is simply written over. Nobody is kept from working by it.
"""

import asyncio
import logging
from typing import Protocol

from tidegate_operator import metrics
from tidegate_operator.core.kinds import Kind, Manifest, Ref, api_version
from tidegate_operator.errors import OperatorError
from tidegate_operator.ports import Clock, ClusterReader, ClusterWriter

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 15.0


class Cluster(ClusterReader, ClusterWriter, Protocol):
    """Reads and writes."""


class Presence:
    """Says who operates here, and notices who else does. `other` is empty while nobody does."""

    def __init__(self, cluster: Cluster, clock: Clock, *, namespace: str, lease: str, identity: str) -> None:
        self.other = ""
        self._cluster = cluster
        self._clock = clock
        self._ref = Ref(Kind.LEASE, namespace, lease)
        self._identity = identity
        self._announced = False

    async def announce(self) -> None:
        """Look who has been here since the last time, and write our name.

        Raises:
            OperatorError: the Lease cannot be read or written.
        """
        found = await self._cluster.get(self._ref)
        holder = ((found or {}).get("spec") or {}).get("holderIdentity") or ""
        self._notice(holder if self._announced and holder != self._identity else "")
        await self._cluster.apply(self._manifest())
        self._announced = True

    def _notice(self, other: str) -> None:
        metrics.other_operator(there=bool(other))
        if other and other != self.other:
            logger.warning(
                "another operator is at work here; both do the same, stop one of them",
                extra={"other": other, "lease": f"{self._ref.namespace}/{self._ref.name}"},
            )
        elif self.other and not other:
            logger.info("the other operator is gone", extra={"other": self.other})
        self.other = other

    def _manifest(self) -> Manifest:
        renewed = self._clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {
            "apiVersion": api_version(Kind.LEASE),
            "kind": str(Kind.LEASE),
            "metadata": {"name": self._ref.name, "namespace": self._ref.namespace},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": round(2 * PERIOD_SECONDS),
                "renewTime": renewed,
            },
        }


async def keep_announcing(presence: Presence, *, period_seconds: float = PERIOD_SECONDS) -> None:
    """Announce until cancelled. That it cannot be done is said once, and stops nothing."""
    told = ""
    while True:
        try:
            await presence.announce()
            told = ""
        except OperatorError as error:
            if error.reason != told:
                logger.warning("cannot tell whether another operator is here", extra={"error": str(error)})
            told = error.reason
        await asyncio.sleep(period_seconds)
