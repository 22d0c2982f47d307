"""Which request heads are acceptable: the part of the HTTP grammar that a parser leaves open. Pure.

llhttp without leniencies refuses bare LF, folded lines, NUL, space before a colon, a doubled or
malformed Content-Length, Content-Length beside Transfer-Encoding and malformed chunks. Here the rest
is decided, always for the reading that no other parser can take differently: one origin-form
target, one Host, `chunked` as the only transfer coding and only in HTTP/1.1, no Upgrade. The corpus
in tests/unit/sidecar/smuggling holds both halves.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from tidegate_api.wire import (
    HEADER_PROXY_SECRET,
    HEADER_RELEASE,
    HEADER_SESSION,
    HEADER_TENANT,
    HEADER_USER,
    ErrorCode,
)
from tidegate_sidecar.errors import RequestError, shown

# One empty line before a request is allowed by RFC 9112, 2.2; everything else is exact.
REQUEST_LINE = re.compile(rb"(?:\r\n)?(GET|POST|PUT|PATCH|DELETE) (/[!-\"$-~]*) HTTP/1\.([01])\r\n")
HOST = re.compile(rb"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# A field that decides who is asked for or how bytes are read must not be said twice.
SINGLE = frozenset(
    name.encode()
    for name in (
        "host",
        "content-length",
        "transfer-encoding",
        "authorization",
        "expect",
        HEADER_PROXY_SECRET,
        HEADER_RELEASE,
        HEADER_SESSION,
        HEADER_TENANT,
        HEADER_USER,
    )
)
MAX_CONTENT_LENGTH_DIGITS = 12

Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Bounds that are checked before a body is read."""

    max_head_bytes: int = 16_384
    max_fields: int = 100
    max_body_bytes: int = 131_072


def refused(message: str) -> RequestError:
    """Return the error for a request that is malformed or asks for what this front does not do."""
    return RequestError(ErrorCode.INVALID_REQUEST, message)


def too_large(what: str, limit: int, unit: str) -> RequestError:
    """Return the error for a part of a request that is over its limit."""
    return RequestError(ErrorCode.TOO_LARGE, f"{what} exceeds {limit} {unit}; send less")


def joined(key: bytes, first: bytes, second: bytes) -> bytes:
    """Return the value of a repeated field, as HTTP joins it, unless its meaning would become doubtful."""
    if key in SINGLE:
        raise refused(f"header {key.decode('latin-1')} came more than once; send it once")
    return b"%b, %b" % (first, second)


def check_head(raw: bytes, headers: Headers, limits: HeadLimits) -> tuple[bytes, bytes, bytes]:
    """Return method, target and minor version, or raise what is wrong. `raw` may go on into the body."""
    if len(raw) > limits.max_head_bytes and raw.find(b"\r\n\r\n", 2) > limits.max_head_bytes:
        raise too_large("the head", limits.max_head_bytes, "bytes")
    if len(headers) > limits.max_fields:
        raise too_large("the head", limits.max_fields, "fields")
    line = REQUEST_LINE.match(raw)
    if line is None:
        raise refused("the request line must be `METHOD /path HTTP/1.1` with one of GET, POST, PUT, PATCH, DELETE")
    method, target, minor_version = line.groups()
    if b"host" not in headers:
        raise refused("header host is missing; send it once")
    _check_host(headers[b"host"])
    if b"upgrade" in headers:
        raise refused("the connection can't be upgraded; leave out the header upgrade")
    if b"transfer-encoding" in headers:
        _check_coding(headers, minor_version)
    elif b"content-length" in headers and _content_length(headers[b"content-length"]) > limits.max_body_bytes:
        raise too_large("the body", limits.max_body_bytes, "bytes")
    return method, target, minor_version


def waits_for_continue(expectation: bytes, minor_version: bytes) -> bool:
    """Return whether the caller sends its body only once it is told to."""
    if expectation.lower() != b"100-continue":
        raise refused(f"header expect: {_shown(expectation)} is not `100-continue`")
    return minor_version == b"1"


@lru_cache(maxsize=64)
def _check_host(host: bytes) -> None:
    if HOST.fullmatch(host) is None:
        raise refused(f"header host: {_shown(host)} is not a host name with an optional port")


def _content_length(length: bytes) -> int:
    if not length.isdigit() or len(length) > MAX_CONTENT_LENGTH_DIGITS:
        raise refused(f"header content-length: {_shown(length)} is not a number of bytes")
    return int(length)


def _check_coding(headers: Headers, minor_version: bytes) -> None:
    coding = headers[b"transfer-encoding"]
    if b"content-length" in headers:
        raise refused("content-length and transfer-encoding came together; send one of them")
    if coding.lower() != b"chunked":
        raise refused(f"header transfer-encoding: {_shown(coding)} is not `chunked`, the only coding that is read")
    if minor_version == b"0":
        raise refused("HTTP/1.0 has no transfer-encoding; send content-length")


def _shown(value: bytes) -> str:
    return shown(value.decode("latin-1"))
