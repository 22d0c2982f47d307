"""JSON and YAML of `kubectl rag` are one document, whatever Python holds it in."""

import json

import pytest
import yaml

from tidegate_cli.rag_output import TABLE_OUTPUTS, TEXT_OUTPUTS, Output, document_text, rendered

SHARED = ["bm25", "dense"]
DOCUMENT = {
    "at": "2026-11-29T10:00:00Z",
    "version": "1.10",
    "off": "no",
    "question": "wann ist Flut – 什么时候涨潮?",
    "legs": SHARED,
    "again": SHARED,
    "passed": ({"why": None}, {"why": 0.5}),
    "output": Output.WIDE,
    "long": "word " * 60,
}


def test_yaml_says_what_json_says() -> None:
    as_json, as_yaml = document_text(DOCUMENT, Output.JSON), document_text(DOCUMENT, Output.YAML)
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    assert list(yaml.safe_load(as_yaml)) == list(DOCUMENT)
    assert "什么" in as_json
    assert "什么" in as_yaml
    assert "&id" not in as_yaml, "an anchor is for YAML's own readers only"


def test_a_list_of_nothing_is_a_document_too() -> None:
    assert document_text([], Output.JSON) == "[]"
    assert document_text([], Output.YAML) == "[]"


@pytest.mark.parametrize("output", [Output.TEXT, Output.WIDE])
def test_people_get_the_text(output: Output) -> None:
    assert rendered(output, DOCUMENT, lambda: "text") == "text"


def test_programs_get_the_document_and_no_text_is_made() -> None:
    def none_wanted() -> str:
        raise AssertionError

    assert rendered(Output.JSON, {"a": 1}, none_wanted) == '{\n  "a": 1\n}'
    assert rendered(Output.YAML, {"a": 1}, none_wanted) == "a: 1"


def test_only_tables_are_ever_wide() -> None:
    assert TABLE_OUTPUTS == ("text", "wide", "json", "yaml")
    assert TEXT_OUTPUTS == ("text", "json", "yaml")
