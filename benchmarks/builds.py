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
from tidegate_runtime.indexer.loaders import LoadedFile, load
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
    loaded = _loaded(data)
    workshop = Workshop(shape, load=lambda _source, _file: loaded, open_embedder=lambda _: embedder)
    everything = FileWork(SOURCE, _FILE, frozenset(document.document_id for document in loaded.documents))
    writer = EmbeddedWriter.open(folder, revision=revision, shape=shape)
    try:
        writer.commit(rules={SOURCE: SourceRules(tenants=("*",), metadata={})})
        for batch in workshop.batches([everything]):
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
        unreadable=tuple(failure.reason for failure in loaded.failures),
    )


def _loaded(data: RetrievalSet) -> LoadedFile:
    lines = (
        json.dumps({"id": each.id, "title": each.title, "text": each.text}, ensure_ascii=False)
        for each in data.documents
    )
    return load(_FILE, "\n".join(lines).encode(), source=SOURCE)
