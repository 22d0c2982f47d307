"""The command line of an indexer."""

from pathlib import Path

import pytest

from tidegate_api.arguments import Address
from tidegate_runtime.indexer.settings import parse_settings

NEEDED = ["--config", "c.json", "--root", "r", "--listen"]


def test_what_is_left_out_has_defaults() -> None:
    settings = parse_settings([*NEEDED, "127.0.0.1:8083", "--threads", "2"])

    assert (settings.config, settings.root, settings.threads) == (Path("c.json"), Path("r"), 2)
    assert settings.listen == Address("127.0.0.1", 8083)
    assert (settings.device, settings.token_file, settings.watch) == ("auto", None, False)


def test_an_address_may_be_ipv6() -> None:
    assert parse_settings([*NEEDED, "[::]:8083"]).listen == Address("::", 8083)


@pytest.mark.parametrize("address", ["8083", "host:", "host:http", "host:70000"])
def test_a_wrong_address_is_named(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_settings([*NEEDED, address])

    assert f"'{address}' is not HOST:PORT" in capsys.readouterr().err


@pytest.mark.parametrize("threads", ["0", "-1", "many"])
def test_a_wrong_number_of_threads_is_named(threads: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse_settings([*NEEDED, "h:1", f"--threads={threads}"])

    assert f"'{threads}' is not a whole number of 1 or more" in capsys.readouterr().err
