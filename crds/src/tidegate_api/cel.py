"""Evaluates the schema and its CEL rules offline, so that `tidegate local` refuses what the API server would.

The rules are read from the generated schema and run by `common-expression-language`; values are given
their schema's types first (an integer where a number is declared is a double to CEL) and members that
the schema doesn't know are left out, as in the API server. A rule that names `oldSelf` is evaluated on
an update only. Where a part is structurally broken its rules may be unable to run: the structural
violation is reported then, and a rule that can run still is.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeAlias

import cel

from tidegate_api import structure
from tidegate_api.crdgen import structural_schema
from tidegate_api.structure import Place, Schema, structural_violations
from tidegate_api.v1alpha1 import API_VERSION, KINDS
from tidegate_api.violation import Violation, listed, shown

Manifest: TypeAlias = Mapping[str, object]

_MODELS = {model.definition.kind: model for model in KINDS}


def violations(kind: str, manifest: Manifest, old: Manifest | None = None) -> list[Violation]:
    """Return everything for which the API server would refuse `manifest`, as an update of `old` where given."""
    if kind not in _MODELS:
        return [Violation("kind", f"{shown(kind)} is not a kind of {API_VERSION}: write one of {listed(_MODELS)}")]
    found = list(_identity_violations(kind, manifest))
    whole = Place(_schema(kind), manifest, "", old)
    structural = list(structural_violations(whole))
    return found + structural + list(_rule_violations(whole, broken=bool(structural)))


def unknown_fields(kind: str, manifest: Manifest) -> list[Violation]:
    """Return the members of `manifest` that the schema doesn't know: the API server would drop them unsaid."""
    if kind not in _MODELS:
        return []
    spec_only = {key: value for key, value in manifest.items() if key not in ("metadata", "status")}
    return list(structure.unknown_fields(Place(_schema(kind), spec_only, "")))


@cache
def _schema(kind: str) -> Schema:
    return structural_schema(_MODELS[kind])


@cache
def _program(expression: str) -> cel.Program:
    return cel.compile(expression)


def _identity_violations(kind: str, manifest: Manifest) -> Iterator[Violation]:
    """Yield what is wrong with apiVersion, kind and the presence of a name, which no schema of a kind covers."""
    for member, wanted in (("apiVersion", API_VERSION), ("kind", kind)):
        if manifest.get(member) != wanted:
            yield Violation(member, f"{shown(manifest.get(member))} is wrong: write {wanted}")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        yield Violation("metadata.name", "is missing: name the object")


def _rule_violations(place: Place, *, broken: bool) -> Iterator[Violation]:
    for rule in place.schema.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and place.old is None:
            continue
        failure = _failure(place, rule, broken=broken)
        if failure:
            yield failure
    for child in place.children():
        yield from _rule_violations(child, broken=broken)


def _failure(place: Place, rule: Schema, *, broken: bool) -> Violation | None:
    blamed = rule.get("fieldPath", "")
    path = f"{place.path}{blamed}".removeprefix(".")
    variables = {"self": _typed(place.schema, place.value)}
    if place.old is not None:
        variables["oldSelf"] = _typed(place.schema, place.old)
    try:
        if _program(rule["rule"]).execute(variables) is True:
            return None
    except (KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        return None if broken else Violation(path, f"can't be checked ({error}): correct the value")
    return Violation(path, f"{shown(_member(place.value, blamed))}: {rule['message']}")


def _typed(schema: Schema, value: object) -> object:
    """Return `value` as CEL sees it in the API server."""
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [_typed(schema.get("items", {}), item) for item in value]
    if isinstance(value, Mapping):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {
            key: _typed(known.get(key, others), member)
            for key, member in value.items()
            if member is not None and (key in known or others is not None)
        }
    return value


def _member(value: object, field_path: str) -> object:
    for name in field_path.split(".")[1:]:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
