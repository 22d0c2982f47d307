"""Log lines have one shape in every process."""

import json
import logging

from tidegate_api.logs import JsonFormatter


def test_a_log_line_is_one_json_object_with_its_key_values():
    record = logging.makeLogRecord(
        {"name": "tidegate", "levelname": "INFO", "msg": "table %s", "args": ("obeyed",), "version": 4}
    )
    line = json.loads(JsonFormatter().format(record))
    assert (line["message"], line["level"], line["version"]) == ("table obeyed", "info", 4)
    assert line["time"].endswith("+00:00")


def test_a_log_line_tells_where_a_fault_came_from():
    try:
        raise ValueError("oops")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    line = json.loads(JsonFormatter().format(logging.makeLogRecord({"msg": "failed", "exc_info": info})))
    assert "ValueError: oops" in line["exception"]
    assert "\n" not in JsonFormatter().format(logging.makeLogRecord({"msg": "two\nlines"}))


def test_what_cannot_be_encoded_is_written_as_text():
    record = logging.makeLogRecord({"msg": "write refused", "key": frozenset({"docs"})})
    assert "docs" in json.loads(JsonFormatter().format(record))["key"]
