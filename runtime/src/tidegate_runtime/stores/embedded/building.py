"""From document records to the arrays of a new segment.

Every record is checked before anything is written: a vector that is not finite, zero or of another
dimension, or metadata that does not fit the schema, is refused with the document's name. The digest of
a record covers all that is stored of it, so an upsert that changes nothing is recognised without
comparing content.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tidegate_api.metadata import metadata_misfit
from tidegate_api.shape import MetadataType, RevisionShape
from tidegate_runtime.errors import UnreadableDocumentError, UnusableVectorError
from tidegate_runtime.ports import ChunkRecord, DocumentRecord
from tidegate_runtime.stores.embedded.analyzer import terms_of
from tidegate_runtime.stores.embedded.chunk_ids import chunk_numbers, chunking_fingerprint
from tidegate_runtime.stores.embedded.format import Array
from tidegate_runtime.stores.embedded.metadata import stored_values
from tidegate_runtime.stores.embedded.quantise import quantise
from tidegate_runtime.stores.embedded.segment import Access, Dictionaries, encode_json, encode_strings, term_key

_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A record that passed its checks: chunks in order of ordinal, vectors in stored form (zero rows where none)."""

    record: DocumentRecord
    chunks: tuple[ChunkRecord, ...]
    vectors: NDArray[np.int8]
    has_vector: NDArray[np.bool_]
    digest: bytes


def prepare(record: DocumentRecord, *, shape: RevisionShape) -> PreparedDocument:
    """Check a record and bring it into stored form.

    Raises:
        UnusableVectorError: a vector is zero, not finite or of another dimension.
        UnreadableDocumentError: two chunks have one ordinal, a metadata number is not finite, or a value does not
            fit what metadataSchema says of its key.
    """
    chunks = tuple(sorted(record.chunks, key=lambda chunk: chunk.ordinal))
    if len({chunk.ordinal for chunk in chunks}) < len(chunks):
        raise UnreadableDocumentError(f"{_name(record)}: two chunks have the same ordinal; number them 0, 1, 2, …")
    _check_metadata(record, schema=shape.metadata_schema)
    has_vector = np.array([chunk.vector is not None for chunk in chunks], dtype=np.bool_)
    vectors = np.zeros((len(chunks), shape.embedder.dimension), dtype=np.int8)
    if has_vector.any():
        vectors[has_vector] = quantise(_checked_vectors(record, chunks, shape=shape), scale=shape.embedder.scale)
    return PreparedDocument(record, chunks, vectors, has_vector, _digest(record, chunks, vectors, has_vector))


def _name(record: DocumentRecord) -> str:
    return f"document {record.key.document_id!r} of source {record.key.source!r}"


def _check_metadata(record: DocumentRecord, *, schema: Mapping[str, MetadataType]) -> None:
    for field, value in record.metadata.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, float) and not math.isfinite(item):
                raise UnreadableDocumentError(f"{_name(record)}: metadata {field!r} is {item}; give a finite number")
    if reason := metadata_misfit(record.metadata, schema=schema):
        raise UnreadableDocumentError(f"{_name(record)}: {reason}")


def _checked_vectors(
    record: DocumentRecord, chunks: tuple[ChunkRecord, ...], *, shape: RevisionShape
) -> NDArray[np.float32]:
    dimension = shape.embedder.dimension
    for chunk in chunks:
        if chunk.vector is not None and chunk.vector.shape != (dimension,):
            raise UnusableVectorError(
                f"{_name(record)}, chunk {chunk.ordinal}: vector of shape {chunk.vector.shape}, "
                f"but {shape.embedder.summary()} makes {dimension} components; embed it with that model"
            )
    vectors = np.stack([chunk.vector for chunk in chunks if chunk.vector is not None])
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    if not usable.all():
        ordinals = [chunk.ordinal for chunk in chunks if chunk.vector is not None]
        raise UnusableVectorError(
            f"{_name(record)}, chunk {ordinals[int(np.argmin(usable))]}: "
            "the vector is zero or not finite; look at the text and at the encoder"
        )
    return vectors


def _digest(
    record: DocumentRecord, chunks: tuple[ChunkRecord, ...], vectors: NDArray[np.int8], has_vector: NDArray[np.bool_]
) -> bytes:
    tenants = None if record.tenants is None else sorted(set(record.tenants))
    head = [record.key.source, record.key.document_id, record.content_hash, record.title, dict(record.metadata)]
    cuts = [[c.ordinal, c.start, c.end, c.heading, c.truncated, len(c.content)] for c in chunks]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    digest.update(encode_json([head, tenants, sorted(set(record.groups)), cuts]))
    for chunk in chunks:
        digest.update(chunk.content.encode("utf-8", "surrogatepass"))
    digest.update(vectors.tobytes())
    digest.update(has_vector.tobytes())
    return digest.digest()


def build_arrays(documents: Sequence[PreparedDocument], *, shape: RevisionShape) -> dict[str, Array]:
    """Return the arrays of a segment that holds `documents`, in their order."""
    return {
        **_chunk_arrays(documents, shape=shape),
        **_posting_arrays(documents),
        **_document_arrays(documents, shape=shape),
    }


