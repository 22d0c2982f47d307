"""Notations that the command lines of several processes share, for `argparse`'s `type`.

One reader for each, so that a message about a wrong flag is the same wherever it is given.
"""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. Port 0 = any that is free."""

    host: str
    port: int


def address(text: str) -> Address:
    """Parse HOST:PORT; an IPv6 host stands in brackets.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8080 or [::]:8080")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def namespaced_name(text: str) -> tuple[str, str]:
    """Parse NAMESPACE/NAME.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    namespace, _, name = text.partition("/")
    if not namespace or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/NAME")
    return namespace, name


def positive_number(text: str) -> int:
    """Parse a whole number of 1 or more.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)
