"""Index revisions of retrieval sets, made by the indexer's own parts in its own batches.

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
from tidegate_runtime.indexer.changes import FileWork
from tidegate_runtime.indexer.chunkers import passage_text
from tidegate_runtime.indexer.loaders import load
from tidegate_runtime.indexer.work import Workshop
from tidegate_runtime.ports import Embedder, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedWriter

SOURCE = "documents"
_FILE = "corpus.jsonl"


@dataclass(frozen=True, slots=True)
class Built:
    """A revision on disk and what is in it."""

    root: Path
    index: IndexRef
    documents: int
    chunks: int
    truncated: int


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
    workshop, work = _prepared(data, shape=shape, embedder=embedder)
    writer = EmbeddedWriter.open(folder, revision=revision, shape=shape)
    try:
        writer.commit(rules={SOURCE: SourceRules(tenants=("*",), metadata={})})
        for batch in workshop.batches(work):
            made = workshop.records(batch)
            assert not made.refused, made.refused
            writer.commit(upserts=made.records)
            writer.compact()
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
    )


def passages(data: RetrievalSet, *, shape: RevisionShape, embedder: Embedder) -> list[str]:
    """Return what the encoder reads of each chunk that `build` stores."""
    workshop, work = _prepared(data, shape=shape, embedder=embedder)
    return [
        passage_text(cut.document.title, piece.heading, piece.content, tokenizer=embedder.tokenizer)
        for batch in workshop.batches(work)
        for cut in batch
        for piece in cut.chunks
    ]


def _prepared(data: RetrievalSet, *, shape: RevisionShape, embedder: Embedder) -> tuple[Workshop, list[FileWork]]:
    lines = (
        json.dumps({"id": each.id, "title": each.title, "text": each.text}, ensure_ascii=False)
        for each in data.documents
    )
    loaded = load(_FILE, "\n".join(lines).encode(), source=SOURCE)
    workshop = Workshop(shape, load=lambda _source, _file: loaded, open_embedder=lambda _: embedder)
    return workshop, [FileWork(SOURCE, _FILE, frozenset(document.document_id for document in loaded.documents))]