def _chunk_arrays(documents: Sequence[PreparedDocument], *, shape: RevisionShape) -> dict[str, Array]:
    sizes = np.array([len(document.chunks) for document in documents], dtype=np.int64)
    chunks = [chunk for document in documents for chunk in document.chunks]
    numbers = [
        chunk_numbers(
            document.record.key,
            chunking=chunking_fingerprint(shape, document.record.key.source),
            ordinals=[chunk.ordinal for chunk in document.chunks],
        )
        for document in documents
    ]
    has_vector = np.concatenate([document.has_vector for document in documents])
    vectors = np.concatenate([document.vectors for document in documents])
    return {
        "chunk_numbers": np.concatenate(numbers),
        "vectors": vectors if has_vector.any() else vectors[:0],
        "has_vector": has_vector,
        "row_documents": np.repeat(np.arange(len(documents), dtype=np.int32), sizes),
        "first_rows": np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]),
        "ordinals": np.array([chunk.ordinal for chunk in chunks], dtype=np.int32),
        "starts": np.array([chunk.start for chunk in chunks], dtype=np.int64),
        "ends": np.array([chunk.end for chunk in chunks], dtype=np.int64),
        "truncated": np.array([chunk.truncated for chunk in chunks], dtype=np.bool_),
        **encode_strings("contents", [chunk.content for chunk in chunks]),
        **encode_strings("headings", [chunk.heading for chunk in chunks]),
    }


def _posting_arrays(documents: Sequence[PreparedDocument]) -> dict[str, Array]:
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    terms_of_rows: list[list[int]] = []
    for document in documents:
        title = document.record.title
        for chunk in document.chunks:
            terms = terms_of(f"{title}\n{chunk.heading}\n{chunk.content}")
            terms_of_rows.append([numbers[term] for term in terms])
    lengths = np.array([len(terms) for terms in terms_of_rows], dtype=np.int32)
    keys = np.array([term_key(term) for term in numbers], dtype=np.uint64)
    distinct, key_numbers = np.unique(keys, return_inverse=True)
    flat = np.fromiter(chain.from_iterable(terms_of_rows), dtype=np.int64, count=int(lengths.sum()))
    row_count = max(len(terms_of_rows), 1)
    # One number per (term, row) sorts postings by term, then row, and counts repetitions.
    pairs = key_numbers[flat] * row_count + np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    postings, counts = np.unique(pairs, return_counts=True)
    starts = np.searchsorted(postings, np.arange(len(distinct) + 1, dtype=np.int64) * row_count)
    return {
        "lengths": lengths,
        "term_keys": distinct,
        "term_starts": starts.astype(np.int64),
        "posting_rows": (postings % row_count).astype(np.int32),
        "posting_counts": narrow_counts(counts),
    }


def narrow_counts(counts: Array) -> Array:
    """Return term counts in the smallest type that holds them."""
    return counts.astype(np.uint16 if counts.max(initial=0) <= np.iinfo(np.uint16).max else np.uint32)


def _document_arrays(documents: Sequence[PreparedDocument], *, shape: RevisionShape) -> dict[str, Array]:
    records = [document.record for document in documents]
    sources = sorted({record.key.source for record in records})
    access_of = [Access(record.tenants, record.groups) for record in records]
    access = sorted(set(access_of), key=Access.sort_key)
    columns, keywords = _columns(records, shape=shape)
    source_numbers = {source: number for number, source in enumerate(sources)}
    access_numbers = {entry: number for number, entry in enumerate(access)}
    dictionaries = Dictionaries(sources=tuple(sources), access=tuple(access), keywords=keywords)
    digests = np.frombuffer(b"".join(document.digest for document in documents), dtype=np.uint8)
    return {
        "source_numbers": np.array([source_numbers[record.key.source] for record in records], dtype=np.int32),
        "access_numbers": np.array([access_numbers[entry] for entry in access_of], dtype=np.int32),
        "digests": digests.reshape(len(documents), _DIGEST_BYTES),
        "dictionaries": np.frombuffer(dictionaries.encode(), dtype=np.uint8),
        **encode_strings("document_ids", [record.key.document_id for record in records]),
        **encode_strings("content_hashes", [record.content_hash for record in records]),
        **encode_strings("titles", [record.title for record in records]),
        **encode_strings("metadata", [encode_json(dict(record.metadata)) for record in records]),
        **columns,
    }


def _columns(
    records: Sequence[DocumentRecord], *, shape: RevisionShape
) -> tuple[dict[str, Array], dict[str, tuple[str, ...]]]:
    arrays: dict[str, Array] = {}
    keywords: dict[str, tuple[str, ...]] = {}
    for field, declared in sorted(shape.metadata_schema.items()):
        pairs = [
            (document, value)
            for document, record in enumerate(records)
            if field in record.metadata
            for value in stored_values(record.metadata[field], declared=declared)
        ]
        arrays[f"column.{field}.documents"] = np.array([document for document, _ in pairs], dtype=np.int32)
        values = [value for _, value in pairs]
        if declared == "keyword":
            keywords[field] = tuple(sorted({str(value) for value in values}))
            numbers = {word: number for number, word in enumerate(keywords[field])}
            arrays[f"column.{field}.values"] = np.array([numbers[str(value)] for value in values], dtype=np.int32)
        else:
            dtype = np.bool_ if declared == "bool" else np.float64
            arrays[f"column.{field}.values"] = np.array(values, dtype=dtype)
    return arrays, keywords
