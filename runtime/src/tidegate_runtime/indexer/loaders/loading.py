"""Turns a file into documents by the ending of its name.

What goes wrong stays with the file or the line it happened in and comes back as a failure that names
it; the other documents are unaffected. The caller bounds the size of a file before reading it.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from tidegate_api.config import DocumentFailure
from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.loaders.decoding import decode
from tidegate_runtime.indexer.loaders.document import Extract, Format, LoadedFile, make_document
from tidegate_runtime.indexer.loaders.front_matter import read_front_matter
from tidegate_runtime.indexer.loaders.html import extract_html
from tidegate_runtime.indexer.loaders.jsonl import load_jsonl
from tidegate_runtime.indexer.loaders.offsets import shifted
from tidegate_runtime.indexer.loaders.outline import first_heading

_FORMATS = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".txt": Format.TEXT,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".jsonl": Format.JSONL,
}
# Endings of the names, in lower case, of files that can be loaded.
EXTENSIONS = frozenset(_FORMATS)


def holds_many(name: str) -> bool:
    """Whether a file of this name may hold several documents."""
    return _FORMATS.get(PurePosixPath(name).suffix.lower()) is Format.JSONL


def load(name: str, data: bytes, *, source: str) -> LoadedFile:
    """Return the documents of a file.

    Args:
        name: its path relative to the source, with forward slashes: the id of a document that fills a file.
        data: its content.
        source: the source that it belongs to.
    """
    try:
        return _load(name, data, source=source)
    except UnreadableDocumentError as error:
        return LoadedFile(failures=(DocumentFailure(document=name, reason=str(error)),))


def _load(name: str, data: bytes, *, source: str) -> LoadedFile:
    path = PurePosixPath(name)
    format_ = _FORMATS.get(path.suffix.lower())
    if format_ is None:
        known = ", ".join(sorted(EXTENSIONS))
        raise UnreadableDocumentError(f"no loader for {path.suffix or 'a name without an ending'!r}; known are {known}")
    if not data.strip():
        raise UnreadableDocumentError("is empty; give it text, or remove it")
    if format_ is Format.JSONL:
        return load_jsonl(name, data, source=source)
    extract = _EXTRACTORS[format_](decode(data))
    if not extract.text.strip():
        raise UnreadableDocumentError("holds no text; give it some, or remove it")
    titled = replace(extract, title=extract.title or path.stem)
    return LoadedFile((make_document(titled, source=source, document_id=name, format_=format_),))


def _extract_text(original: str) -> Extract:
    return Extract(text=original, offsets=shifted(len(original)))


def _extract_markdown(original: str) -> Extract:
    front = read_front_matter(original)
    text = original[front.length :]
    fields = dict(front.fields)
    title = fields.pop("title", None)
    return Extract(
        text=text,
        offsets=shifted(len(text), by=front.length),
        title=title if isinstance(title, str) and title else first_heading(text),
        metadata=fields,
        tenants=front.tenants,
        groups=front.groups,
    )


_EXTRACTORS: dict[Format, Callable[[str], Extract]] = {
    Format.MARKDOWN: _extract_markdown,
    Format.TEXT: _extract_text,
    Format.HTML: extract_html,
}
