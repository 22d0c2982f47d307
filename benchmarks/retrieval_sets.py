"""The retrieval sets: documents, questions and judgements, as they lie in files.

Folders hold corpus.jsonl {id, title, text}, queries.jsonl {id, text, …} and qrels.tsv (query, document,
gain; a header line). They are too large for this repository: TIDEGATE_DATA names the folder, or it is
found beside the checkout. A conversation is asked by its last turn as it was written; a bilingual set
is cut to one language.
"""

import csv
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".state" / "bench"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """What to index, what to ask, what is right. `excluded` documents leave a query's ranking before it is scored."""

    name: str
    documents: tuple[Document, ...]
    queries: Mapping[str, str]
    gains: Mapping[str, Mapping[str, float]]
    excluded: Mapping[str, frozenset[str]]


def data_folder() -> Path:
    """Return the folder that holds the sets; end the program with the next step when there is none."""
    candidates = [Path(os.environ["TIDEGATE_DATA"])] if "TIDEGATE_DATA" in os.environ else []
    candidates += [ROOT / "data", ROOT.parent / "shared" / "data"]
    for folder in candidates:
        if (folder / "hotpotqa-500" / "corpus.jsonl").is_file():
            return folder
    sys.exit("retrieval sets not found; set TIDEGATE_DATA to the folder that holds hotpotqa-500")


def load(name: str) -> RetrievalSet:
    """Read a set; `xquad-zh` is the Chinese half of xquad-en-zh."""
    folder = data_folder() / {"xquad-zh": "xquad-en-zh"}.get(name, name)
    language = "zh" if name == "xquad-zh" else None
    documents = tuple(
        Document(row["id"], row["title"], row["text"])
        for row in _rows(folder / "corpus.jsonl")
        if language is None or row["id"].startswith(language)
    )
    queries = {
        row["id"]: row["text"] for row in _rows(folder / "queries.jsonl") if language is None or row["lang"] == language
    }
    return RetrievalSet(
        name=name,
        documents=documents,
        queries=queries,
        gains=_gains(folder / "qrels.tsv", queries, {document.id for document in documents}),
        excluded=_excluded(folder / "source_docs.tsv"),
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _pairs(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t"))[1:]


def _gains(path: Path, queries: Mapping[str, str], documents: set[str]) -> dict[str, dict[str, float]]:
    gains: dict[str, dict[str, float]] = {query: {} for query in queries}
    for query, document, gain in _pairs(path):
        if query in gains and document in documents:
            gains[query][document] = float(gain)
    return gains


def _excluded(path: Path) -> dict[str, frozenset[str]]:
    excluded: dict[str, set[str]] = defaultdict(set)
    for query, document in _pairs(path) if path.is_file() else []:
        excluded[query].add(document)
    return {query: frozenset(documents) for query, documents in excluded.items()}
