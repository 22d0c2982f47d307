"""Requests to the operator: one annotation, each id carried out once, the outcome in status.

A request names the object it is for by uid and is fresh for ten minutes, so a copied or restored
manifest commands nothing. One that cannot be read is answered too, under an id made from its text.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidegate_api.conditions import timestamp
from tidegate_api.hashing import content_hash
from tidegate_api.v1alpha1.common import RequestOutcome
from tidegate_operator.core.names import Annotation

FRESH_FOR = timedelta(minutes=10)
VERBS = ("rollback", "promote", "abort", "retry")
OUTCOMES_KEPT = 10


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it was written. `refusal` says why it cannot be carried out, before looking at any rollout."""

    id: str
    verb: str
    to: str = ""
    by: str = ""
    reason: str = ""
    refusal: str = ""

    def outcome(self, result: str, message: str, now: datetime) -> RequestOutcome:
        """Return what is written to status."""
        return RequestOutcome(
            id=self.id,
            verb=self.verb,
            to=self.to,
            by=self.by,
            result=result,
            message=message[:1024],
            at=timestamp(now),
        )


def read_request(
    annotation: str | None, *, uid: str, outcomes: Iterable[RequestOutcome], now: datetime
) -> Request | None:
    """Return the request that has not been answered yet, or None."""
    if not annotation:
        return None
    request = _parse(annotation, uid=uid, now=now)
    return None if any(outcome.id == request.id for outcome in outcomes) else request


def _parse(annotation: str, *, uid: str, now: datetime) -> Request:
    try:
        document = json.loads(annotation)
    except ValueError:
        document = None
    unreadable = Request(id=f"unreadable-{content_hash(annotation)}", verb="")
    if not isinstance(document, dict):
        return _refused(
            unreadable, f"{Annotation.REQUEST} is not a JSON object; write one with id, verb, uid and issuedAt"
        )
    members = {key: document.get(key, "") for key in ("id", "verb", "to", "by", "reason")}
    if not all(isinstance(value, str) and len(value) <= 128 for value in members.values()) or not members["id"]:
        return _refused(
            unreadable, "id, verb, to, by and reason must be strings of at most 128 characters, and id must be given"
        )
    request = Request(**{**members, "verb": members["verb"][:32]})
    if request.verb not in VERBS:
        return _refused(request, f"verb {request.verb!r} is unknown; use one of {', '.join(VERBS)}")
    if document.get("uid") != uid:
        return _refused(request, "uid is not that of this object; read it from metadata.uid and ask again")
    if not _fresh(document.get("issuedAt"), now):
        return _refused(request, "issuedAt is missing, or more than 10 minutes away from now; ask again")
    return request


def _fresh(issued_at: object, now: datetime) -> bool:
    try:
        issued = datetime.fromisoformat(str(issued_at))
    except ValueError:
        return False
    return issued.tzinfo is not None and abs(now - issued) <= FRESH_FOR


def _refused(request: Request, message: str) -> Request:
    return Request(request.id, request.verb, request.to, request.by, request.reason, refusal=message)
