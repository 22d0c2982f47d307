"""Files to documents: what each ending gives, and what never becomes one."""

import pytest

from tidegate_runtime.indexer.loaders import EXTENSIONS, Format, SourceDocument, holds_many, load


def document(name: str, content: str) -> SourceDocument:
    file = load(name, content.encode(), source="policies")
    assert not file.failures
    return file.documents[0]


def test_a_markdown_file_is_a_document_named_by_its_path() -> None:
    found = document("hr/leave.md", "---\ntitle: Leave\nyear: 2024\n---\n# Annual *leave*\n\nText\n")
    assert (found.document_id, found.title, found.format) == ("hr/leave.md", "Leave", Format.MARKDOWN)
    assert found.text == "# Annual *leave*\n\nText\n"
    assert found.metadata == {"year": 2024}


def test_front_matter_moves_locations_back_to_the_file() -> None:
    content = "---\ntitle: Leave\n---\nText"
    found = document("a.md", content)
    first, last = found.offsets.original_span(0, 4)
    assert content[first:last] == "Text"


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("a/leave.md", "# Annual **leave**\n", "Annual leave"),
        ("a/leave.md", "no heading", "leave"),
        ("a/leave.md", "---\ntitle: 2024\n---\n# Head", "Head"),
        ("a/leave.txt", "# no heading here", "leave"),
        ("a/leave.html", "<title>Leave\n policy</title>x", "Leave policy"),
        ("a/LEAVE.HTM", "<h1>Leave</h1>x", "Leave"),
        ("a/leave.html", "<p>x</p>", "leave"),
    ],
)
def test_the_title_is_the_documents_own_or_its_name(name: str, content: str, title: str) -> None:
    assert document(name, content).title == title


def test_a_title_is_bounded() -> None:
    assert len(document("a.md", "# " + "long " * 1000).title) <= 300


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.md", b"", "is empty"),
        ("a.txt", b" \n\t", "is empty"),
        ("a.jsonl", b"\n\n", "is empty"),
        ("a.html", b"<script>x</script>", "holds no text"),
        ("a.md", b"---\na: 1\n---\n", "holds no text"),
        ("a.txt", b"\xff\xfe\x00", "is not UTF-16 at byte 2"),
        ("a.md", b"PK\x03\x04\x00", "is binary"),
        ("a.docx", b"x", "no loader for '.docx'; known are .htm, .html, .jsonl, .markdown, .md, .txt"),
        ("README", b"x", "no loader for 'a name without an ending'"),
        ("a.md", b"---\ntenants: {}\n---\nx", "front matter: tenants cannot be read"),
    ],
)
def test_what_cannot_be_loaded_is_a_failure_with_name_and_reason(name: str, data: bytes, reason: str) -> None:
    file = load(name, data, source="s")
    assert not file.documents
    assert [failure.document for failure in file.failures] == [name]
    assert file.failures[0].reason.startswith(reason)


def test_equal_content_has_an_equal_hash_whatever_it_is_called() -> None:
    assert document("a.md", "# T\ntext").content_hash == document("b/a.md", "# T\ntext").content_hash


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "# T\ntext."),
        ("a.md", "---\ntitle: T\n---\n# T\ntext"),
        ("a.md", "---\nyear: 1\n---\n# T\ntext"),
        ("a.md", "---\ntenants: [acme]\n---\n# T\ntext"),
        ("a.md", "---\ntenants: []\n---\n# T\ntext"),
        ("a.md", "---\ngroups: [staff]\n---\n# T\ntext"),
        ("a.txt", "# T\ntext"),
    ],
)
def test_any_difference_that_an_index_would_show_changes_the_hash(name: str, content: str) -> None:
    assert document(name, content).content_hash != document("a.md", "# T\ntext").content_hash


def test_moved_markup_changes_the_hash_because_locations_move() -> None:
    assert document("a.html", "<p>x</p>").content_hash != document("a.html", "<p id=a>x</p>").content_hash


def test_only_json_lines_hold_many_documents() -> None:
    assert {ending for ending in EXTENSIONS if holds_many(f"A{ending.upper()}")} == {".jsonl"}
