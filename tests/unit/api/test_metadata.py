"""Which metadata fits a declared type, and what is said of the rest."""

import pytest

from tidegate_api.metadata import metadata_misfit, misfit, stored_value
from tidegate_api.shape import MetadataType
from tidegate_api.wire import Scalar


@pytest.mark.parametrize(
    ("declared", "value", "stored"),
    [
        ("keyword", "hr", "hr"),
        ("keyword", "", ""),
        ("keyword", 7, "7"),
        ("keyword", True, "true"),
        ("number", 2024, 2024.0),
        ("number", 1.5, 1.5),
        ("number", "2025", 2025.0),
        ("number", " -1e3 ", -1000.0),
        ("bool", True, True),
        ("bool", False, False),
        ("bool", "FALSE", False),
        ("date", "1970-01-02", 86_400.0),
        ("date", "1970-01-01T02:00:00+01:00", 3_600.0),
    ],
)
def test_a_value_that_fits_is_compared_as_its_type(declared: MetadataType, value: Scalar, stored: Scalar) -> None:
    found = stored_value(value, declared)
    assert (found, type(found)) == (stored, type(stored))


@pytest.mark.parametrize(
    ("declared", "value", "shown"),
    [
        ("number", "next", '"next"'),
        ("number", "", '""'),
        ("number", True, "true"),
        ("number", "nan", '"nan"'),
        ("number", float("inf"), "Infinity"),
        ("number", "1e999", '"1e999"'),
        ("number", 10**400, "1" + 59 * "0" + "…"),
        ("bool", "yes", '"yes"'),
        ("bool", 1, "1"),
        ("date", "31.1.2026", '"31.1.2026"'),
        ("date", 20260131, "20260131"),
        ("date", False, "false"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_the_next_step(
    declared: MetadataType, value: Scalar, shown: str
) -> None:
    assert misfit(value, key="key", declared=declared) == (
        f"{shown} is no {declared}, which metadataSchema says of key: correct the value or the schema"
    )


def test_a_long_value_is_shortened() -> None:
    reason = misfit("x" * 5000, key="year", declared="number")
    assert reason is not None
    assert "…(5000 characters) is no number" in reason
    assert len(reason) < 200


def test_a_list_fits_when_all_of_its_items_do() -> None:
    assert misfit(["2024", 2025], key="year", declared="number") is None
    assert misfit([], key="year", declared="number") is None
    reason = misfit([2024, "next"], key="year", declared="number")
    assert reason is not None
    assert reason.startswith('"next" is no number')


def test_the_first_key_that_does_not_fit_is_named() -> None:
    schema: dict[str, MetadataType] = {"year": "number", "final": "bool"}
    reason = metadata_misfit({"year": "next", "final": "maybe"}, schema=schema)
    assert reason is not None
    assert reason.startswith('metadata.final: "maybe" is no bool')


def test_what_is_absent_or_not_declared_always_fits() -> None:
    schema: dict[str, MetadataType] = {"year": "number"}
    assert metadata_misfit({}, schema=schema) is None
    assert metadata_misfit({"note": "anything", "other": [True, "x"]}, schema=schema) is None
    assert metadata_misfit({"year": "next"}, schema={}) is None
