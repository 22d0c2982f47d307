"""What holds for every text, strategy, size and tokenizer."""

import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tidegate_api.shape import ChunkingShape
from tidegate_runtime.indexer.chunkers import Chunk, chunk
from tidegate_runtime.indexer.loaders import SourceDocument, load
from tidegate_runtime.ports import Tokenizer

STRATEGIES = ("markdown", "recursive", "fixed")
# Words, sentences, structure, ideographs, marks, joined emoji, ligatures, wide forms, spaces of all kinds.
PIECES = (
    *(
        "word ",
        "Sentence ends. ",
        "另一句话。",
        "制度",
        "한국어 ",
        "ไทย",
        "\n",
        "\n\n",
        " ",
        "\u3000",
        "\u00a0",
        "\t",
        "\r\n",
    ),
    *(
        "# Head\n",
        "## Sub\n\n",
        "```\ncode = 1\n```\n",
        "| a | b |\n",
        "- item\n",
        "1. one\n",
        "Title\n=====\n",
        "---\n",
    ),
    *(
        "e\u0301",
        "\u0301",
        "👩‍👩‍👧‍👦",
        "👍🏽",
        "\ufe0f",
        "\u200b",
        "\u200d",
        "㎏",
        "ﬁ",
        "①",
        "ﷺ",
        "x" * 40,
        "https://a.b/c?d=e&f ",
    ),
    *("…", "“quoted.” ", "a,b;c ", "\u2028", "\x1f"),
)
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=120).map("".join) | st.text(max_size=300)


def shape_of(strategy: str, size_tokens: int, overlap_tokens: int) -> ChunkingShape:
    return ChunkingShape.model_validate(
        {"strategy": strategy, "size_tokens": size_tokens, "overlap_tokens": overlap_tokens}
    )


shapes = st.builds(shape_of, st.sampled_from(STRATEGIES), st.integers(32, 64), st.integers(0, 40))
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)


def document(text: str) -> SourceDocument | None:
    file = load("a.md", text.encode("utf-8", "replace"), source="s")
    return file.documents[0] if file.documents else None


def check(text: str, shape: ChunkingShape, tokenizer: Tokenizer) -> list[Chunk]:
    found = document(text)
    if found is None:
        return []
    chunks = chunk(found, shape, tokenizer)
    covered = set[int]()
    for number, part in enumerate(chunks):
        assert part.ordinal == number
        assert part.content == found.text[part.start : part.end]
        assert part.content.strip() == part.content != ""
        assert len(tokenizer.offsets(part.content)) <= part.tokens <= shape.size_tokens
        covered.update(range(part.start, part.end))
    assert all(place in covered or character.isspace() for place, character in enumerate(found.text))
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        shared = found.text[after.start : before.end]
        assert len(tokenizer.offsets(shared)) <= shape.overlap_tokens + 1  # a cut word may read as one token more
    return chunks


@relaxed
@given(texts, shapes)
@example("x" * 60_000, shape_of("recursive", 32, 8))
@example("x " + "\u0301" * 5_000, shape_of("fixed", 32, 8))
def test_chunks_cover_the_text_in_bounded_slices_of_wordpieces(
    wordpiece: Tokenizer, text: str, shape: ChunkingShape
) -> None:
    check(text, shape, wordpiece)


@pytest.mark.models
@relaxed
@given(texts, shapes)
@example("制度" * 30_000, shape_of("recursive", 64, 8))
def test_chunks_cover_the_text_in_bounded_slices_of_sentence_pieces(
    unigram: Tokenizer, text: str, shape: ChunkingShape
) -> None:
    check(text, shape, unigram)


@relaxed
@given(texts, shapes)
def test_chunks_cover_the_text_in_bounded_slices_of_words(
    whitespace: Tokenizer, text: str, shape: ChunkingShape
) -> None:
    check(text, shape, whitespace)


@relaxed
@given(texts, shapes)
def test_equal_input_gives_equal_chunks(whitespace: Tokenizer, text: str, shape: ChunkingShape) -> None:
    assert check(text, shape, whitespace) == check(text, shape, whitespace)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "text",
    [
        "x" * 60_000,
        "制" * 60_000,
        "👩‍👩‍👧‍👦" * 8_000,
        "\u0301" * 60_000,
        "a\u0301" * 30_000,
        "0123456789abcdef" * 4_000,
    ],
    ids=["letters", "ideographs", "emoji", "marks", "marked letters", "hexadecimal"],
)
def test_a_text_without_spaces_is_cut_into_chunks_of_bounded_length(
    wordpiece: Tokenizer, strategy: str, text: str
) -> None:
    shape = shape_of(strategy, 200, 24)
    chunks = check(text, shape, wordpiece)
    assert max(len(part.content) for part in chunks) <= (200 + 1) * 32


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "unit",
    [
        "Some words make a sentence. ",
        "line\n",
        "para\n\n",
        "# Head\n\ntext\n\n",
        "## H\n",
        "制度。",
        "x",
        "```\n",
        "| a |\n",
    ],
)
def test_time_is_in_proportion_to_the_text(whitespace: Tokenizer, strategy: str, unit: str) -> None:
    shape = shape_of(strategy, 100, 12)

    def seconds(length: int) -> float:
        found = document(unit * (length // len(unit)))
        assert found is not None
        begun = time.process_time()
        chunk(found, shape, whitespace)
        return time.process_time() - begun

    # Eight times the text; a quadratic cutter would take 64 times as long, a busy machine some of what lies between.
    seconds(1_000)
    assert min(seconds(160_000) for _ in range(2)) < 32 * max(seconds(20_000), 0.01)
