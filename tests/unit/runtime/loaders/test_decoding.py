"""Encodings are declared or UTF-8; what is not text is refused with the place and the next step."""

import codecs

import pytest

from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.loaders.decoding import decode

TEXT = "Straße 東京 👩‍🚀\r\n"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16-le", "utf-16-be"],
)
def test_text_is_decoded_without_its_mark_and_unchanged(data: bytes) -> None:
    assert decode(data) == TEXT


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("制度".encode("gb18030"), r"is not UTF-8 at byte 0; convert it, e.g. with iconv"),
        (b"caf\xe9 au lait", r"is not UTF-8 at byte 3;"),
        (codecs.BOM_UTF8 + b"ok\xff", r"is not UTF-8 at byte 5;"),
        (codecs.BOM_UTF16_LE + b"a\x00b", r"is not UTF-16 at byte 4;"),
        (codecs.BOM_UTF32_LE + b"a\x00\x00\x00", r"is UTF-32; convert it"),
        (b"%PDF-1.7\x00\x01", r"is binary \(NUL at byte 8\)"),
        (codecs.BOM_UTF16_LE + b"a\x00\x00\x00", r"is binary \(it holds NUL"),
    ],
    ids=["gb18030", "latin-1", "after a mark", "half a unit", "utf-32", "binary", "binary utf-16"],
)
def test_anything_else_is_refused_with_its_place(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableDocumentError, match=reason):
        decode(data)
