"""Segment files: named arrays in one immutable file that is mapped, not parsed.

Layout: 16 bytes (magic, length and checksum of the table), a JSON table of the arrays, then each
array at a multiple of 64 bytes from the end of the table's block. All numbers are little-endian.
Names of files are digests of their content, so a name never stands for two contents. Opening checks
the table and that every array lies inside the file; contents are checked by whoever copied the file.
"""

import hashlib
import json
import mmap
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.errors import RevisionUnavailableError

Array = NDArray[Any]

FORMAT_VERSION = 1
_MAGIC = b"tidegate"
_PREFIX = struct.Struct("<8sII")
_ALIGNMENT = 64
_DTYPES = frozenset({"|i1", "|u1", "|b1", "<u2", "<i4", "<u4", "<i8", "<u8", "<f8"})


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """The bytes of a file, in parts, with what a manifest says about it."""

    parts: tuple[bytes | memoryview, ...]
    sha256: str
    size_bytes: int


def encode(parts: tuple[bytes | memoryview, ...]) -> EncodedFile:
    """Return `parts` with digest and size."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return EncodedFile(parts=parts, sha256=digest.hexdigest(), size_bytes=sum(len(part) for part in parts))


def encode_segment(arrays: Mapping[str, Array]) -> EncodedFile:
    """Return the bytes of a segment file that holds `arrays`."""
    table: dict[str, object] = {}
    blocks: list[bytes | memoryview] = []
    offset = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array)
        table[name] = {"dtype": data.dtype.str, "shape": list(data.shape), "offset": offset}
        if data.nbytes:
            blocks.append(data.reshape(-1).view(np.uint8).data)
        padding = -data.nbytes % _ALIGNMENT
        blocks.append(bytes(padding))
        offset += data.nbytes + padding
    encoded = json.dumps({"format": FORMAT_VERSION, "arrays": table}, separators=(",", ":")).encode()
    head = _PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)) + encoded
    return encode((head, bytes(-len(head) % _ALIGNMENT), *blocks))


def decode_segment(content: mmap.mmap | bytes, *, name: str) -> dict[str, Array]:
    """Return the arrays of a segment file as views of `content`.

    Raises:
        RevisionUnavailableError: the file is damaged.
    """
    try:
        return dict(_views(content))
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise RevisionUnavailableError(
            f"segment file {name} is damaged ({error}); remove the revision's folder to fetch or build it again"
        ) from error


def _views(content: mmap.mmap | bytes) -> Iterator[tuple[str, Array]]:
    magic, length, checksum = _PREFIX.unpack(content[: _PREFIX.size])
    encoded = content[_PREFIX.size : _PREFIX.size + length]
    if magic != _MAGIC or zlib.crc32(encoded) != checksum:
        raise ValueError("its table does not match its checksum")
    table = json.loads(encoded)
    if table["format"] != FORMAT_VERSION:
        raise ValueError(f"format {table['format']}, expected {FORMAT_VERSION}")
    start = -(-(_PREFIX.size + length) // _ALIGNMENT) * _ALIGNMENT
    for name, entry in table["arrays"].items():
        shape = tuple(entry["shape"])
        if entry["dtype"] not in _DTYPES or min(*shape, entry["offset"]) < 0:
            raise ValueError(f"its table says {entry} of {name}")
        count = int(np.prod(shape, dtype=np.int64))
        # frombuffer refuses an array that would reach past the end of the file.
        flat = np.frombuffer(content, dtype=entry["dtype"], count=count, offset=start + entry["offset"] if count else 0)
        yield name, flat.reshape(shape)
