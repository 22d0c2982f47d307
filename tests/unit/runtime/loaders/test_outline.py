"""Blocks of Markdown: what is a heading, a fence, a table, a paragraph."""

import time

import pytest

from tidegate_runtime.indexer.loaders.outline import Kind, blocks, first_heading

TEXT = """Intro line
goes on

# One #

Setext
======
~~~
# no heading
```
~~~
| a | b |
|---|---|
after the table
## `Two` **bold** [link](http://x) {#anchor}
```python
unclosed
"""


def test_every_block_is_recognised() -> None:
    found = [(block.kind, block.level, block.title, TEXT[block.start : block.end]) for block in blocks(TEXT)]
    assert found == [
        (Kind.PARAGRAPH, 0, "", "Intro line\ngoes on\n"),
        (Kind.HEADING, 1, "One", "# One #\n"),
        (Kind.HEADING, 1, "Setext", "Setext\n======\n"),
        (Kind.FENCE, 0, "", "~~~\n# no heading\n```\n~~~\n"),
        (Kind.TABLE, 0, "", "| a | b |\n|---|---|\n"),
        (Kind.PARAGRAPH, 0, "", "after the table\n"),
        (Kind.HEADING, 2, "Two bold link", "## `Two` **bold** [link](http://x) {#anchor}\n"),
        (Kind.FENCE, 0, "", "```python\nunclosed\n"),
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("text\n\n## Second level\n# First", "Second level"),
        ("# \n\n# Named", "Named"),
        ("```\n# comment\n```\n", ""),
        ("#hashtag\n", ""),
        ("Windows\r\n=======\r\n", "Windows"),
        ("two lines\nof text\n---\n", ""),
        ("", ""),
    ],
)
def test_the_first_heading_with_words_is_the_title(text: str, title: str) -> None:
    assert first_heading(text) == title


@pytest.mark.parametrize("unit", ["\n", "# h\n", "```\n", "| x\n", "a\n", "=\n", "#" * 50 + " ", "[" * 50])
def test_time_is_in_proportion_to_the_text(unit: str) -> None:
    def seconds(times: int) -> float:
        begun = time.process_time()
        list(blocks(unit * times))
        return time.process_time() - begun

    # Eight times the text; a quadratic reader would take 64 times as long, a busy machine some of what lies between.
    seconds(100)
    assert min(seconds(16_000) for _ in range(2)) < 32 * max(seconds(2_000), 0.005)
