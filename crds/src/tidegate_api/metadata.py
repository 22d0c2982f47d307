"""What `metadataSchema` means: which values fit a declared type, and what a filter compares.

The one place that decides, for every plane: the operator refuses a source's constant by it, the
indexer a document, and the store files values by it. A value that says the same in another notation
fits (the text "2024" is a number, "true" a bool); true is no number and 1 no bool. Absent fits
everything, and so does whatever stands under a key that is not declared.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from tidegate_api.shape import MetadataType
from tidegate_api.violation import shown
from tidegate_api.wire import Scalar

StoredValue = str | float | bool


def stored_value(value: Scalar, declared: MetadataType) -> StoredValue | None:
    """Return what filters compare `value` as (a date as seconds since 1970); None when it does not fit."""
    match declared:
        case "keyword":
            return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        case "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).lower())
        case "number":
            return None if isinstance(value, bool) else _number(value)
        case "date":
            return _seconds(value) if isinstance(value, str) else None


def misfit(value: Scalar | list[Scalar], *, key: str, declared: MetadataType) -> str | None:
    """Return why `value` does not fit what metadataSchema says of `key`, with the next step; None when it fits.

    A list fits when all of its items do.
    """
    for item in value if isinstance(value, list) else [value]:
        if stored_value(item, declared) is None:
            return (
                f"{shown(item)} is no {declared}, which metadataSchema says of {key}: correct the value or the schema"
            )
    return None


def metadata_misfit(metadata: Mapping[str, Scalar | list[Scalar]], *, schema: Mapping[str, MetadataType]) -> str | None:
    """Return which value of a document does not fit `schema`, the first by its key, and why; None when all fit."""
    for key, declared in sorted(schema.items()):
        if key in metadata and (reason := misfit(metadata[key], key=key, declared=declared)):
            return f"metadata.{key}: {reason}"
    return None


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
