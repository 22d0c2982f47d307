"""Checks a manifest against a structural schema offline, as the API server does at admission.

Works on the generated schema, not on the models: what is checked here is, byte for byte, what the
API server is given. A member that is null counts as absent. Members that the schema doesn't know are
no violation here, because the API server prunes them; `unknown_fields` lists them.
"""

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import cel

from tidegate_api.v1alpha1.common import PATTERN_HINTS
from tidegate_api.violation import Violation, listed, shown

Schema: TypeAlias = Mapping[str, Any]

# Patterns are RE2 in the API server; CEL's own engine has the same grammar, Python's `$` has not.
_MATCHES = cel.compile("value.matches(pattern)")


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a manifest, the schema that rules it, and what stood there before an update."""

    schema: Schema
    value: object
    path: str
    old: object = None

    @property
    def open(self) -> bool:
        """Tell whether members that the schema doesn't name are kept."""
        return bool(self.schema.get("x-kubernetes-preserve-unknown-fields"))

    def children(self) -> Iterator["Place"]:
        """Yield the values below, as far as the schema knows them. What an item of a list was is not known."""
        if isinstance(self.value, Mapping):
            old = self.old if isinstance(self.old, Mapping) else {}
            for key, member in self.value.items():
                schema = self._schema_of(key)
                if schema is not None and member is not None:
                    yield Place(schema, member, self._path_of(key), old.get(key))
        elif isinstance(self.value, list) and "items" in self.schema:
            for position, item in enumerate(self.value):
                yield Place(self.schema["items"], item, f"{self.path}[{position}]")

    def _schema_of(self, key: object) -> Schema | None:
        found: Schema | None = self.schema.get("properties", {}).get(key, self.schema.get("additionalProperties"))
        return found

    def _path_of(self, key: object) -> str:
        if "additionalProperties" in self.schema:
            return f"{self.path}[{key}]"
        return f"{self.path}.{key}" if self.path else str(key)


def structural_violations(place: Place) -> Iterator[Violation]:
    """Yield what is wrong with a value and with everything below it."""
    wrong_type = _type_violation(place)
    if wrong_type:
        yield wrong_type
        return
    yield from _own_violations(place)
    for child in place.children():
        yield from structural_violations(child)


def unknown_fields(place: Place) -> Iterator[Violation]:
    """Yield every member that the schema doesn't know."""
    known: Mapping[str, Schema] | None = place.schema.get("properties")
    if known is not None and isinstance(place.value, Mapping) and not place.open:
        for key in place.value:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known here: {listed(known)}."
                path = f"{place.path}.{key}" if place.path else str(key)
                yield Violation(path, f"is an unknown field; {hint} Correct or remove it")
    for child in place.children():
        yield from unknown_fields(child)


def _type_violation(place: Place) -> Violation | None:
    schema, value = place.schema, place.value
    if schema.get("x-kubernetes-int-or-string"):
        fits, wanted = _is_integer(value) or isinstance(value, str), "an integer or a string"
    else:
        match schema.get("type"):
            case "object":
                fits, wanted = isinstance(value, Mapping), "an object"
            case "array":
                fits, wanted = isinstance(value, list), "a list"
            case "string":
                fits, wanted = isinstance(value, str), "a string"
            case "boolean":
                fits, wanted = isinstance(value, bool), "true or false"
            case "integer":
                fits, wanted = _is_integer(value), "an integer"
            case "number":
                fits, wanted = _is_number(value), "a number"
            case _:
                return None
    if fits:
        return None
    if "string" in wanted and not isinstance(value, Mapping | list):
        wanted += ", in quotes"
    return Violation(place.path, f"{shown(value)} has the wrong type: write {wanted}")


def _own_violations(place: Place) -> Iterator[Violation]:
    """Yield what is wrong with a value itself; its type is right."""
    schema, value = place.schema, place.value
    if "enum" in schema and value not in schema["enum"]:
        yield Violation(place.path, f"{shown(value)} is not allowed: write one of {', '.join(schema['enum'])}")
    if isinstance(value, str):
        yield from _length_violations(place, len(value), "Length", "characters")
        if "pattern" in schema and not _MATCHES.execute({"value": value, "pattern": schema["pattern"]}):
            hint = PATTERN_HINTS.get(schema["pattern"], f"it must match {schema['pattern']}")
            yield Violation(place.path, f"{shown(value)} is malformed: {hint}")
    elif isinstance(value, Mapping):
        yield from _length_violations(place, len(value), "Properties", "members")
        for name in schema.get("required", ()):
            if value.get(name) is None:
                path = f"{place.path}.{name}" if place.path else name
                yield Violation(path, "is missing: add it")
    elif isinstance(value, list):
        yield from _length_violations(place, len(value), "Items", "items")
        yield from _repeated_keys(place, value)
    elif _is_number(value):
        yield from _range_violations(place, value)


def _length_violations(place: Place, length: int, bound: str, unit: str) -> Iterator[Violation]:
    most, least = place.schema.get(f"max{bound}"), place.schema.get(f"min{bound}")
    if most is not None and length > most:
        subject = f"{shown(place.value)} is too long" if isinstance(place.value, str) else f"has {length} {unit}"
        yield Violation(place.path, f"{subject}: at most {most} {unit} are allowed, shorten it")
    if least is not None and length < least:
        needed = f"{least} {unit}" if least > 1 else f"one {unit.removesuffix('s')}"
        yield Violation(place.path, f"{shown(place.value)} is too short: give at least {needed}")


def _range_violations(place: Place, value: Any) -> Iterator[Violation]:
    schema = place.schema
    most, least = schema.get("maximum"), schema.get("minimum")
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        yield Violation(place.path, f"{shown(value)} is too large: write at most {most}")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        yield Violation(place.path, f"{shown(value)} is too small: write at least {least}")


def _repeated_keys(place: Place, items: list[object]) -> Iterator[Violation]:
    """Yield items of a map list that have the key of an earlier one."""
    keys = place.schema.get("x-kubernetes-list-map-keys", ())
    seen: set[str] = set()
    for position, item in enumerate(items if keys else ()):
        key = shown([item.get(name) for name in keys]) if isinstance(item, Mapping) else ""
        if key and key in seen:
            yield Violation(
                f"{place.path}[{position}].{keys[0]}", f"{key[1:-1]} is given twice: rename or remove one of the two"
            )
        seen.add(key)


def _is_integer(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
