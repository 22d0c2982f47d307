"""The command line, and what a start loads."""

import json
import subprocess
import sys

import pytest
from tests.unit.sidecar.builders import config

from tidegate_api.arguments import Address
from tidegate_api.config import LimitsConfig
from tidegate_sidecar.identity import Identity
from tidegate_sidecar.main import front_limits, parse_arguments
from tidegate_sidecar.settings import Settings

REQUIRED = ["--config", "c.json", "--table", "t.json", "--runtime-socket", "r.sock"]


def test_addresses_have_defaults_and_may_be_ipv6():
    assert parse_arguments(REQUIRED).listen == Address("0.0.0.0", 8080)
    options = parse_arguments([*REQUIRED, "--listen", "[::1]:80", "--state-listen", "localhost:0"])
    assert (options.listen, options.state_listen) == (Address("::1", 80), Address("localhost", 0))


@pytest.mark.parametrize("text", ["8080", "host:", "host:x", "host:70000"])
def test_an_address_that_is_none_is_a_usage_error(text, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments([*REQUIRED, "--listen", text])
    assert ended.value.code == 2
    assert "is not HOST:PORT" in capsys.readouterr().err


def test_the_front_lets_through_whatever_the_pipeline_allows():
    limits = LimitsConfig(max_query_bytes=1_000, request_timeout_ms=3_000)
    front = front_limits(Settings(config(limits=limits), "hash", Identity(anonymous=True)))
    longest = json.dumps({"query": "\x01" * 1_000}).encode()
    assert len(longest) < front.max_body_bytes
    assert front.answer_seconds > 3


def test_a_sidecar_that_reads_its_table_from_a_file_does_not_load_the_client_of_the_api_server():
    script = "import sys, tidegate_sidecar.main; print([name for name in sys.modules if name in ('aiohttp', 'tidegate_link')])"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "[]"
