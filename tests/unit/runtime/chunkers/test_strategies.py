"""Where each strategy cuts. Tokens are words here, so sizes can be counted by eye."""

import pytest

from tidegate_api.shape import ChunkingShape
from tidegate_runtime.indexer.chunkers import Chunk, chunk
from tidegate_runtime.indexer.loaders import load
from tidegate_runtime.models.fake import WhitespaceTokenizer


def cut(text: str, strategy: str, *, size: int, overlap: int = 0, name: str = "a.md") -> list[Chunk]:
    shape = ChunkingShape.model_validate({"strategy": strategy, "size_tokens": size, "overlap_tokens": overlap})
    return chunk(load(name, text.encode(), source="s").documents[0], shape, WhitespaceTokenizer())


def contents(chunks: list[Chunk]) -> list[str]:
    return [part.content for part in chunks]


def words(prefix: str, number: int) -> str:
    return " ".join(f"{prefix}{index}" for index in range(number))


@pytest.mark.parametrize("strategy", ["markdown", "recursive", "fixed"])
def test_a_short_document_is_one_chunk(strategy: str) -> None:
    (only,) = cut("\n  One line.\nAnother.\n\nEnd \n", strategy, size=20, overlap=4)
    assert only.content == "One line.\nAnother.\n\nEnd"
    assert (only.ordinal, only.start, only.tokens, only.heading) == (0, 3, 4, "")


class TestRecursive:
    """Paragraphs, then lines, then sentences, then words."""

    def test_paragraphs_are_packed_whole(self) -> None:
        text = f"{words('a', 4)}\n\n{words('b', 4)}\n\n{words('c', 4)}"
        assert contents(cut(text, "recursive", size=10)) == [f"{words('a', 4)}\n\n{words('b', 4)}", words("c", 4)]

    def test_a_paragraph_that_is_too_large_is_cut_between_sentences_and_fills_the_chunk_before(self) -> None:
        text = "a b c.\n\nD e f g. H i j k. L m n o."
        assert contents(cut(text, "recursive", size=8)) == ["a b c.\n\nD e f g.", "H i j k. L m n o."]

    def test_lines_are_kept_together_but_not_across_a_wrapped_sentence(self) -> None:
        text = "First line of one\nand its wrapped end\nSecond line of two\nand its wrapped end"
        assert contents(cut(text, "recursive", size=10)) == text.replace("end\n", "end\n\n").split("\n\n")

    def test_chinese_sentences_are_cut_after_their_punctuation(self) -> None:
        shape = ChunkingShape(strategy="recursive", size_tokens=12, overlap_tokens=0)
        document = load("a.txt", "年假为二十五天。病假需要证明。产假另行规定。".encode(), source="s").documents[0]

        class Characters:
            def offsets(self, text: str) -> list[tuple[int, int]]:
                return [(place, place + 1) for place in range(len(text))]

        found = contents(chunk(document, shape, Characters()))
        assert found == ["年假为二十五天。", "病假需要证明。", "产假另行规定。"]

    def test_abbreviations_before_lower_case_end_no_sentence(self) -> None:
        text = "Use tools, e.g. hammers or saws. Then stop here now."
        assert contents(cut(text, "recursive", size=8)) == ["Use tools, e.g. hammers or saws.", "Then stop here now."]

    def test_a_long_sentence_is_cut_between_words(self) -> None:
        assert contents(cut(words("w", 10), "recursive", size=4)) == ["w0 w1 w2 w3", "w4 w5 w6 w7", "w8 w9"]

    def test_a_chunk_repeats_the_last_words_of_the_one_before(self) -> None:
        found = contents(cut(words("w", 13), "recursive", size=6, overlap=2))
        assert found == ["w0 w1 w2 w3 w4 w5", "w4 w5 w6 w7 w8 w9", "w8 w9 w10 w11 w12"]

    def test_the_repeated_part_begins_with_a_sentence_where_one_fits(self) -> None:
        text = "a b c d e. F g h. I j k l m n."
        assert contents(cut(text, "recursive", size=9, overlap=4)) == ["a b c d e. F g h.", "F g h. I j k l m n."]

    def test_a_unit_that_just_fits_is_kept_whole_instead_of_repeating(self) -> None:
        text = f"{words('a', 6)}\n\n{words('b', 10)}\n\n{words('c', 3)}"
        found = contents(cut(text, "recursive", size=10, overlap=3))
        assert found == [words("a", 6), words("b", 10), f"b7 b8 b9\n\n{words('c', 3)}"]


class TestFixed:
    """Windows of tokens."""

    def test_windows_have_the_size_and_share_the_overlap(self) -> None:
        found = contents(cut("A b.\n\nC d e. F g h i.", "fixed", size=4, overlap=1))
        assert found == ["A b.\n\nC d", "d e. F g", "g h i."]


