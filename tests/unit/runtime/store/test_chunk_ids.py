"""Ids of chunks never move: these answers are frozen, changing one renames every chunk."""

import numpy as np
import pytest
from tests.unit.runtime.store.samples import make_shape

from tidegate_api.shape import ChunkingShape
from tidegate_runtime.ports import DocumentKey
from tidegate_runtime.stores.embedded.chunk_ids import chunk_numbers, chunking_fingerprint, format_chunk_id


def chunk_id(source: str, document_id: str, chunking: str, ordinal: int) -> str:
    return format_chunk_id(
        int(chunk_numbers(DocumentKey(source, document_id), chunking=chunking, ordinals=[ordinal])[0])
    )


def test_known_answers() -> None:
    assert chunk_id("docs", "a.md", "markdown/1:200:24", 0) == "7207009feadff175"
    assert chunk_id("docs", "a.md", "markdown/1:200:24", 11) == "adaa8992709f226b"
    assert chunk_id("文档", "年假.md", "fixed/1:100:0", 3) == "3d3f96979415408d"


def test_every_part_and_where_it_ends_matters() -> None:
    ids = {
        chunk_id("ab", "c", "x", 1),
        chunk_id("a", "bc", "x", 1),
        chunk_id("ab", "cx", "", 1),
        chunk_id("ab", "c", "x1", 1),
        chunk_id("ab", "c", "x", 11),
        chunk_id("ab", "c", "x", 2),
    }
    assert len(ids) == 6


def test_ids_have_sixteen_digits_and_sort_as_numbers() -> None:
    numbers = [0, 5, 255, 2**63, 2**64 - 1]
    ids = [format_chunk_id(number) for number in numbers]
    assert ids == sorted(ids)
    assert {len(identity) for identity in ids} == {16}
    assert chunk_numbers(DocumentKey("s", "d"), chunking="x", ordinals=[]).dtype == np.uint64


@pytest.mark.parametrize(
    ("source", "expected"), [("docs", "markdown/1:200:24"), ("faq", "fixed/1:100:0")], ids=["default", "override"]
)
def test_a_source_s_own_chunking_counts(source: str, expected: str) -> None:
    override = ChunkingShape(strategy="fixed", size_tokens=100, overlap_tokens=0)
    shape = make_shape().model_copy(update={"source_chunking": {"faq": override}})
    assert chunking_fingerprint(shape, source) == expected
