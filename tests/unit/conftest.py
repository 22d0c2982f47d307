"""Unit tests open no sockets: what needs one belongs to contract, integration or e2e."""

from collections.abc import Iterator

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def no_sockets() -> Iterator[None]:
    """Refuse sockets; the event loop's own Unix socket pair stays allowed."""
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()
