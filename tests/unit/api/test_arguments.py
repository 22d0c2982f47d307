"""Notations that command lines share."""

import argparse

import pytest

from tidegate_api.arguments import Address, address, namespaced_name, positive_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:80", Address("127.0.0.1", 80)), ("[::1]:0", Address("::1", 0)), (":8080", Address("", 8080))],
)
def test_an_address_is_read(text: str, expected: Address) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:x", "host:65536", "host:-1", "host:²"])
def test_what_is_no_address_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not HOST:PORT, such as"):
        address(text)


def test_a_namespaced_name_is_read() -> None:
    assert namespaced_name("acme/handbook-routing") == ("acme", "handbook-routing")


@pytest.mark.parametrize("text", ["", "acme", "acme/", "/handbook"])
def test_what_is_no_namespaced_name_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not NAMESPACE/NAME"):
        namespaced_name(text)


def test_a_positive_number_is_read() -> None:
    assert positive_number("16") == 16


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "many", "²"])
def test_what_is_no_positive_number_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number of 1 or more"):
        positive_number(text)
