"""Turns documents that must be stored into records: load, cut, embed, in batches of bounded size.

A batch is what a kill may cost and what an order to stop has to wait for. A document is never split
over two of them, since it is replaced whole. One whose metadata does not fit the schema (an index
that took it would hide it from filters) or whose text the encoder can make nothing of is refused by
name; it takes no other document with it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate_api.metadata import metadata_misfit
from tidegate_api.shape import EmbedderFingerprint, RevisionShape
from tidegate_runtime.indexer.changes import FileWork
from tidegate_runtime.indexer.chunkers import Chunk, chunk, is_truncated, passage_text
from tidegate_runtime.indexer.live import Refusal
from tidegate_runtime.indexer.loaders import LoadedFile, SourceDocument
from tidegate_runtime.ports import ChunkRecord, DocumentKey, DocumentRecord, Embedder, FloatVector

BATCH_DOCUMENTS = 64
BATCH_CHUNKS = 256

OpenEmbedder = Callable[[EmbedderFingerprint], Embedder]


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document and its chunks, not embedded yet. One that is refused, for the reason given, is not cut."""

    document: SourceDocument
    chunks: tuple[Chunk, ...]
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a batch: records to store, and documents that are refused."""

    records: list[DocumentRecord]
    refused: dict[DocumentKey, Refusal]


class Workshop:
    """Makes the records of one revision. The encoder is opened with the first document that needs it."""

    def __init__(
        self, shape: RevisionShape, *, load: Callable[[str, str], LoadedFile], open_embedder: OpenEmbedder
    ) -> None:
        self._shape = shape
        self._load = load
        self._open_embedder = open_embedder

    def batches(self, work: Iterable[FileWork]) -> Iterator[list[CutDocument]]:
        """Yield the documents of `work`, cut, in its order."""
        batch: list[CutDocument] = []
        chunks = 0
        for document in self._documents(work):
            batch.append(self._cut(document))
            chunks += len(batch[-1].chunks)
            if len(batch) >= BATCH_DOCUMENTS or chunks >= BATCH_CHUNKS:
                yield batch
                batch, chunks = [], 0
        if batch:
            yield batch

    def records(self, batch: Sequence[CutDocument]) -> Made:
        """Embed a batch."""
        refused = [cut for cut in batch if cut.refused]
        made = Made([], {cut.document.key: Refusal(cut.document.content_hash, cut.refused) for cut in refused})
        if len(refused) < len(batch):
            self._embed([cut for cut in batch if not cut.refused], made)
        return made

    def _embed(self, batch: Sequence[CutDocument], made: Made) -> None:
        embedder = self.embedder()
        passages = [
            passage_text(cut.document.title, piece.heading, piece.content, tokenizer=embedder.tokenizer)
            for cut in batch
            for piece in cut.chunks
        ]
        vectors = embedder.embed_passages(passages) if passages else np.zeros((0, 1), dtype=np.float32)
        usable = np.logical_and(np.isfinite(vectors).all(axis=1), vectors.any(axis=1))
        first = 0
        for cut in batch:
            rows = slice(first, first + len(cut.chunks))
            first = rows.stop
            if usable[rows].all():
                made.records.append(_record(cut, list(vectors[rows]), embedder))
            else:
                number = int(np.argmin(usable[rows]))
                reason = f"the encoder gave no usable vector for chunk {number}; look at its text, or leave it out"
                made.refused[cut.document.key] = Refusal(cut.document.content_hash, reason)

    def embedder(self) -> Embedder:
        """Return the revision's encoder.

        Raises:
            ModelUnavailableError: it cannot be opened.
        """
        return self._open_embedder(self._shape.embedder)

    def _documents(self, work: Iterable[FileWork]) -> Iterator[SourceDocument]:
        for item in work:
            for document in self._load(item.source, item.file).documents:
                if document.document_id in item.document_ids:
                    yield document

    def _cut(self, document: SourceDocument) -> CutDocument:
        if reason := metadata_misfit(document.metadata, schema=self._shape.metadata_schema):
            return CutDocument(document, (), refused=reason)
        shape = self._shape.chunking_of(document.source)
        return CutDocument(document, tuple(chunk(document, shape, self.embedder().tokenizer)))


def _record(cut: CutDocument, vectors: Sequence[FloatVector], embedder: Embedder) -> DocumentRecord:
    document = cut.document
    return DocumentRecord(
        key=document.key,
        content_hash=document.content_hash,
        title=document.title,
        chunks=tuple(
            _chunk_record(document, piece, vector, embedder) for piece, vector in zip(cut.chunks, vectors, strict=True)
        ),
        metadata=document.metadata,
        tenants=document.tenants,
        groups=document.groups,
    )


def _chunk_record(document: SourceDocument, piece: Chunk, vector: FloatVector, embedder: Embedder) -> ChunkRecord:
    start, end = document.offsets.original_span(piece.start, piece.end)
    max_tokens = embedder.fingerprint.max_tokens
    return ChunkRecord(
        ordinal=piece.ordinal,
        start=start,
        end=end,
        content=piece.content,
        heading=piece.heading,
        vector=vector,
        truncated=is_truncated(piece, title=document.title, tokenizer=embedder.tokenizer, max_tokens=max_tokens),
    )
