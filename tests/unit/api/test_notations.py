"""Durations and quantities: equal values in other spellings are equal."""

from decimal import Decimal

import pytest

from tidegate_api.v1alpha1.common import duration_seconds, quantity_value


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [("0s", 0), ("15m", 900), ("60s", 60), ("1m", 60), ("1h30m", 5400), ("1h30m5s10ms", 5405.01), ("250ms", 0.25)],
)
def test_duration(duration: str, seconds: float) -> None:
    assert duration_seconds(duration) == seconds


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        (8192, "8192"),
        ("8Ki", "8192"),
        ("8k", "8000"),
        ("1000m", "1"),
        ("0.5", "0.5"),
        ("1.5Gi", "1610612736"),
        ("2E", "2000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("100n", "1e-7"),
        ("5u", "0.000005"),
    ],
)
def test_quantity(quantity: int | str, value: str) -> None:
    assert quantity_value(quantity) == Decimal(value)


@pytest.mark.parametrize("text", ["", "Gi", "1GB", "1 Gi", "-1", "one"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity such as 512Mi"):
        quantity_value(text)
