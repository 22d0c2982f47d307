"""The revisions on this indexer's volume: `<root>/<revision>` each, opened, looked into, dropped.

Dropping renames the folder before it removes it, so a revision is there whole or not at all, and
what a crash leaves behind is swept at the next start.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tidegate_api.config import RevisionConfig
from tidegate_runtime.ports import IndexWriter, RevisionInspection
from tidegate_runtime.stores.embedded import EmbeddedWriter
from tidegate_runtime.stores.embedded.files import Files, LocalFiles
from tidegate_runtime.stores.embedded.inspection import EmbeddedInspection

_DROPPED_PREFIX = ".dropped-"


class RevisionStore(Protocol):
    """Where revisions are kept."""

    def open(self, revision: RevisionConfig) -> IndexWriter:
        """Open a revision for writing, or begin an empty one.

        Raises:
            StateVersionError: what is there is of another version or another shape.
            RevisionUnavailableError: it is damaged, or another process writes it.
            StoreFullError: the volume has no room.
        """

    def inspect(self, name: str) -> RevisionInspection:
        """Return a look into a revision as it is now.

        Raises:
            RevisionUnavailableError: it is damaged.
        """

    def drop(self, name: str) -> None:
        """Remove a revision; absent is fine."""


class EmbeddedRevisions:
    """Revisions in the embedded store."""

    def __init__(self, root: Path, *, files: Callable[[Path], Files] = LocalFiles) -> None:
        self._root = root
        self._files = files

    def sweep(self) -> None:
        """Remove what an interrupted drop has left."""
        for leftover in self._root.glob(f"{_DROPPED_PREFIX}*"):
            shutil.rmtree(leftover)

    def open(self, revision: RevisionConfig) -> IndexWriter:
        folder = self._root / revision.name
        return EmbeddedWriter.open(folder, revision=revision.name, shape=revision.shape, files=self._files(folder))

    def inspect(self, name: str) -> RevisionInspection:
        return EmbeddedInspection.open(self._root / name)

    def drop(self, name: str) -> None:
        dropped = self._root / f"{_DROPPED_PREFIX}{name}"
        if dropped.exists():
            shutil.rmtree(dropped)
        try:
            os.rename(self._root / name, dropped)
        except FileNotFoundError:
            return
        shutil.rmtree(dropped)
