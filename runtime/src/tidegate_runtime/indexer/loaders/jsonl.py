"""Documents as JSON lines: a line that cannot be read is that line's failure alone.

An unknown member is refused by name: a misspelt `tenants` that is ignored would show the document to
everybody. Members that are null count as absent, except `tenants`: an exporter that does not know who
may read must not publish.
"""

import codecs
from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tidegate_api.config import DocumentFailure
from tidegate_api.wire import Scalar
from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.loaders.decoding import decode, refuse_binary
from tidegate_runtime.indexer.loaders.document import Extract, Format, LoadedFile, SourceDocument, make_document
from tidegate_runtime.indexer.loaders.offsets import shifted

_Name = Annotated[str, Field(min_length=1, max_length=256)]
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    id: Annotated[str, Field(min_length=1, max_length=1024)]
    title: str | None = None
    text: str
    metadata: dict[str, Scalar | list[Scalar] | None] | None = None
    tenants: list[_Name] = Field(default_factory=list)
    groups: list[_Name] | None = None


def load_jsonl(name: str, data: bytes, *, source: str) -> LoadedFile:
    """Return the documents of a file of JSON lines; of lines with one id the first counts.

    Raises:
        UnreadableDocumentError: the file as a whole is not text.
    """
    documents: list[SourceDocument] = []
    failures: list[DocumentFailure] = []
    line_of_id: dict[str, int] = {}
    for number, line in _lines(data):
        try:
            document_id, extract = _read(line)
            first = line_of_id.setdefault(document_id, number)
            if first != number:
                raise UnreadableDocumentError(f"id {document_id!r} is already that of line {first}; give it its own")
        except UnreadableDocumentError as error:
            failures.append(DocumentFailure(document=f"{name}:{number}", reason=str(error)))
            continue
        documents.append(make_document(extract, source=source, document_id=document_id, format_=Format.JSONL))
    return LoadedFile(tuple(documents), tuple(failures))


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    if data.startswith(_WIDE_MARKS):
        data = decode(data).encode()
    refuse_binary(data)
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _read(line: bytes) -> tuple[str, Extract]:
    try:
        read = _Line.model_validate_json(line)
    except ValidationError as error:
        raise UnreadableDocumentError(_reason(error)) from None  # the cause would carry the document's text
    if not read.text.strip():
        raise UnreadableDocumentError("text is empty; give it words, or remove the line")
    return read.id, Extract(
        text=read.text,
        offsets=shifted(len(read.text)),
        title=read.title or "",
        metadata={key: value for key, value in (read.metadata or {}).items() if value is not None},
        tenants=tuple(read.tenants) if "tenants" in read.model_fields_set else None,
        groups=tuple(read.groups or ()),
    )


def _reason(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"][:2])
    match first["type"]:
        case "json_invalid":
            return f"is not JSON ({first['msg'].removeprefix('Invalid JSON: ')}); correct the line"
        case "extra_forbidden":
            return f"unknown member {place!r}; put fields of your own under metadata"
        case "missing":
            return f"{place} is missing; add it"
        case _ if not place:
            return 'is no JSON object; write {"id": "…", "text": "…"}'
        case _ if place.startswith("metadata."):
            return f"{place}: must be a text, a finite number, true or false, or a list of these"
        case _:
            return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}"
