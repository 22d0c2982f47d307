"""Small shapes, documents and questions that the store's tests share. Vectors follow from their text."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from tidegate_api.shape import ALGORITHMS, ChunkingShape, EmbedderFingerprint, MetadataType, RevisionShape
from tidegate_api.wire import Filter, Scalar
from tidegate_runtime.ports import (
    ChunkRecord,
    DocumentKey,
    DocumentRecord,
    FloatVector,
    IndexSnapshot,
    Permission,
    SourceRules,
)

DIMENSION = 16
SCALE = 0.8
PUBLIC = {"s": SourceRules(tenants=("*",), metadata={})}


def make_shape(
    *, schema: Mapping[str, MetadataType] | None = None, size_tokens: int = 200, language: str = "en"
) -> RevisionShape:
    return RevisionShape.model_validate(
        {
            "language": language,
            "chunking": ChunkingShape(strategy="markdown", size_tokens=size_tokens, overlap_tokens=24),
            "embedder": EmbedderFingerprint(
                model="fake", digest="0" * 64, dimension=DIMENSION, max_tokens=256, scale=SCALE, languages=["*"]
            ),
            "metadata_schema": dict(schema or {}),
            "algorithms": dict(ALGORITHMS),
        }
    )


def vector_of(text: str) -> FloatVector:
    """Return a unit vector that follows from `text`."""
    seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def make_document(
    document_id: str,
    contents: Sequence[str],
    *,
    source: str = "s",
    title: str = "",
    metadata: Mapping[str, Scalar | list[Scalar]] | None = None,
    tenants: tuple[str, ...] | None = None,
    groups: tuple[str, ...] = (),
) -> DocumentRecord:
    chunks = tuple(
        ChunkRecord(ordinal=i, start=0, end=len(text), content=text, heading="", vector=vector_of(text))
        for i, text in enumerate(contents)
    )
    return DocumentRecord(
        key=DocumentKey(source, document_id),
        content_hash=hashlib.sha256("\n".join(contents).encode("utf-8", "surrogatepass")).hexdigest(),
        title=title,
        chunks=chunks,
        metadata=metadata or {},
        tenants=tenants,
        groups=groups,
    )


def lexical_hits(
    snapshot: IndexSnapshot,
    query: str,
    *,
    permission: Permission | None = None,
    filters: Filter | None = None,
    top_k: int = 50,
) -> list[tuple[str, str]]:
    """Return document and content of the best rows by BM25."""
    selection = snapshot.select(permission or Permission(), filters)
    rows = snapshot.lexical(snapshot.analyse(query), selection, top_k=top_k).rows
    return [(chunk.document_id, chunk.content) for chunk in snapshot.chunks(rows)]


def visible_documents(
    snapshot: IndexSnapshot, *, permission: Permission | None = None, filters: Filter | None = None
) -> set[str]:
    """Return the documents that a caller may see, found by scanning the dense leg to its end."""
    selection = snapshot.select(permission or Permission(), filters)
    rows = snapshot.dense(vector_of("anything"), selection, top_k=10_000).rows
    return {chunk.document_id for chunk in snapshot.chunks(rows)}
