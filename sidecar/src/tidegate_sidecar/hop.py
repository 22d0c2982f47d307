"""The hop to a peer: a request whose release another Deployment holds, signed so that only sidecars may send it.

The body is the whole SearchRequest: release, identity, deadline. Its signature is HMAC-SHA256 over
expiry and body with a key that only the pods of this pipeline mount; two keys are live at a time, so
that they can be exchanged. The receiver does what it is told: it never routes, caches, counts or
forwards. Replayed before it expires, a hop answers the same question again and changes nothing.
"""

import hashlib
import hmac
from collections.abc import Sequence

HOP_HEADER = b"x-tidegate-hop"
HOP_LINE = b"POST /v1/hop"
# Stands on the refusal of a hop whose request was in the hands of a runtime when that ended.
TAKEN_HEADER = b"x-tidegate-taken"
TAKEN_FIELD = TAKEN_HEADER + b": 1\r\n"
# Clocks of two nodes may differ by this much.
CLOCK_SKEW_SECONDS = 60


def hop_field(key: bytes, body: bytes, *, expires_at: float) -> bytes:
    """Return the header line that signs `body` until `expires_at`, in seconds since the epoch."""
    expiry = str(int(expires_at) + CLOCK_SKEW_SECONDS).encode()
    return b"%b: %b.%b\r\n" % (HOP_HEADER, expiry, _signature(key, expiry, body))


def hop_problem(keys: Sequence[bytes], signed: bytes | None, body: bytes, *, now: float) -> str:
    """Return why a hop is not believed; empty = it is."""
    if signed is None:
        return "the hop is not signed"
    expiry, _, signature = signed.partition(b".")
    if not any(hmac.compare_digest(_signature(key, expiry, body), signature) for key in keys):
        return "the hop's signature is not of this pipeline"
    if not expiry.isdigit() or int(expiry) < now:
        return "the hop has expired"
    return ""


def _signature(key: bytes, expiry: bytes, body: bytes) -> bytes:
    return hmac.new(key, expiry + b"\n" + body, hashlib.sha256).hexdigest().encode()
