"""Bytes of a file to text: UTF-8, or UTF-16 that says so.

An encoding is never guessed: a wrong guess indexes rubbish without an error. What is not text is
refused with the place of the first byte that shows it and the next step.
"""

import codecs

from tidegate_runtime.errors import UnreadableDocumentError

_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def decode(data: bytes) -> str:
    """Return the text of a file without its byte order mark.

    Raises:
        UnreadableDocumentError: it is binary or in another encoding.
    """
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableDocumentError("is UTF-32; convert it, e.g. with iconv -f UTF-32 -t UTF-8")
    encoding = _WIDE.get(data[:2])
    if encoding is not None:
        return _decoded(data, encoding, skip=2, name="UTF-16")
    refuse_binary(data)
    return _decoded(data, "utf-8", skip=len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0, name="UTF-8")


def refuse_binary(data: bytes) -> None:
    """Refuse what holds a NUL byte, which no text in UTF-8 does.

    Raises:
        UnreadableDocumentError: it does.
    """
    place = data.find(b"\0")
    if place >= 0:
        raise UnreadableDocumentError(f"is binary (NUL at byte {place}); leave it out with include, or export its text")


def _decoded(data: bytes, encoding: str, *, skip: int, name: str) -> str:
    try:
        text = data[skip:].decode(encoding)
    except UnicodeDecodeError as error:
        raise UnreadableDocumentError(
            f"is not {name} at byte {skip + error.start}; convert it, e.g. with iconv -f GB18030 -t UTF-8"
        ) from error
    if "\0" in text:
        raise UnreadableDocumentError(
            "is binary (it holds NUL characters); leave it out with include, or export its text"
        )
    return text
