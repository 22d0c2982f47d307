"""A document as a loader found it: text, what is known of it, and the way back to the original.

`content_hash` covers everything that decides what an index holds for the document, the loader's own
version included: equal hashes need no work, and nothing else is compared. Raise the number in
`_LOADERS` in the same commit as a change of what that loader extracts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidegate_api.config import DocumentFailure
from tidegate_api.hashing import content_hash
from tidegate_api.wire import Scalar
from tidegate_runtime.indexer.loaders.offsets import OffsetMap
from tidegate_runtime.ports import DocumentKey

TITLE_CHARACTERS_MAX = 300
_HASH_DIGITS = 32


class Format(StrEnum):
    """What a file is read as."""

    MARKDOWN = "md"
    TEXT = "txt"
    HTML = "html"
    JSONL = "jsonl"


_LOADERS = {Format.MARKDOWN: "md/1", Format.TEXT: "txt/1", Format.HTML: "html/1", Format.JSONL: "jsonl/1"}


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of a source. `tenants` None = as its source says; an empty tuple = nobody."""

    source: str
    document_id: str
    title: str
    text: str
    format: Format
    metadata: Mapping[str, Scalar | list[Scalar]]
    tenants: tuple[str, ...] | None
    groups: tuple[str, ...]
    offsets: OffsetMap
    content_hash: str

    @property
    def key(self) -> DocumentKey:
        """Return its identity inside the knowledge base."""
        return DocumentKey(self.source, self.document_id)


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """What a file holds: its documents, in their order, and what could not be read, each with a reason."""

    documents: tuple[SourceDocument, ...] = ()
    failures: tuple[DocumentFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class Extract:
    """What a loader of one format makes of one document."""

    text: str
    offsets: OffsetMap
    title: str = ""
    metadata: Mapping[str, Scalar | list[Scalar]] | None = None
    tenants: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()


def make_document(extract: Extract, *, source: str, document_id: str, format_: Format) -> SourceDocument:
    """Give an extract its identity and its hash."""
    title = " ".join(extract.title.split())[:TITLE_CHARACTERS_MAX]
    metadata = dict(extract.metadata or {})
    offsets = extract.offsets
    hashed = content_hash(
        {
            "loader": _LOADERS[format_],
            "title": title,
            "text": extract.text,
            "metadata": metadata,
            "tenants": None if extract.tenants is None else list(extract.tenants),
            "groups": list(extract.groups),
            "origin": [offsets.text_starts, offsets.original_starts, offsets.original_ends],
        },
        length=_HASH_DIGITS,
    )
    return SourceDocument(
        source=source,
        document_id=document_id,
        title=title,
        text=extract.text,
        format=format_,
        metadata=metadata,
        tenants=extract.tenants,
        groups=extract.groups,
        offsets=offsets,
        content_hash=hashed,
    )
