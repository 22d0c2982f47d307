"""Orders to the operator: one annotation on the object that rules, and the outcome from its status."""

import datetime
import getpass
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate_api.v1alpha1.common import RequestOutcome
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.kubectl import Kubectl

REQUEST_ANNOTATION = "tidegate.dev/request"
POLL_SECONDS = 0.2


class RequestTimeoutError(Exception):
    """The operator has not answered in time; the order stands and may still be carried out."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a person wants done, and why."""

    verb: str
    to: str = ""
    reason: str = ""


def write_request(kubectl: Kubectl, target: RoutingPolicy | RetrievalPipeline, order: Order) -> str:
    """Write the order on `target` and return its id, which is carried out once."""
    identity = f"{order.verb}-{secrets.token_hex(6)}"
    request = {
        "id": identity,
        "verb": order.verb,
        "to": order.to,
        "uid": target.metadata.uid,
        "issuedAt": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "by": _user(),
        "reason": order.reason,
    }
    kind = target.definition.plural
    kubectl.annotate(kind, target.metadata.name, key=REQUEST_ANNOTATION, value=json.dumps(request))
    return identity


def _user() -> str:
    """Return who gives the order, empty where this system has no name for them, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def await_outcome(
    read: Callable[[], RoutingPolicy | RetrievalPipeline], identity: str, *, seconds: float
) -> RequestOutcome:
    """Return what became of a request.

    Raises:
        RequestTimeoutError: nothing is known after `seconds`.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for outcome in read().status.requests:
            if outcome.id == identity:
                return outcome
        time.sleep(POLL_SECONDS)
    raise RequestTimeoutError(
        f"the operator has not answered request {identity} in {seconds:g} s; it stands, see `kubectl rag status` and the operator's log"
    )


def await_everywhere(read: Callable[[], RetrievalPipeline], *, beyond: int, seconds: float) -> str:
    """Wait until a routing table newer than `beyond` is obeyed by every ready pod, and return what serves then.

    Raises:
        RequestTimeoutError: it is not after `seconds`; the text says what is still waited for.
    """
    end = time.monotonic() + seconds
    while True:
        status = read().status
        routing = status.routing
        behind = status.rollout.phase == "RollingBack" or routing.version <= beyond or bool(routing.pending)
        if not behind:
            return f"{status.serving_release} serves on {routing.summary} pods, by table {routing.version}"
        if time.monotonic() >= end:
            waited = ", ".join(routing.pending) or "a warm release" if routing.version > beyond else "a new table"
            raise RequestTimeoutError(f"after {seconds:g} s it is done and still waits for {waited}")
        time.sleep(POLL_SECONDS)
