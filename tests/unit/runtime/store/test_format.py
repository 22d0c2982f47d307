"""Segment files: what is put in comes out as a view, and nonsense is told from content."""

import hashlib
import json
import struct
import zlib

import numpy as np
import pytest

from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.stores.embedded.format import Array, decode_segment, encode_segment

ARRAYS: dict[str, Array] = {
    "bytes": np.arange(-5, 5, dtype=np.int8).reshape(5, 2),
    "empty": np.zeros(0, dtype=np.int64),
    "no_rows": np.zeros((0, 384), dtype=np.int8),
    "numbers": np.array([1.5, -0.0, np.inf]),
    "names": np.array([2**64 - 1], dtype=np.uint64),
    "flags": np.array([True, False]),
}


def encoded() -> bytes:
    return b"".join(bytes(part) for part in encode_segment(ARRAYS).parts)


def test_arrays_come_back_with_type_and_shape() -> None:
    decoded = decode_segment(encoded(), name="x")
    assert list(decoded) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert decoded[name].dtype == array.dtype
        assert decoded[name].shape == array.shape
        assert decoded[name].tobytes() == array.tobytes()


def test_size_and_digest_are_those_of_the_file() -> None:
    file = encode_segment(ARRAYS)
    assert file.size_bytes == len(encoded())
    assert file.sha256 == hashlib.sha256(encoded()).hexdigest()


def test_arrays_are_aligned_and_cannot_be_written() -> None:
    content = encoded()
    base = np.frombuffer(content, dtype=np.uint8).__array_interface__["data"][0]
    for array in decode_segment(content, name="x").values():
        if array.size:
            assert (array.__array_interface__["data"][0] - base) % 64 == 0
            assert not array.flags.writeable


def with_table(table: object) -> bytes:
    head = json.dumps(table).encode()
    return struct.pack("<8sII", b"tidegate", len(head), zlib.crc32(head)) + head + bytes(200)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"tidegate" + bytes(60),
        encoded()[:100],
        encoded()[:-64],
        with_table({"format": 2, "arrays": {}}),
        with_table({"format": 1}),
        with_table([]),
        with_table({"format": 1, "arrays": {"a": {"dtype": "O", "shape": [1], "offset": 0}}}),
        with_table({"format": 1, "arrays": {"a": {"dtype": "<f8", "shape": [9999], "offset": 0}}}),
        with_table({"format": 1, "arrays": {"a": {"dtype": "<f8", "shape": [-1], "offset": 0}}}),
        with_table({"format": 1, "arrays": {"a": {"dtype": "<f8", "shape": [1], "offset": -64}}}),
        with_table({"format": 1, "arrays": {"a": {"dtype": "<f8", "shape": [1], "offset": 2**40}}}),
        with_table({"format": 1, "arrays": {"a": {"dtype": "<f8", "shape": "x", "offset": 0}}}),
    ],
    ids=range(14),
)
def test_a_damaged_file_is_told_by_name(content: bytes) -> None:
    with pytest.raises(RevisionUnavailableError, match=r"abc\.segment is damaged"):
        decode_segment(content, name="abc.segment")