class TestMarkdown:
    """Headings, then blocks, then lines, then sentences."""

    def test_sections_are_chunks_that_know_their_headings(self) -> None:
        text = f"# Guide\n\n{words('a', 8)}\n\n## Install\n\n{words('b', 8)}\n\n### Linux\n\n{words('c', 8)}\n\n## Use\n\n{words('d', 8)}"
        found = cut(text, "markdown", size=16)
        assert [part.heading for part in found] == [
            "Guide",
            "Guide > Install",
            "Guide > Install > Linux",
            "Guide > Use",
        ]
        assert found[2].content == f"### Linux\n\n{words('c', 8)}"

    def test_every_part_of_a_long_section_has_its_heading(self) -> None:
        found = cut(f"# Leave\n\n{words('a', 30)}", "markdown", size=10)
        assert [part.heading for part in found] == ["Leave"] * 4

    def test_a_heading_without_text_goes_with_what_follows(self) -> None:
        found = cut(f"# Guide\n\n## Install\n\n{words('a', 8)}\n", "markdown", size=12)
        assert [(part.heading, part.ordinal) for part in found] == [("Guide > Install", 0)]

    def test_a_heading_is_never_left_behind_by_its_first_paragraph(self) -> None:
        found = contents(cut(f"# Guide\n\n{words('a', 10)}", "markdown", size=10))
        assert found[0].startswith("# Guide\n\na0")

    def test_small_sections_that_belong_together_share_a_chunk(self) -> None:
        text = f"# Terms\n\n{words('a', 20)}\n\n## One\n\nfirst\n\n## Two\n\nsecond\n\n# Other\n\n{words('b', 20)}"
        found = cut(text, "markdown", size=30)
        assert [part.heading for part in found] == ["Terms", "Terms", "Other"]
        assert found[1].content == "## One\n\nfirst\n\n## Two\n\nsecond"

    @pytest.mark.parametrize(
        "block",
        [
            "```python\n# not a heading\n\ndef f():\n    return 1  # one. Two. Three.\n```",
            "| a | b |\n|---|---|\n| One. Two | three four five six |",
        ],
        ids=["fence", "table"],
    )
    def test_a_block_that_fits_is_not_cut(self, block: str) -> None:
        size = len(block.split()) + 1
        found = contents(
            cut(f"{words('a', size - 2)}\n\n{block}\n\n{words('b', size - 2)}", "markdown", size=size, overlap=4)
        )
        assert any(block in content for content in found)

    def test_a_fence_that_is_too_large_is_cut_between_lines(self) -> None:
        lines = "\n".join(f"call(x, {number})" for number in range(8))
        found = contents(cut(f"```\n{lines}\n```", "markdown", size=7))
        assert found[0] == "```\n" + "\n".join(lines.split("\n")[:3])

    def test_list_items_are_places_to_cut_and_wrapped_lines_are_not(self) -> None:
        text = "- item one goes\n  on here\n- item two goes\n  on here\n- item three"
        assert contents(cut(text, "markdown", size=7)) == [
            "- item one goes\n  on here",
            "- item two goes\n  on here",
            "- item three",
        ]

    def test_pages_are_cut_by_their_headings_too(self) -> None:
        html = f"<h1>Guide</h1><p>{words('a', 8)}</p><h2>Use</h2><p>{words('b', 8)}</p>"
        found = cut(html, "markdown", size=12, name="a.html")
        assert [(part.heading, part.content) for part in found] == [
            ("Guide", f"# Guide\n\n{words('a', 8)}"),
            ("Guide > Use", f"## Use\n\n{words('b', 8)}"),
        ]


def test_locations_of_a_page_point_into_its_markup() -> None:
    html = "<h1>Weights</h1>\n<p>About <b>2&nbsp;㎏</b> of ﬁsh 👩‍🚀 e\u0301!</p>"
    document = load("a.html", html.encode(), source="s").documents[0]
    (only,) = chunk(
        document, ChunkingShape(strategy="markdown", size_tokens=50, overlap_tokens=0), WhitespaceTokenizer()
    )
    start, end = document.offsets.original_span(only.start, only.end)
    assert html[start:end] == "Weights</h1>\n<p>About <b>2&nbsp;㎏</b> of ﬁsh 👩‍🚀 e\u0301!"


def test_an_edit_at_the_end_leaves_the_chunks_before_it_as_they_were() -> None:
    text = "\n\n".join(words(f"p{number}_", 8) for number in range(20))
    before, after = (
        cut(text, "recursive", size=20, overlap=4),
        cut(text + "\n\nnew words", "recursive", size=20, overlap=4),
    )
    assert after[: len(before) - 1] == before[:-1]
