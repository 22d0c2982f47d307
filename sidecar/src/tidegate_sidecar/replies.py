"""Turns what the runtime says into what a caller gets: its answers completed, its errors made harmless."""

import orjson

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.ports import RuntimeReply

RETRY_CODES = frozenset({ErrorCode.RELEASE_UNAVAILABLE, ErrorCode.OVERLOADED})
FAILED = "the runtime failed; its log says why"


def complete(reply: RuntimeReply, added: dict[str, object]) -> bytes:
    """Return the runtime's JSON object with `added` in front of its own members, which are not parsed again.

    Raises:
        RequestError: the body does not look like an object with members.
    """
    if not reply.body.startswith(b'{"'):
        detail = f"the answer of {len(reply.body)} bytes is not an object with members"
        raise RequestError(ErrorCode.INTERNAL, FAILED, detail=detail)
    return b"".join((orjson.dumps(added)[:-1], b",", memoryview(reply.body)[1:]))


def error_of_reply(reply: RuntimeReply) -> RequestError:
    """Return the runtime's error as it is passed on. The words of an internal one stay in the log."""
    try:
        error = orjson.loads(reply.body)["error"]
        code, message = ErrorCode(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError):
        code, message = ErrorCode.INTERNAL, f"status {reply.status} without a readable error"
    if code is ErrorCode.INTERNAL:
        return RequestError(code, FAILED, detail=message)
    return RequestError(code, message, retry_after_seconds=1 if code in RETRY_CODES else None)
