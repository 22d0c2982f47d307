"""Typed metadata: how declared values are stored, and which values a filter may ask for.

What fits a type is decided in `tidegate_api.metadata`, which also takes a value in another notation
(the text "2024"). A filter's value has to be of the declared type itself: guessing there would
answer another question than the one asked.
"""

from tidegate_api.metadata import StoredValue, stored_value
from tidegate_api.shape import MetadataType
from tidegate_api.wire import Scalar
from tidegate_runtime.errors import InvalidFilterError

_EXPECTED: dict[MetadataType, str] = {
    "keyword": "a string",
    "number": "a number",
    "date": "an ISO 8601 date or time, such as 2026-01-31",
    "bool": "true or false",
}


def stored_values(value: Scalar | list[Scalar], *, declared: MetadataType) -> list[StoredValue]:
    """Return the values that a document is found by.

    One that does not fit is left out: a source's constant follows the present schema, and an older
    revision that has another one goes on serving.
    """
    items = value if isinstance(value, list) else [value]
    found = (stored_value(item, declared) for item in items)
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
    stored = stored_value(value, declared) if fits else None
    if stored is None:
        raise InvalidFilterError(
            f"filter value {value!r} of {key!r}: metadataSchema declares {key} as {declared}, so give {_EXPECTED[declared]}"
        )
    return stored
