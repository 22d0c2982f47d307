"""Chunk ids: the same document cut the same way has the same ids in every build, process and node.

An id is 16 hexadecimal digits of blake2b over source, document id, how the source is chunked, and
the chunk's ordinal, each length-prefixed. Position in a file, time and order of commits play no
part. Inside the store an id is the unsigned 64-bit number that the digits spell; numbers and digits
sort alike.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate_api.shape import RevisionShape
from tidegate_runtime.ports import DocumentKey


def chunking_fingerprint(shape: RevisionShape, source: str) -> str:
    """Return what makes two cuts of a document of `source` the same cut."""
    chunking = shape.chunking_of(source)
    algorithm = shape.algorithms.get(chunking.strategy, chunking.strategy)
    return f"{algorithm}:{chunking.size_tokens}:{chunking.overlap_tokens}"


def chunk_numbers(key: DocumentKey, *, chunking: str, ordinals: Sequence[int]) -> NDArray[np.uint64]:
    """Return the ids, as numbers, of the chunks of one document."""
    document = hashlib.blake2b(digest_size=8)
    for part in (key.source, key.document_id, chunking):
        encoded = part.encode("utf-8", "surrogatepass")
        document.update(len(encoded).to_bytes(4, "big") + encoded)
    numbers = np.empty(len(ordinals), dtype=np.uint64)
    for position, ordinal in enumerate(ordinals):
        chunk = document.copy()
        encoded = str(ordinal).encode()
        chunk.update(len(encoded).to_bytes(4, "big") + encoded)
        numbers[position] = int.from_bytes(chunk.digest(), "big")
    return numbers


def format_chunk_id(number: int) -> str:
    """Return the id as callers see it."""
    return f"{number:016x}"
