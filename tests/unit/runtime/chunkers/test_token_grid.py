"""Counting tokens by look-up."""

from tidegate_runtime.indexer.chunkers.token_grid import TokenGrid
from tidegate_runtime.models.fake import WhitespaceTokenizer
from tidegate_runtime.ports import Tokenizer


def test_counts_and_reaches_agree() -> None:
    grid = TokenGrid("one two three four", WhitespaceTokenizer())
    assert list(grid.starts) == [0, 4, 8, 14]
    assert grid.count(0, 18) == 4
    assert grid.count(1, 8) == 1
    assert grid.reach(0, 2) == 8
    assert grid.reach(8, 5) == 18


def test_a_token_that_is_white_space_counts_with_what_follows() -> None:
    class Spaces:
        def offsets(self, text: str) -> list[tuple[int, int]]:
            return [(0, 1), (1, 3), (3, 4)]

    assert list(TokenGrid(" ab ", Spaces()).starts) == [1, 1, 4]


def test_long_tokens_and_gaps_count_once_in_32_characters() -> None:
    grid = TokenGrid("a" * 70 + " b" + "\u3000" * 40 + "c", WhitespaceTokenizer())
    assert list(grid.starts) == [0, 32, 64, 71, 103, 112]


def test_a_long_text_is_tokenised_in_windows_with_the_same_result(wordpiece: Tokenizer) -> None:
    text = "Unbelievable prices, cut at any place! " * 1000
    assert list(TokenGrid(text, wordpiece).starts) == [start for start, _ in wordpiece.offsets(text)]
