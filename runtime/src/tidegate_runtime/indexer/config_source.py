"""Where an indexer's config comes from: a file here, a watched ConfigMap in a cluster.

The last good config stays in force: a document that cannot be parsed is a problem to report, not
an order to forget everything. Reading is cheap, so the loop asks as often as it likes.
"""

import os
import re
from collections import Counter
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from tidegate_api.config import IndexerConfig

# A revision's name becomes a folder: nothing that could lead out of the root, or onto the indexer's own files.
_REVISION_NAME = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_TAKEN_NAMES = frozenset({"lock", "state"})


def config_problem(config: IndexerConfig) -> str | None:
    """Return why `config` cannot be obeyed, with the field and the next step, or None."""
    for kind, names in (
        ("sources", [source.name for source in config.sources]),
        ("revisions", [revision.name for revision in config.revisions]),
    ):
        double = [name for name, times in Counter(names).items() if times > 1]
        if double:
            return f"{kind}: {double[0]!r} stands there twice; give each its own name"
    for source in config.sources:
        if (source.config_map is None) == (source.volume is None):
            return f"sources[{source.name}]: exactly one of configMap and volume must be set; correct it"
    for revision in config.revisions:
        if not _REVISION_NAME.fullmatch(revision.name) or revision.name in _TAKEN_NAMES:
            return f"revisions: {revision.name!r} cannot name a folder; use lower-case letters, digits and '-'"
    return None


def understood(content: bytes, *, place: str) -> tuple[IndexerConfig | None, str]:
    """Return the config in a document, or None and why it is not obeyed."""
    try:
        config = IndexerConfig.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the document"
        return None, f"{place}: {field}: {first['msg']}; the last good one stays in force"
    problem = config_problem(config)
    return (None, f"{place}: {problem}; the last good one stays in force") if problem else (config, "")


class ConfigSource(Protocol):
    """Tells what should be true now."""

    def read(self) -> IndexerConfig | None:
        """Return the newest good config, the same object while it is unchanged; None when there was none yet."""

    @property
    def problem(self) -> str:
        """Why the newest document is not obeyed; empty = it is."""


class FileConfigSource:
    """Follows a file that is replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._config: IndexerConfig | None = None
        self._problem = f"{path} is not there yet; it is written by whoever starts this indexer"

    @property
    def problem(self) -> str:
        """Why the newest document is not obeyed; empty = it is."""
        return self._problem

    def read(self) -> IndexerConfig | None:
        """Return the newest good config, the same object while it is unchanged; None when there was none yet."""
        try:
            status = os.stat(self._path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if seen == self._seen:
                return self._config
            content = self._path.read_bytes()
        except OSError as error:
            self._seen = None
            self._problem = f"config {self._path} cannot be read ({error.strerror}); the last good one stays in force"
            return self._config
        self._seen = seen
        self._take(content)
        return self._config

    def _take(self, content: bytes) -> None:
        config, self._problem = understood(content, place=f"config {self._path}")
        if config is not None and config != self._config:
            self._config = config
