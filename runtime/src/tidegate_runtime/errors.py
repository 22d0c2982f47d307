"""Errors of the runtime plane.

Adapters translate library errors into these once, where they happen; the HTTP edge maps them to
closed codes once. A message is one sentence for the person who can do something about it: it names
the field or object, the value and the next step, and never holds a document's text.
"""

import errno

from tidegate_api.reasons import Reason
from tidegate_api.wire import ErrorCode


class RuntimePlaneError(Exception):
    """Base of all. `code` is what a caller of the HTTP edge sees; `retry_after_seconds` None = do not retry.

    `reason` is what an indexer tells the control plane, where that has a condition for it.
    """

    code = ErrorCode.INTERNAL
    reason = ""
    retry_after_seconds: float | None = None


class InvalidFilterError(RuntimePlaneError):
    """A filter names an undeclared key or has a value of another type."""

    code = ErrorCode.INVALID_REQUEST


class InvalidQueryError(RuntimePlaneError):
    """A request asks for something the release does not have."""

    code = ErrorCode.INVALID_REQUEST


class InvalidPipelineError(RuntimePlaneError):
    """A release's graph cannot be executed: an unknown type, setting or input, or a cycle."""

    code = ErrorCode.INVALID_REQUEST


class RevisionUnavailableError(RuntimePlaneError):
    """A revision is not there yet, incomplete or damaged."""

    code = ErrorCode.RELEASE_UNAVAILABLE
    retry_after_seconds = 1.0


class ReleaseUnavailableError(RuntimePlaneError):
    """A release is not open in this runtime, or still loading."""

    code = ErrorCode.RELEASE_UNAVAILABLE
    retry_after_seconds = 1.0


class DeadlineExceededError(RuntimePlaneError):
    """The request's time was up before there was an answer."""

    code = ErrorCode.DEADLINE_EXCEEDED


class ModelUnavailableError(RuntimePlaneError):
    """A model's files are missing, damaged or do not match their digest."""


class UnusableVectorError(RuntimePlaneError):
    """An encoder gave a zero vector or one that is not finite."""


def is_no_room(error: OSError) -> bool:
    """Tell whether a volume, or what this user may use of it, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class StoreFullError(RuntimePlaneError):
    """The volume has no room; nothing was changed."""

    reason = Reason.STORE_FULL.value
    retry_after_seconds = 60.0


class StateVersionError(RuntimePlaneError):
    """A state folder was written by another version of the store."""


class UnreadableDocumentError(RuntimePlaneError):
    """One document cannot be indexed: binary, too large, wrong encoding, a broken line."""


class UnreadableSourceError(RuntimePlaneError):
    """A whole source cannot be read: missing, empty, no permission."""

    retry_after_seconds = 15.0
