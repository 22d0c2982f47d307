"""A segment: documents, their chunks and their postings as named arrays.

Row = a chunk's place in its segment; rows of one document are contiguous, in order of ordinal, and
documents stand in order of arrival. Postings are keyed by the 64-bit hash of a term (two of a
million distinct terms share one with a probability of 3e-8; they would be found together), sorted
by key, then row. Arrays of a segment never change: what is deleted is said by the manifest.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.ports import DocumentKey
from tidegate_runtime.stores.embedded.format import Array

_SURROGATES = "surrogatepass"


@lru_cache(maxsize=65_536)
def term_key(term: str) -> int:
    """Return the number that stands for `term` in postings."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", _SURROGATES), digest_size=8).digest(), "big")


def encode_json(value: object) -> bytes:
    """Encode so that equal values give equal bytes and any string, lone surrogates too, survives."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class Strings:
    """Strings as one block of UTF-8 and the offsets that cut it."""

    block: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __getitem__(self, index: int) -> str:
        return self.raw(index).decode("utf-8", _SURROGATES)

    def raw(self, index: int) -> bytes:
        """Return the bytes of one string."""
        return self.block[self.offsets[index] : self.offsets[index + 1]].tobytes()


def encode_strings(name: str, values: Sequence[str | bytes]) -> dict[str, Array]:
    """Return the two arrays that `Strings` reads."""
    encoded = [value if isinstance(value, bytes) else value.encode("utf-8", _SURROGATES) for value in values]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    return {f"{name}.block": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}.offsets": offsets}


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one metadata field: value i belongs to document `documents[i]`; a document may have several.

    Keywords are numbers into the segment's dictionary.
    """

    documents: NDArray[np.int32]
    values: Array


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read documents that share this: None inherits from the source, empty groups ask for none."""

    tenants: tuple[str, ...] | None
    groups: tuple[str, ...]

    def sort_key(self) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
        """Return what orders entries in a dictionary."""
        return self.tenants is not None, self.tenants or (), self.groups


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """Values that many documents share; arrays hold their numbers."""

    sources: tuple[str, ...]
    access: tuple[Access, ...]
    keywords: Mapping[str, tuple[str, ...]]

    def encode(self) -> bytes:
        """Return the stored form."""
        access = [[entry.tenants, entry.groups] for entry in self.access]
        return encode_json([self.sources, access, self.keywords])

    @staticmethod
    def decode(content: bytes) -> "Dictionaries":
        """Parse the stored form."""
        sources, access, keywords = json.loads(content)
        return Dictionaries(
            sources=tuple(sources),
            access=tuple(
                Access(None if tenants is None else tuple(tenants), tuple(groups)) for tenants, groups in access
            ),
            keywords={field: tuple(words) for field, words in keywords.items()},
        )


class Segment:
    """Typed access to the arrays of one segment. Immutable, shared between snapshots and threads."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.chunk_numbers: NDArray[np.uint64] = arrays["chunk_numbers"]
        self.vectors: NDArray[np.int8] = arrays["vectors"]
        self.has_vector: NDArray[np.bool_] = arrays["has_vector"]
        self.row_documents: NDArray[np.int32] = arrays["row_documents"]
        self.first_rows: NDArray[np.int64] = arrays["first_rows"]
        self.ordinals: NDArray[np.int32] = arrays["ordinals"]
        self.starts: NDArray[np.int64] = arrays["starts"]
        self.ends: NDArray[np.int64] = arrays["ends"]
        self.lengths: NDArray[np.int32] = arrays["lengths"]
        self.truncated: NDArray[np.bool_] = arrays["truncated"]
        self.term_keys: NDArray[np.uint64] = arrays["term_keys"]
        self.term_starts: NDArray[np.int64] = arrays["term_starts"]
        self.posting_rows: NDArray[np.int32] = arrays["posting_rows"]
        self.posting_counts: Array = arrays["posting_counts"]
        self.source_numbers: NDArray[np.int32] = arrays["source_numbers"]
        self.access_numbers: NDArray[np.int32] = arrays["access_numbers"]
        self.digests: NDArray[np.uint8] = arrays["digests"]
        self.contents = _strings(arrays, "contents")
        self.headings = _strings(arrays, "headings")
        self.document_ids = _strings(arrays, "document_ids")
        self.content_hashes = _strings(arrays, "content_hashes")
        self.titles = _strings(arrays, "titles")
        self.metadata = _strings(arrays, "metadata")
        self.dictionaries = Dictionaries.decode(arrays["dictionaries"].tobytes())
        self._columns = {name: array for name, array in arrays.items() if name.startswith("column.")}
        self.fields = tuple(
            name.removeprefix("column.").removesuffix(".documents")
            for name in self._columns
            if name.endswith(".documents")
        )

    @property
    def rows(self) -> int:
        """Return how many chunks are stored, dead ones too."""
        return len(self.chunk_numbers)

    @property
    def documents(self) -> int:
        """Return how many documents are stored, dead ones too."""
        return len(self.source_numbers)

    @cached_property
    def keyword_numbers(self) -> Mapping[str, Mapping[str, int]]:
        """Return, by field, the number of each keyword."""
        return {
            field: {word: number for number, word in enumerate(words)}
            for field, words in self.dictionaries.keywords.items()
        }

    def column(self, field: str) -> Column:
        """Return the values of a declared metadata field."""
        return Column(self._columns[f"column.{field}.documents"], self._columns[f"column.{field}.values"])

    def key(self, document: int) -> DocumentKey:
        """Return the identity of a document."""
        return DocumentKey(self.dictionaries.sources[self.source_numbers[document]], self.document_ids[document])

    def postings(self, key: int) -> tuple[NDArray[np.int32], Array]:
        """Return rows that hold a term and how often, empty when none does."""
        position = int(np.searchsorted(self.term_keys, np.uint64(key)))
        if position == len(self.term_keys) or int(self.term_keys[position]) != key:
            return self.posting_rows[:0], self.posting_counts[:0]
        start, end = int(self.term_starts[position]), int(self.term_starts[position + 1])
        return self.posting_rows[start:end], self.posting_counts[start:end]


def _strings(arrays: Mapping[str, Array], name: str) -> Strings:
    return Strings(arrays[f"{name}.block"], arrays[f"{name}.offsets"])
