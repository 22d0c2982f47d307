"""Front matter as far as it is simple; who may read is never guessed."""

import pytest

from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.loaders.front_matter import FrontMatter, read_front_matter

BODY = "# Leave\n"


def fields(yaml: str) -> dict[str, object]:
    return dict(read_front_matter(f"---\n{yaml}\n---\n{BODY}").fields)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("key: plain words", "plain words"),
        ("key: 2024", 2024),
        ("key: -1.5", -1.5),
        ("key: 1e999", "1e999"),
        pytest.param(f"key: -{'9' * 5000}", f"-{'9' * 5000}", id="more digits than a number may have"),
        ("key: 2024-05-01", "2024-05-01"),
        ("key: true", True),
        ('key: "true"', "true"),
        ("key: 'it''s: fine'  # note", "it's: fine"),
        ("key: a#b # note", "a#b"),
        ("key: http://example.org/x", "http://example.org/x"),
        ("key: [a, 2, true]", ["a", 2, True]),
        ("key: ['a, b', \"c\"]", ["a, b", "c"]),
        ("key: []", []),
        ("key:\n- a\n- b", ["a", "b"]),
        ("key:\n  - a  # first\n\n  - 2", ["a", 2]),
    ],
)
def test_scalars_and_lists_of_them_are_read(line: str, value: object) -> None:
    assert fields(line) == {"key": value}


@pytest.mark.parametrize(
    "line",
    [
        "key:",
        "key: null",
        "key: |\n  text\n  text",
        "key: {a: 1}",
        "key:\n  nested: 1",
        "key: &anchor x",
        "key: [[a], b]",
        "key: [a,\n  b]",
        'key: "a\\n"',
        "key: a: b",
        "key:\n- null",
    ],
)
def test_anything_else_is_passed_over_with_its_key(line: str) -> None:
    assert fields(f"before: 1\n{line}\nafter: 2") == {"before": 1, "after": 2}


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_text_begins_after_the_block(ending: str) -> None:
    text = ending.join(["---", "a: 1", "---", BODY])
    assert text[read_front_matter(text).length :] == BODY


@pytest.mark.parametrize(
    "text",
    [BODY, "---\na: 1\n", "---\n\nA paragraph between two rules.\n\n---\n", "text\n---\na: 1\n---\n", "---\n---\n", ""],
)
def test_a_text_without_front_matter_is_left_as_it_is(text: str) -> None:
    assert read_front_matter(text) == FrontMatter()


def test_who_may_read_is_taken_from_the_block() -> None:
    front = read_front_matter("---\ntenants: [acme, globex]\ngroups: staff\n---\n")
    assert (front.tenants, front.groups, front.fields) == (("acme", "globex"), ("staff",), {})


def test_an_empty_list_of_tenants_is_nobody_not_everybody() -> None:
    assert read_front_matter("---\ntenants: []\n---\n").tenants == ()


@pytest.mark.parametrize(
    "line", ["tenants: {a: 1}", "tenants:", "groups: null", "tenants: [1]", "tenants: true", "groups:\n  a: 1"]
)
def test_a_form_that_cannot_be_read_fails_the_document(line: str) -> None:
    with pytest.raises(UnreadableDocumentError, match=r"front matter: (tenants|groups) cannot be read; write it as"):
        read_front_matter(f"---\n{line}\n---\n{BODY}")
