"""Ports of the runtime: what use cases may ask of models and stores.

Adapters live in `models/` and `stores/`; each port has one contract-test class that runs against
every adapter. Scores are comparable only within one leg of one revision. Arrays are numpy; shapes
are given per method.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate_api.shape import EmbedderFingerprint
from tidegate_api.wire import Filter, Scalar

FloatVector = NDArray[np.float32]
Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class Tokenizer(Protocol):
    """Counts and cuts text in the units that an encoder reads."""

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character span of every token of `text`, special tokens and truncation left out."""


class Embedder(Protocol):
    """Turns text into unit vectors. Thread-safe: adapters serialise what their library cannot share."""

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Return what makes this encoder's vectors comparable."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer that chunk sizes are counted in."""

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors, shape (len(texts), dimension). A vector that is zero or not finite is returned as NaN."""

    def embed_query(self, text: str) -> FloatVector:
        """Return one unit vector, shape (dimension,).

        Raises:
            UnusableVectorError: the encoder gave a zero vector or one that is not finite.
        """


@dataclass(frozen=True, slots=True)
class Permission:
    """Who asks: decides which documents exist for them. Absent means the least: public documents only."""

    tenant: str | None = None
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The answer of a leg: rows of a snapshot, best first, ties by chunk id, scores above zero only (bm25)."""

    rows: Rows
    scores: Scores


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query after analysis: distinct terms in a fixed order and how often each stands in the query."""

    terms: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is shown: `content` equals the original's slice [start, end)."""

    chunk_id: str
    document_id: str
    source: str
    title: str
    content: str
    start: int
    end: int
    metadata: Mapping[str, Scalar | list[Scalar]]


class Selection(Protocol):
    """Rows of a snapshot that a caller may see and a filter accepts. Opaque to callers; made by `select`."""


class IndexSnapshot(Protocol):
    """One immutable view of one revision at one content generation. Thread-safe; legs never mix generations."""

    @property
    def revision(self) -> str:
        """Return the revision's name."""

    @property
    def content_generation(self) -> int:
        """Return the generation of content that this view shows."""

    @property
    def provides(self) -> frozenset[str]:
        """Return the legs this view can answer: `bm25`, `dense`. The latter is missing for one reason: too many of
        its chunks are in languages that the revision's encoder does not read.
        """

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Return what queries must be embedded with."""

    def select(self, permission: Permission, filters: Filter | None) -> Selection:
        """Return the visible rows.

        Raises:
            InvalidFilterError: a key is not declared in metadataSchema, or a value has another type.
        """

    def analyse(self, query: str) -> LexicalQuery:
        """Return the terms of `query` under the revision's analyzer."""

    def lexical(self, query: LexicalQuery, selection: Selection, *, top_k: int) -> Candidates:
        """Return the best rows by BM25 over live documents; rows that match no term are left out."""

    def dense(self, vector: FloatVector, selection: Selection, *, top_k: int) -> Candidates:
        """Return the best rows by cosine (int8 dot product, exact scan)."""

    def lexical_scores(self, query: LexicalQuery, rows: Rows) -> Scores:
        """Return the BM25 score of each of `rows`, 0 where no term matches."""

    def dense_scores(self, vector: FloatVector, rows: Rows) -> Scores:
        """Return the cosine of each of `rows`."""

    def idf_coverage(self, query: LexicalQuery, rows: Rows) -> Scores:
        """Return, for each of `rows`, the share of the query's idf mass that its terms cover (0..1).

        Terms that no live chunk has count with the highest possible idf.
        """

    def chunk_ids(self, rows: Rows) -> list[str]:
        """Return chunk ids; equal scores are ordered by them."""

    def chunks(self, rows: Rows) -> list[StoredChunk]:
        """Return the stored chunks, in the order of `rows`."""


class IndexReader(Protocol):
    """Opens a revision and follows it as its content changes."""

    def snapshot(self) -> IndexSnapshot:
        """Return the newest complete view.

        Raises:
            RevisionUnavailableError: nothing complete is there yet, or it is damaged.
        """

    def close(self) -> None:
        """Release files and memory; snapshots already handed out stay valid until they are dropped."""


# --- the writing side ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Identity of a document inside a knowledge base. The same id in two sources is two documents."""

    source: str
    document_id: str


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk to be stored. `vector` is a unit vector, shape (dimension,), or None without a dense leg."""

    ordinal: int
    start: int
    end: int
    content: str
    heading: str
    vector: FloatVector | None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document with its chunks, replacing any earlier version of the same key whole."""

    key: DocumentKey
    content_hash: str
    title: str
    chunks: tuple[ChunkRecord, ...]
    metadata: Mapping[str, Scalar | list[Scalar]] = field(default_factory=dict)
    tenants: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceRules:
    """What holds for every document of a source; changed at once, without touching segments."""

    tenants: tuple[str, ...]
    metadata: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class RevisionStats:
    """Figures of a revision for status."""

    documents: int
    chunks: int
    size_bytes: int
    load_bytes: int
    truncated_chunks: int
    content_generation: int


class IndexWriter(Protocol):
    """The one writer of a revision. A commit is atomic: after a kill -9 the revision is at the one before or the one after."""

    def documents(self) -> Mapping[DocumentKey, str]:
        """Return the content hash of every live document: the manifest that the loop compares with the source."""

    def commit(
        self,
        *,
        upserts: Sequence[DocumentRecord] = (),
        deletes: Sequence[DocumentKey] = (),
        rules: Mapping[str, SourceRules] | None = None,
    ) -> int:
        """Apply a batch and return the content generation after it (unchanged when nothing differed).

        `rules`, when given, replaces the rules of all sources. A document whose source has no rules is visible to nobody.

        Raises:
            StoreFullError: the disk is full; the revision is as it was before.
        """

    @property
    def ready(self) -> bool:
        """Whether the revision passed its checks."""

    @property
    def dense(self) -> bool:
        """Whether it was marked ready with a dense leg."""

    def mark_ready(self, *, dense: bool) -> None:
        """Record that the revision passed its checks; readers open only such revisions."""

    def stats(self) -> RevisionStats:
        """Return figures for status."""

    def compact(self) -> None:
        """Merge small segments and drop deleted chunks; answers do not change by a bit."""

    def close(self) -> None:
        """Release files."""


# --- before a revision may be called ready -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InspectedChunk:
    """A live chunk with all that its vector was made of."""

    row: int
    title: str
    heading: str
    content: str


class RevisionInspection(Protocol):
    """A look into a revision that need not be ready, at every live row whoever may read it."""

    @property
    def snapshot(self) -> IndexSnapshot:
        """Return the view that readers would get."""

    @property
    def everything(self) -> Selection:
        """Return all live rows."""

    def sample(self, count: int) -> Sequence[InspectedChunk]:
        """Return up to `count` chunks, the same ones in every build of the same content."""

    def contents(self) -> Iterator[tuple[DocumentKey, str]]:
        """Yield document and content of every live chunk."""

    def rows_without_vector(self) -> int:
        """Return how many live rows have no vector, or one that is zero."""
