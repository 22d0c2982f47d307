"""How `kubectl rag` writes what it knows: text for people, one document for programs.

A command makes one document, and JSON and YAML are two notations of it: YAML is written from what
JSON holds, so neither can say what the other does not. Text and tables are made by the views.
"""

import json
from collections.abc import Callable
from enum import StrEnum


class Output(StrEnum):
    """The values of `-o`. Text is a line or a table each, wide a table with more columns."""

    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def separator(self) -> str:
        """Return the line between two answers of a command that goes on: documents stay apart."""
        return "---" if self is Output.YAML else ""


TABLE_OUTPUTS = tuple(each.value for each in Output)
TEXT_OUTPUTS = tuple(each.value for each in Output if each is not Output.WIDE)


def rendered(output: Output, document: object, text: Callable[[], str]) -> str:
    """Return the answer as it was asked for: `document` for programs, else what `text` makes of it."""
    return text() if output in (Output.TEXT, Output.WIDE) else document_text(document, output)


def document_text(document: object, output: Output) -> str:
    """Return `document`, made of what JSON knows, as YAML where that is asked for, else as JSON."""
    written = json.dumps(document, indent=2, ensure_ascii=False)
    if output is not Output.YAML:
        return written
    import yaml  # 50 ms that only this notation costs

    return yaml.safe_dump(json.loads(written), sort_keys=False, allow_unicode=True).rstrip("\n")
