"""Index revisions of retrieval sets, made by the product's own loader, chunkers, encoder and store.

The shape is the one that a KnowledgeBase with nothing but a source gets. Only the loop around these
parts is left out: nothing here changes while it is read.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from retrieval_sets import RetrievalSet

from tidegate_api.config import IndexRef
from tidegate_api.shape import Language, RevisionShape
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_operator.core.desired import revision_shape
from tidegate_runtime.indexer.chunkers import chunk, is_truncated, passage_text
from tidegate_runtime.indexer.loaders import SourceDocument, load
from tidegate_runtime.ports import ChunkRecord, DocumentRecord, Embedder, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedWriter

SOURCE = "documents"


@dataclass(frozen=True, slots=True)
class Built:
    """A revision on disk and what is in it."""

    root: Path
    index: IndexRef
    documents: int
    chunks: int
    truncated: int
    unreadable: tuple[str, ...]


def default_shape(language: Language) -> RevisionShape:
    """Return the shape that the smallest KnowledgeBase has in this language."""
    spec = KnowledgeBaseSpec.model_validate({"sources": [{"name": SOURCE, "from": {"configMap": {"name": "unused"}}}]})
    return revision_shape(spec, language)


def build(data: RetrievalSet, *, root: Path, shape: RevisionShape, embedder: Embedder) -> Built:
    """Build a revision below `root`, from nothing."""
    knowledge_base = data.name
    revision = shape.revision_name(knowledge_base)
    folder = root / knowledge_base / revision
    shutil.rmtree(folder, ignore_errors=True)
    lines = (
        json.dumps({"id": each.id, "title": each.title, "text": each.text}, ensure_ascii=False)
        for each in data.documents
    )
    loaded = load("corpus.jsonl", "\n".join(lines).encode(), source=SOURCE)
    writer = EmbeddedWriter.open(folder, revision=revision, shape=shape)
    try:
        writer.commit(
            upserts=[_record(document, shape=shape, embedder=embedder) for document in loaded.documents],
            rules={SOURCE: SourceRules(tenants=("*",), metadata={})},
        )
        writer.mark_ready(dense=True)
        stats = writer.stats()
    finally:
        writer.close()
    return Built(
        root=root,
        index=IndexRef(knowledge_base=knowledge_base, revision=revision),
        documents=stats.documents,
        chunks=stats.chunks,
        truncated=stats.truncated_chunks,
        unreadable=tuple(failure.reason for failure in loaded.failures),
    )


def _record(document: SourceDocument, *, shape: RevisionShape, embedder: Embedder) -> DocumentRecord:
    tokenizer, title = embedder.tokenizer, document.title
    cuts = chunk(document, shape.chunking_of(SOURCE), tokenizer)
    vectors = embedder.embed_passages(
        [passage_text(title, cut.heading, cut.content, tokenizer=tokenizer) for cut in cuts]
    )
    limit = embedder.fingerprint.max_tokens
    records = tuple(
        ChunkRecord(
            ordinal=cut.ordinal,
            start=cut.start,
            end=cut.end,
            content=cut.content,
            heading=cut.heading,
            vector=vector,
            truncated=is_truncated(cut, title=title, tokenizer=tokenizer, max_tokens=limit),
        )
        for cut, vector in zip(cuts, vectors, strict=True)
    )
    return DocumentRecord(key=document.key, content_hash=document.content_hash, title=title, chunks=records)
