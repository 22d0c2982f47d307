"""JSON lines: a bad line is that line's failure, by file and number, and no other's."""

import codecs

import pytest

from tidegate_runtime.indexer.loaders import LoadedFile, load


def loaded(*lines: str) -> LoadedFile:
    return load("docs.jsonl", "\n".join(lines).encode(), source="s")


def test_every_member_reaches_the_document() -> None:
    (document,) = loaded(
        '{"id": "a", "title": "T", "text": "body", "metadata": {"year": 2024, "tags": ["x"], "none": null},'
        ' "tenants": ["acme"], "groups": ["staff"]}'
    ).documents
    assert (document.document_id, document.title, document.text) == ("a", "T", "body")
    assert document.metadata == {"year": 2024, "tags": ["x"]}
    assert (document.tenants, document.groups) == (("acme",), ("staff",))
    assert document.offsets.original_span(1, 3) == (1, 3)
    assert document.key.source == "s"


def test_absent_members_mean_what_the_source_says() -> None:
    (document,) = loaded('{"id": "a", "text": "body"}').documents
    assert (document.title, document.metadata, document.tenants, document.groups) == ("", {}, None, ())


def test_an_empty_list_of_tenants_is_nobody() -> None:
    (document,) = loaded('{"id": "a", "text": "body", "tenants": []}').documents
    assert document.tenants == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "b", "text": "cut', "is not JSON (EOF while parsing a string at line 1 column 24); correct the line"),
        ("[1]", 'is no JSON object; write {"id": "…", "text": "…"}'),
        ('{"text": "x"}', "id is missing; add it"),
        ('{"id": "b"}', "text is missing; add it"),
        ('{"id": 7, "text": "x"}', "id: input should be a valid string"),
        ('{"id": "", "text": "x"}', "id: string should have at least 1 character"),
        ('{"id": "b", "text": " \\n"}', "text is empty; give it words, or remove the line"),
        (
            '{"id": "b", "text": "x", "tenant": "acme"}',
            "unknown member 'tenant'; put fields of your own under metadata",
        ),
        ('{"id": "b", "text": "x", "tenants": null}', "tenants: input should be a valid array"),
        ('{"id": "b", "text": "x", "tenants": "acme"}', "tenants: input should be a valid array"),
        (
            '{"id": "b", "text": "x", "metadata": {"a": {"b": 1}}}',
            "metadata.a: must be a text, a finite number, true or false, or a list of these",
        ),
        (
            '{"id": "b", "text": "x", "metadata": {"a": NaN}}',
            "metadata.a: must be a text, a finite number, true or false, or a list of these",
        ),
        ('{"id": "a", "text": "again"}', "id 'a' is already that of line 1; give it its own"),
    ],
)
def test_a_bad_line_fails_alone_and_by_number(line: str, reason: str) -> None:
    file = loaded('{"id": "a", "text": "first"}', "", line, '{"id": "c", "text": "last"}')
    assert [(document.document_id, document.text) for document in file.documents] == [("a", "first"), ("c", "last")]
    (failure,) = file.failures
    assert failure.document == "docs.jsonl:3"
    assert failure.reason == reason


def test_a_line_in_another_encoding_fails_alone() -> None:
    data = b'{"id": "a", "text": "x"}\n{"id": "b", "text": "\xb2\xe2"}\n{"id": "c", "text": "y"}'
    file = load("docs.jsonl", data, source="s")
    assert [document.document_id for document in file.documents] == ["a", "c"]
    assert file.failures[0].document == "docs.jsonl:2"
    assert file.failures[0].reason.startswith("is not JSON (")


def test_reasons_never_hold_the_text_of_a_document() -> None:
    file = loaded('{"id": "a", "text": ["secret words"], "x": "secret words"}', '{"id": 5, "text": "secret words"}')
    assert len(file.failures) == 2
    assert not any("secret" in failure.reason for failure in file.failures)


def test_an_id_of_a_failed_line_is_free_for_the_next() -> None:
    file = loaded('{"id": "a", "text": ""}', '{"id": "a", "text": "good"}')
    assert [document.text for document in file.documents] == ["good"]


def test_separators_of_unicode_do_not_end_a_line() -> None:
    (document,) = loaded('{"id": "a", "text": "one\u2028two\u0085three"}\r').documents
    assert document.text == "one\u2028two\u0085three"


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF8 + '{"id": "a", "text": "tür"}\n'.encode(),
        codecs.BOM_UTF16_LE + '{"id": "a", "text": "tür"}\n'.encode("utf-16-le"),
    ],
    ids=["utf-8", "utf-16"],
)
def test_a_byte_order_mark_is_no_part_of_the_first_line(data: bytes) -> None:
    assert load("docs.jsonl", data, source="s").documents[0].text == "tür"


def test_a_binary_file_is_one_failure() -> None:
    file = load("docs.jsonl", b"\x00\x01\n" * 100, source="s")
    assert [failure.document for failure in file.failures] == ["docs.jsonl"]
    assert "is binary" in file.failures[0].reason
