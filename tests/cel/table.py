"""Reads cases.yaml, for the offline test and for the one against an API server."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).with_name("cases.yaml")


@dataclass(frozen=True, slots=True)
class Case:
    """One manifest, what stood there before, and whether admission takes it."""

    name: str
    kind: str
    manifest: dict[str, Any]
    old: dict[str, Any] | None
    accept: bool
    path: str
    message: str


def load_cases() -> list[Case]:
    """Return every case, its patches applied."""
    table = yaml.safe_load(TABLE.read_text())
    return [_case(entry, table["bases"]) for entry in table["cases"]]


def _case(entry: dict[str, Any], bases: dict[str, Any]) -> Case:
    unknown = entry.keys() - {"name", "base", "patch", "old", "accept", "path", "message"}
    if unknown or (not entry["accept"] and not entry.get("path")):
        raise ValueError(f"case {entry['name']!r}: unknown members {sorted(unknown)} or no path for what is refused")
    base = bases[entry["base"]]
    return Case(
        name=entry["name"],
        kind=base["kind"],
        manifest=_merged(base, _expanded(entry.get("patch", {}))),
        old=_merged(base, _expanded(entry["old"])) if "old" in entry else None,
        accept=entry["accept"],
        path=entry.get("path", ""),
        message=entry.get("message", ""),
    )


def _expanded(value: Any, position: int = 0) -> Any:
    match value:
        case {"$repeat": count, "item": item}:
            return [_expanded(item, index) for index in range(count)]
        case {"$text": text, "times": times}:
            return text * times
        case dict():
            return {key: _expanded(member, position) for key, member in value.items()}
        case list():
            return [_expanded(item, position) for item in value]
        case str():
            return value.replace("#", str(position))
    return value


def _merged(base: Any, patch: Any) -> Any:
    """Apply a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = copy.deepcopy(base) if isinstance(base, dict) else {}
    for key, member in patch.items():
        if member is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), member)
    return merged
