"""From a span of the text to the span of the original."""

import pytest

from tidegate_runtime.indexer.loaders.offsets import OffsetMap, shifted

# Original "a&amp;b<br>c": the entity is one piece, the break an inserted one.
MAPPED = OffsetMap(
    text_starts=(0, 1, 2, 3, 4), original_starts=(0, 1, 6, 7, 11), original_ends=(1, 6, 7, 7, 12), text_length=5
)


def test_a_shifted_text_is_shifted_back() -> None:
    assert shifted(10, by=7).original_span(2, 5) == (9, 12)


@pytest.mark.parametrize(
    ("span", "original"),
    [((0, 1), (0, 1)), ((0, 2), (0, 6)), ((1, 2), (1, 6)), ((2, 5), (6, 12)), ((3, 4), (7, 7)), ((3, 5), (7, 12))],
)
def test_pieces_stand_for_their_origin_as_a_whole(span: tuple[int, int], original: tuple[int, int]) -> None:
    assert MAPPED.original_span(*span) == original
