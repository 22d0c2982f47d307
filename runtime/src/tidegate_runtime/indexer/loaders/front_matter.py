"""The YAML block at the top of a Markdown file, as far as it is simple.

Read are `key: scalar`, `key: [a, b]` and lists of `- item` lines; anything nested or fancier is passed
over, key and all. The block never becomes part of the text. `tenants` and `groups` decide who may
read, so there nothing is passed over: a form that cannot be read makes the document a failure.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate_api.wire import Scalar
from tidegate_runtime.errors import UnreadableDocumentError

_BLOCK = re.compile(r"---[ \t]*\r?\n(?P<body>.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(?P<value>.*))?$")
_ITEM = re.compile(r"[ \t]*-[ \t]+(?P<value>.*)$")
_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+|\d+\.\d*)(?:[eE][-+]?\d+)?$")
_DIGITS_MAX = 4300  # what Python turns into an integer, and JSON readers too
_COMMENT = re.compile(r"[ \t]+#.*$")
_BEYOND_PLAIN = tuple("&*!|>{%@`?,]}")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_WHO_MAY_READ = ("tenants", "groups")

Value = Scalar | list[Scalar]


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Where the text begins, and what was said before it."""

    length: int = 0
    fields: dict[str, Value] = field(default_factory=dict)
    tenants: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()


class _BeyondSimpleError(Exception):
    """A value that needs a real YAML parser."""


def read_front_matter(text: str) -> FrontMatter:
    """Return the front matter of a Markdown text; an empty one when there is none.

    Raises:
        UnreadableDocumentError: it says who may read in a form that cannot be read.
    """
    block = _BLOCK.match(text)
    entries = _entries(block["body"].splitlines()) if block else None
    if block is None or entries is None:
        return FrontMatter()
    fields: dict[str, Value] = {}
    for key, inline, below in entries:
        try:
            value = _value(inline, below)
        except _BeyondSimpleError:
            if key in _WHO_MAY_READ:
                raise _unreadable(key) from None
            continue
        if value is not None:
            fields[key] = value
        elif key in _WHO_MAY_READ:
            raise _unreadable(key)
    tenants = _names("tenants", fields.pop("tenants", None))
    return FrontMatter(block.end(), fields, tenants, _names("groups", fields.pop("groups", None)) or ())


def _entries(lines: Sequence[str]) -> list[tuple[str, str, list[str]]] | None:
    """Return key, rest of its line and the lines below it; None when the block is no mapping, hence no front matter."""
    entries: list[tuple[str, str, list[str]]] = []
    for line in lines:
        key = _KEY.match(line)
        if key:
            entries.append((key["key"], (key["value"] or "").strip(), []))
        elif not line.strip() or line.startswith("#"):
            continue
        elif entries and (line[0] in " \t" or _ITEM.match(line)):
            entries[-1][2].append(line)
        else:
            return None
    return entries or None


def _value(inline: str, below: Sequence[str]) -> Value | None:
    if not below:
        return _inline(inline)
    items = [_ITEM.match(line) for line in below]
    if _COMMENT.sub("", f" {inline}").strip() or not all(items):
        raise _BeyondSimpleError
    return _list(item["value"] for item in items if item)


def _inline(text: str) -> Value | None:
    if not text.startswith("["):
        return _scalar(text)
    inside = _COMMENT.sub("", text)
    if not inside.endswith("]") or any(mark in inside[1:-1] for mark in "[]{}\"'"):
        return _quoted_list(inside)
    return _list(part for part in inside[1:-1].split(",") if part.strip())


def _quoted_list(text: str) -> list[Scalar]:
    """Return `["a", 'b, c']`: quotes around whole items, no brackets inside."""
    if not re.fullmatch(r"\[[ ]*(?:\"[^\"\\]*\"|'[^']*')(?:[ ]*,[ ]*(?:\"[^\"\\]*\"|'[^']*'))*[ ]*\]", text):
        raise _BeyondSimpleError
    return [item[1:-1] for item in re.findall(r"\"[^\"\\]*\"|'[^']*'", text)]


def _list(parts: Iterator[str]) -> list[Scalar]:
    values = [_scalar(part.strip()) for part in parts]
    if any(value is None for value in values):
        raise _BeyondSimpleError
    return [value for value in values if value is not None]


def _scalar(text: str) -> Scalar | None:
    quote = text[:1]
    if quote in ('"', "'") and quote:
        inside = re.fullmatch(r"(\"[^\"\\]*\"|'(?:[^']|'')*')(?:[ \t]+#.*)?", text)
        if not inside:
            raise _BeyondSimpleError
        return inside[1][1:-1].replace("''", "'") if quote == "'" else inside[1][1:-1]
    plain = _COMMENT.sub("", f" {text}").strip()
    if plain in _WORDS:
        return _WORDS[plain]
    if plain.startswith(_BEYOND_PLAIN) or ": " in plain or plain.endswith(":"):
        raise _BeyondSimpleError
    if _NUMBER.match(plain):
        return _number(plain)
    return plain


def _number(text: str) -> Scalar:
    """Return the number; one that is too large to be held stays a text, for the schema to judge."""
    if text.lstrip("+-").isdecimal():
        return int(text) if len(text) <= _DIGITS_MAX else text
    number = float(text)
    return number if math.isfinite(number) else text


def _names(key: str, value: Value | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    names = [name for name in values if isinstance(name, str) and name]
    if len(names) != len(values):
        raise _unreadable(key)
    return tuple(names)


def _unreadable(key: str) -> UnreadableDocumentError:
    return UnreadableDocumentError(f"front matter: {key} cannot be read; write it as {key}: [name, name]")
