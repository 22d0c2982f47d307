"""kopf's part: watches that wake keys. No handler decides, changes or stores anything.

Only `on.event` is used: kopf's other handlers add finalizers and annotations and cannot guard a write
by resource version. Watches of children are limited by label at the server.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from tidegate_operator import metrics
from tidegate_operator.core.keys import Key, References, keys_to_wake
from tidegate_operator.core.kinds import OWN_KINDS, Kind, Manifest, api_version, group, plural
from tidegate_operator.core.names import MANAGED_BY, Label
from tidegate_operator.freshness import Freshness

# Children whose changes matter at once, and the label that the server selects them by.
WATCHED_CHILDREN: dict[Kind, str] = {
    Kind.DEPLOYMENT: f"{Label.MANAGED_BY}={MANAGED_BY}",
    Kind.CONTROLLER_REVISION: f"{Label.MANAGED_BY}={MANAGED_BY}",
    Kind.POD: f"{Label.MANAGED_BY}={MANAGED_BY}",
    Kind.CONFIG_MAP: str(Label.WATCH),
}


class Bell:
    """Wakes the keys that an event concerns."""

    def __init__(self, wake: Callable[[Key], None], freshness: Freshness) -> None:
        self._wake = wake
        self._freshness = freshness
        self._references = References()

    def ring(self, kind: Kind, manifest: Manifest, *, deleted: bool) -> None:
        """Note that the watch sees, learn who refers to whom, and wake."""
        metrics.event_seen(kind)
        metadata = manifest["metadata"]
        if kind is Kind.RETRIEVAL_PIPELINE:
            self._references.learn(manifest, deleted=deleted)
        if kind in OWN_KINDS:
            key = Key(kind, metadata["namespace"], metadata["name"])
            if deleted:
                self._freshness.forgotten(key)
            else:
                self._freshness.delivered(key, str(metadata.get("resourceVersion", "")))
        for key in keys_to_wake(kind, manifest, self._references):
            self._wake(key)


def register(registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, bell: Bell) -> None:
    """Register one event handler per kind, and the selectors of the children."""
    for kind in (*OWN_KINDS, *WATCHED_CHILDREN):
        kopf.on.event(*_selector(kind), registry=registry, id=f"wake-{plural(kind)}")(_handler(kind, bell))
    for kind, labels in WATCHED_CHILDREN.items():
        settings.watching.label_selectors[_selector(kind)] = labels


def configure(settings: kopf.OperatorSettings) -> None:
    """Set kopf up for watching alone."""
    settings.scanning.disabled = True  # no right to list namespaces and resource definitions is needed
    settings.posting.enabled = False
    settings.networking.connect_timeout = 10
    settings.networking.request_timeout = 60
    settings.watching.chunk_size = 500
    settings.queueing.error_delays = (1, 2, 5, 10, 30, 60)
    settings.process.ultimate_exiting_timeout = 20


def login(**arguments: Any) -> kopf.ConnectionInfo | None:
    """Return the pod's own identity, or that of a kubeconfig outside a cluster."""
    return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)


def _handler(kind: Kind, bell: Bell) -> Callable[..., Awaitable[None]]:
    # A coroutine, although it never waits: kopf runs plain functions in threads.
    async def wake(event: Any, **_: Any) -> None:
        bell.ring(kind, event["object"], deleted=event["type"] == "DELETED")

    return wake


def _selector(kind: Kind) -> tuple[str, str, str]:
    return group(kind), api_version(kind).rpartition("/")[2], plural(kind)
