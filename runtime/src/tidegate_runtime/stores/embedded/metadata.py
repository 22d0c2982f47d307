"""Typed metadata: how declared values are stored, and which values a filter may ask for.

A document's value that says the same in another notation is taken (the number "2024"); one that
does not fit the declared type cannot be filtered by and is only shown. A filter's value has to be
of the declared type: guessing there would answer another question than the one asked.
"""

import math
from datetime import UTC, datetime

from tidegate_api.shape import MetadataType
from tidegate_api.wire import Scalar
from tidegate_runtime.errors import InvalidFilterError

StoredValue = str | float | bool

_EXPECTED: dict[MetadataType, str] = {
    "keyword": "a string",
    "number": "a number",
    "date": "an ISO 8601 date or time, such as 2026-01-31",
    "bool": "true or false",
}


def stored_values(value: Scalar | list[Scalar], *, declared: MetadataType) -> list[StoredValue]:
    """Return the values that a document is found by; those that do not fit the type are left out."""
    items = value if isinstance(value, list) else [value]
    found = (_stored(item, declared) for item in items)
    return [item for item in found if item is not None]


def filter_value(value: Scalar, *, key: str, declared: MetadataType) -> StoredValue:
    """Return a filter's value in stored form.

    Raises:
        InvalidFilterError: the value is not of the declared type.
    """
    fits = {
        "keyword": isinstance(value, str),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "date": isinstance(value, str),
        "bool": isinstance(value, bool),
    }[declared]
    stored = _stored(value, declared) if fits else None
    if stored is None:
        raise InvalidFilterError(
            f"filter value {value!r} of {key!r}: metadataSchema declares {key} as {declared}, so give {_EXPECTED[declared]}"
        )
    return stored


def _stored(value: Scalar, declared: MetadataType) -> StoredValue | None:
    match declared:
        case "keyword":
            return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        case "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())
        case "number":
            return None if isinstance(value, bool) else _number(value)
        case "date":
            return _seconds(value) if isinstance(value, str) else None


def _number(value: str | float) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _seconds(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
