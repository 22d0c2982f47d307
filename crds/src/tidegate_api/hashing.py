"""Stable hashes: content addresses, names and traffic buckets.

Every process, version and replica must compute the same value, so nothing here depends on
Python's own `hash()`, dictionary order or locale. Buckets follow the statistics document: blake2b
with an 8-byte digest over length-prefixed UTF-8 parts in Unicode NFC. The known answers in
`tests/unit/api/test_hashing.py` freeze the result for ever: changing one re-deals every user.
"""

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"

BUCKETS = 10_000


def canonical_json(value: Json) -> bytes:
    """Encode `value` so that equal values give equal bytes: sorted keys, no spaces, UTF-8, integral floats as integers."""
    return json.dumps(
        _normalised(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def content_hash(value: Json, *, length: int = 10) -> str:
    """Return `length` hexadecimal digits that name `value`."""
    return hashlib.blake2b(canonical_json(value), digest_size=32).hexdigest()[:length]


def bucket(*parts: str, modulus: int = BUCKETS) -> int:
    """Return the bucket of a unit: `H(parts) mod modulus`.

    Parts are length-prefixed, so ("ab", "c") and ("a", "bc") differ; they are brought to NFC, so one
    user written in two Unicode forms stays one unit.
    """
    return BucketSeries(*parts[:-1], modulus=modulus).bucket(parts[-1])


class BucketSeries:
    """Buckets of many units that share their first parts, which are hashed once."""

    __slots__ = ("_modulus", "_start")

    def __init__(self, *parts: str, modulus: int = BUCKETS) -> None:
        self._modulus = modulus
        self._start = hashlib.blake2b(digest_size=8)
        for part in parts:
            self._start.update(_prefixed(part))

    def bucket(self, unit: str) -> int:
        """Return the same as `bucket` of all parts and `unit`."""
        digest = self._start.copy()
        digest.update(_prefixed(unit))
        return int.from_bytes(digest.digest(), "big") % self._modulus


def _prefixed(part: str) -> bytes:
    encoded = (part if part.isascii() else unicodedata.normalize("NFC", part)).encode()
    return len(encoded).to_bytes(4, "big") + encoded


def _normalised(value: Json) -> Json:
    if value is None or isinstance(value, str | int):  # most of every document: leave before the slow tests
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _normalised(item) for key, item in value.items()}
    return [_normalised(item) for item in value] if isinstance(value, Sequence) else value
