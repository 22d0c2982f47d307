"""Names of revisions: equal shapes share one index, any difference builds another."""

import pytest

from tidegate_api.builtins import MINILM, USE_M3
from tidegate_api.shape import ALGORITHMS, ChunkingShape, RevisionShape

CHUNKING = ChunkingShape(strategy="markdown", size_tokens=200, overlap_tokens=24)
SHAPE = RevisionShape(
    language="en",
    chunking=CHUNKING,
    embedder=MINILM,
    algorithms={name: ALGORITHMS[name] for name in ("markdown", "analyzer", "embedded")},
)


def test_name_of_a_revision_is_frozen() -> None:
    assert SHAPE.revision_name("docs") == "docs-15599bd8aa"


def test_name_does_not_depend_on_the_order_of_members() -> None:
    shuffled = RevisionShape.model_validate(dict(reversed(SHAPE.to_document().items())))
    assert shuffled.revision_name("docs") == SHAPE.revision_name("docs")


@pytest.mark.parametrize(
    "difference",
    [
        {"language": "zh"},
        {"chunking": CHUNKING.model_copy(update={"size_tokens": 199})},
        {"chunking": CHUNKING.model_copy(update={"overlap_tokens": 25})},
        {"chunking": CHUNKING.model_copy(update={"strategy": "fixed"})},
        {"source_chunking": {"docs": CHUNKING}},
        {"embedder": USE_M3},
        {"embedder": MINILM.model_copy(update={"digest": "0" * 64})},
        {"embedder": MINILM.model_copy(update={"query_prefix": "query: "})},
        {"metadata_schema": {"year": "number"}},
        {"algorithms": {**SHAPE.algorithms, "analyzer": "analyzer/2"}},
    ],
    ids=["language", "size", "overlap", "strategy", "source", "model", "digest", "prefix", "schema", "algorithm"],
)
def test_any_difference_makes_another_revision(difference: dict[str, object]) -> None:
    assert SHAPE.model_copy(update=difference).revision_name("docs") != SHAPE.revision_name("docs")


def test_a_source_without_chunking_of_its_own_is_cut_like_the_rest() -> None:
    fixed = CHUNKING.model_copy(update={"strategy": "fixed"})
    shape = SHAPE.model_copy(update={"source_chunking": {"tables": fixed}})
    assert shape.chunking_of("tables") == fixed
    assert shape.chunking_of("docs") == CHUNKING


def test_summary_of_an_embedder_is_what_status_shows() -> None:
    assert MINILM.summary() == "minilm@8199be6f/384"


def test_a_shape_survives_being_stored() -> None:
    assert RevisionShape.model_validate(SHAPE.to_document()) == SHAPE
