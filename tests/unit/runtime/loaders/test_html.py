"""Readable text of pages, and the way back to the markup."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_runtime.indexer.loaders.html import extract_html


def text_of(html: str) -> str:
    return extract_html(html).text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>Two<br>lines</p>", "One\n\nTwo\nlines"),
        ("a  <b>b</b>\n c", "a b c"),
        ("re<b>bold</b>ed", "rebolded"),
        ("<h2>Head</h2>text", "## Head\n\ntext"),
        ("<h2></h2><p></p>text", "text"),
        ("<ul><li>a</li><li><p>b</p></li></ul>", "- a\n\n- b"),
        ("<table><tr><th>k<th>v<tr><td>1<td><p>2</p></table>end", "| k | v\n| 1 | 2\n\nend"),
        ("<table><tr><td>a</td><td></td><td>c</td></tr><tr><td></td></tr></table>end", "| a | | c\n\nend"),
        ("<pre>\n  one &lt; two\n    <b>three</b>\n\n</pre>x", "```\n  one < two\n    three\n```\n\nx"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre> </pre>x", "x"),
        ("&lt;tag&gt; &amp;&copy;&#65;&#x42; &unknown; 5 < 6 & 7", "<tag> &©AB &unknown; 5 < 6 & 7"),
        ("<script>if (a < b) x('</p>')</script>seen<style>p{}</style>", "seen"),
        ("<nav><ul><li>menu<nav>inner</nav></li></ul></nav>seen", "seen"),
        ("<!-- <p>no</p> --><!doctype html><?php x ?>seen<!-->too", "seentoo"),
        ("<a title=\"x > y\" href='>'>link</a>", "link"),
        ("<P CLASS=x>Upper</P>", "Upper"),
        ("<svg viewBox='0'/>seen<nav/>too", "seentoo"),
        ("<![CDATA[x]]>y", "y"),
    ],
)
def test_markup_becomes_plain_markdown(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    "html",
    [
        "<nav>kept because it never ends<p>kept",
        "<p kept='unclosed quote>kept",
        "kept < kept",
        "kept <b kept",
        "</kept>kept",
    ],
)
def test_what_is_malformed_loses_no_text(html: str) -> None:
    assert "kept" in text_of(html)


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>A &amp;\n B</title><h1>H</h1>", "A &\n B"),
        ("<svg><title>icon</title></svg><h1>The <i>head</i></h1><h1>second</h1>", "The head"),
        ("<title> </title><h1>H</h1>", "H"),
        ("<p>none</p>", ""),
    ],
)
def test_the_title_is_that_of_the_head_or_the_first_h1(html: str, title: str) -> None:
    assert extract_html(html).title == title


def test_the_title_is_no_part_of_the_text() -> None:
    assert text_of("<title>T</title>body") == "body"


def test_spans_lead_back_to_the_markup() -> None:
    html = "<h1>Caf&eacute;</h1>\n<p>The <b>quick &amp; brown</b> 狐 ﬁx</p>"
    extract = extract_html(html)
    for words, original in [
        ("Café", "Caf&eacute;"),
        ("quick & brown", "quick &amp; brown"),
        ("The quick", "The <b>quick"),
        ("狐 ﬁx", "狐 ﬁx"),
        ("# Café", "Caf&eacute;"),
    ]:
        start = extract.text.index(words)
        first, last = extract.offsets.original_span(start, start + len(words))
        assert html[first:last] == original


@given(st.text(alphabet="<>&;/!-=\"' \na狐é&lt;p", max_size=60))
def test_any_input_gives_text_whose_spans_lie_in_the_original_in_order(html: str) -> None:
    extract = extract_html(html)
    spans = [extract.offsets.original_span(place, place + 1) for place in range(len(extract.text))]
    assert all(0 <= start <= end <= len(html) for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)


@pytest.mark.parametrize(
    "unit",
    '< </ <! <!-- <![CDATA[ <script> <title> <nav> </nav <p> <h1> <td> <pre> <a <a/b=\' <a/b="x" <a/b=\'"> & &#'.split(),  # noqa: SIM905
)
def test_time_is_in_proportion_to_the_page_whatever_it_holds(unit: str) -> None:
    def seconds(times: int) -> float:
        begun = time.process_time()
        extract_html(f"{unit} " * times + ">")
        return time.process_time() - begun

    # Eight times the page; a quadratic reader would take 64 times as long, a busy machine some of what lies between.
    seconds(100)
    assert min(seconds(16_000) for _ in range(2)) < 32 * max(seconds(2_000), 0.005)
