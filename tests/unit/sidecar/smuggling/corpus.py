"""Reads the table of raw requests."""

from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Case:
    """One raw request, the status it must get and the targets that a handler may see."""

    name: str
    raw: bytes
    status: int
    seen: tuple[str, ...]


def load_corpus() -> list[Case]:
    """Return every case of the table."""
    rows = yaml.safe_load(Path(__file__).with_name("corpus.yaml").read_text())
    return [Case(row["name"], row["raw"].encode("latin-1"), row["status"], tuple(row.get("seen", ()))) for row in rows]
