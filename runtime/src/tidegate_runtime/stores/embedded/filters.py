"""Filters on declared metadata: checked against the schema once, then evaluated on columns.

A document's own value wins over its source's constant of the same name; a document with several
values matches when one of them does; one with none matches nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from tidegate_api.metadata import StoredValue
from tidegate_api.shape import MetadataType
from tidegate_api.wire import Comparison, Compound, Filter, Membership
from tidegate_runtime.errors import InvalidFilterError
from tidegate_runtime.ports import SourceRules
from tidegate_runtime.stores.embedded.metadata import filter_value, stored_values
from tidegate_runtime.stores.embedded.segment import Segment

MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class OneOf:
    """The field has one of the values."""

    field: str
    declared: MetadataType
    values: tuple[StoredValue, ...]


@dataclass(frozen=True, slots=True)
class Combined:
    """All (and) or any (or) of the parts hold."""

    operator: Literal["and", "or"]
    parts: "tuple[Predicate, ...]"


Predicate = OneOf | Combined


def parse_filter(filters: Filter, *, schema: Mapping[str, MetadataType], depth: int = 1) -> Predicate:
    """Return `filters` with values in stored form.

    Raises:
        InvalidFilterError: a key is not declared, a value has another type, or it is nested too deep.
    """
    if depth > MAX_DEPTH:
        raise InvalidFilterError(f"filters are nested deeper than {MAX_DEPTH} levels: flatten them")
    match filters:
        case Comparison():
            return _one_of(filters.key, [filters.value], schema=schema)
        case Membership():
            return _one_of(filters.key, filters.value, schema=schema)
        case Compound():
            parts = tuple(parse_filter(part, schema=schema, depth=depth + 1) for part in filters.filters)
            return Combined(filters.type, parts)
        case _:
            assert_never(filters)


def _one_of(key: str, values: list[str | int | float | bool], *, schema: Mapping[str, MetadataType]) -> OneOf:
    declared = schema.get(key)
    if declared is None:
        known = ", ".join(f"{name}: {kind}" for name, kind in sorted(schema.items())) or "nothing"
        raise InvalidFilterError(
            f"filter on {key!r} (value {values[0]!r}): metadataSchema declares {known}; "
            "filter by one of these or declare the field"
        )
    return OneOf(key, declared, tuple(filter_value(value, key=key, declared=declared) for value in values))


def matching_documents(
    predicate: Predicate, segment: Segment, *, rules: Mapping[str, SourceRules]
) -> NDArray[np.bool_]:
    """Return which documents of `segment` satisfy `predicate`."""
    if isinstance(predicate, OneOf):
        return _documents_with_one_of(predicate, segment, rules=rules)
    parts = [matching_documents(part, segment, rules=rules) for part in predicate.parts]
    combined: NDArray[np.bool_] = np.all(parts, axis=0) if predicate.operator == "and" else np.any(parts, axis=0)
    return combined


def _documents_with_one_of(
    predicate: OneOf, segment: Segment, *, rules: Mapping[str, SourceRules]
) -> NDArray[np.bool_]:
    column = segment.column(predicate.field)
    wanted: list[StoredValue] | list[int] = list(predicate.values)
    if predicate.declared == "keyword":
        numbers = segment.keyword_numbers[predicate.field]
        wanted = [numbers[str(value)] for value in predicate.values if str(value) in numbers]
    by_source = [_source_matches(predicate, rules.get(source)) for source in segment.dictionaries.sources]
    matches = np.array(by_source, dtype=np.bool_)[segment.source_numbers]
    matches[column.documents] = False
    hits = np.isin(column.values, np.array(wanted, dtype=column.values.dtype))
    matches[column.documents[hits]] = True
    return matches


def _source_matches(predicate: OneOf, rules: SourceRules | None) -> bool:
    if rules is None or predicate.field not in rules.metadata:
        return False
    own = stored_values(rules.metadata[predicate.field], declared=predicate.declared)
    return any(value in predicate.values for value in own)
