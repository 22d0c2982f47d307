"""The command line and the logs."""

import json
import logging

import pytest
from tests.unit.sidecar.builders import config

from tidegate_api.config import LimitsConfig
from tidegate_sidecar.identity import Identity
from tidegate_sidecar.logs import JsonFormatter
from tidegate_sidecar.main import Address, front_limits, parse_arguments
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


def test_a_log_line_is_one_json_object_with_its_key_values():
    record = logging.makeLogRecord(
        {"name": "tidegate", "levelname": "INFO", "msg": "table %s", "args": ("obeyed",), "version": 4}
    )
    line = json.loads(JsonFormatter().format(record))
    assert (line["event"], line["level"], line["version"]) == ("table obeyed", "info", 4)
    assert line["time"].endswith("+00:00")


def test_a_log_line_tells_where_a_fault_came_from():
    try:
        raise ValueError("oops")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    line = json.loads(JsonFormatter().format(logging.makeLogRecord({"msg": "failed", "exc_info": info})))
    assert "ValueError: oops" in line["exception"]
    assert "\n" not in JsonFormatter().format(logging.makeLogRecord({"msg": "two\nlines"}))
