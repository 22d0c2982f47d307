"""One revision that should exist: its writer, what it lacks, and what is told of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tidegate_api.config import DocumentFailure, RevisionConfig, RevisionState
from tidegate_runtime.indexer.languages import ForeignChunks
from tidegate_runtime.indexer.schedule import Backoff
from tidegate_runtime.ports import DocumentKey, IndexWriter

Phase = Literal["Pending", "Building", "Ready", "Failed"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A document that this revision could not store in the version with this hash."""

    content_hash: str
    reason: str


@dataclass(slots=True)
class Tally:
    """What was committed since the last complete pass."""

    added: int = 0
    changed: int = 0
    deleted: int = 0


@dataclass(slots=True)
class LiveRevision:
    """State of one revision, owned by the loop. `writer` is None while the revision cannot be opened.

    `mismatch` says that too many chunks are foreign to the encoder, as of `counted_generation`. `compared`
    says that this process has brought it in step once: only then are its refused documents known.
    """

    config: RevisionConfig
    created_at: str
    ready_at: str | None
    dense: bool = False
    writer: IndexWriter | None = None
    phase: Phase = "Pending"
    message: str = ""
    reason: str = ""
    documents_total: int = 0
    documents_left: int = 0
    compared: bool = False
    refused: dict[DocumentKey, Refusal] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    backoff: Backoff = field(default_factory=Backoff)
    retry_at: float | None = None
    mismatch: bool = False
    counted_generation: int | None = None
    foreign: ForeignChunks = field(init=False)

    def __post_init__(self) -> None:
        self.foreign = ForeignChunks(self.config.shape.embedder)

    @property
    def name(self) -> str:
        """Return the revision's name."""
        return self.config.name

    def tell(self, message: str, *, reason: str = "") -> None:
        """Say what is the matter with the revision; empty = nothing."""
        self.message, self.reason = message, reason

    def refused_hashes(self) -> dict[DocumentKey, str]:
        """Return what need not be tried again."""
        return {key: refusal.content_hash for key, refusal in self.refused.items()}

    def failures(self, *, others: Iterable["LiveRevision"]) -> list[DocumentFailure]:
        """Return the documents that were refused, with reasons.

        One that a newer revision of `others` serves as it stands fails no more: the shape was corrected, and this
        revision, which keeps its own, goes with what still refers to it.
        """
        if not self.refused:
            return []
        newer = [other.serves() for other in others if other.created_at > self.created_at]
        return [
            DocumentFailure(document=f"{key.source}/{key.document_id}", reason=refusal.reason)
            for key, refusal in self.refused.items()
            if not any(serves.get(key) == refusal.content_hash for serves in newer)
        ]

    def serves(self) -> Mapping[DocumentKey, str]:
        """Return the content hash of every document that queries find here; none before it is ready."""
        return {} if self.writer is None or self.phase != "Ready" else self.writer.documents()

    def state(self) -> RevisionState:
        """Return what is told of the revision."""
        shape = self.config.shape
        told = RevisionState(
            name=self.name,
            phase=self.phase,
            message=self.message,
            reason=self.reason,
            documents_done=self.documents_total - self.documents_left,
            documents_total=self.documents_total,
            language=shape.language,
            embedder=shape.embedder.summary(),
            provides=[] if self.phase != "Ready" else ["bm25", "dense"] if self.dense else ["bm25"],
            created_at=self.created_at,
            ready_at=self.ready_at,
        )
        if self.writer is None:
            return told
        stats = self.writer.stats()
        return told.model_copy(
            update={
                "documents": stats.documents,
                "chunks": stats.chunks,
                "size_bytes": stats.size_bytes,
                "load_bytes": stats.load_bytes,
                "truncated_chunks": stats.truncated_chunks,
                "content_generation": stats.content_generation,
            }
        )
