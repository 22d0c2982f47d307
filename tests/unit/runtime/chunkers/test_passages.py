"""What is embedded: title and headings within their share of tokens, then the text."""

import pytest

from tidegate_runtime.indexer.chunkers import Chunk, is_truncated, passage_text
from tidegate_runtime.models.fake import WhitespaceTokenizer

TOKENIZER = WhitespaceTokenizer()


def passage(title: str, heading: str, content: str) -> str:
    return passage_text(title, heading, content, tokenizer=TOKENIZER)


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("Leave", "", "Leave text"),
        ("", "", "text"),
        (" ", "", "text"),
        ("Leave", "Leave", "Leave text"),
        ("Leave", "Leave > Parental > Notice", "Leave Parental > Notice text"),
        ("leave.md", "Parental", "leave.md Parental text"),
        ("", "Parental", "Parental text"),
    ],
)
def test_title_and_headings_come_before_the_text_once(title: str, heading: str, expected: str) -> None:
    assert passage(title, heading, "text") == expected


def test_a_long_title_is_cut_to_32_tokens() -> None:
    title = " ".join(f"t{number}" for number in range(40))
    assert passage(title, "", "text") == " ".join([*(f"t{number}" for number in range(32)), "text"])


def chunk_of(tokens: int) -> Chunk:
    return Chunk(ordinal=0, start=0, end=1, content="x", heading="Parental", tokens=tokens)


@pytest.mark.parametrize(("tokens", "truncated"), [(252, False), (253, True)])
def test_a_passage_longer_than_the_encoder_reads_is_truncated(tokens: int, truncated: bool) -> None:
    # 256 = 2 that frame the text + 2 of title and heading + 252
    assert is_truncated(chunk_of(tokens), title="Leave", tokenizer=TOKENIZER, max_tokens=256) is truncated


def test_a_chunk_of_the_capped_size_is_never_truncated_whatever_its_title() -> None:
    title = "word " * 100
    assert not is_truncated(chunk_of(256 - 2 - 32), title=title, tokenizer=TOKENIZER, max_tokens=256)
