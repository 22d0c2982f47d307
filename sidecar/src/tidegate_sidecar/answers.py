"""Answers of the sidecar: status, headers and bytes, and the error envelope every refusal wears."""

import math
import os
from http import HTTPStatus
from typing import NamedTuple

import orjson

from tidegate_api.wire import STATUS_OF_CODE, ErrorCode
from tidegate_sidecar.errors import RequestError

JSON = b"application/json"
STATUS_LINE = {int(status): f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Response(NamedTuple):
    """One answer. `fields` are header lines of ours, each with its CRLF; never a caller's bytes."""

    status: int
    body: bytes
    fields: bytes = b""
    content_type: bytes = JSON

    def encode(self, date: bytes, *, keep_alive: bool) -> bytes:
        """Return the bytes that go out."""
        head = b"%bcontent-type: %b\r\ncontent-length: %d\r\ndate: %b\r\n%b%b\r\n" % (
            STATUS_LINE[self.status],
            self.content_type,
            len(self.body),
            date,
            self.fields,
            b"" if keep_alive else b"connection: close\r\n",
        )
        return head + self.body


def new_query_id() -> str:
    """Return an id that nobody can guess and no two requests share."""
    return os.urandom(12).hex()


def error_response(error: RequestError, *, query_id: str | None = None, fields: bytes = b"") -> Response:
    """Return the envelope of every error."""
    body = {"error": {"code": error.code, "message": error.message, "query_id": query_id or new_query_id()}}
    if error.code is ErrorCode.UNAUTHENTICATED:
        fields += b"www-authenticate: Bearer\r\n"
    if error.retry_after_seconds is not None:
        fields += b"retry-after: %d\r\n" % max(1, math.ceil(error.retry_after_seconds))
    return Response(STATUS_OF_CODE[error.code], orjson.dumps(body), fields)
