"""Where revisions come from when they are on this machine already: `<root>/<knowledge base>/<revision>`.

Names are checked before they become a path. Reading follows the folder: a reader shows each new
generation of content that the indexer commits there.
"""

import asyncio
import re
from pathlib import Path

from tidegate_api.config import IndexRef
from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.ports import IndexReader
from tidegate_runtime.sharing import GotOn
from tidegate_runtime.stores.embedded import EmbeddedReader

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?")


class LocalRevisions:
    """Opens revisions below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def open(self, index: IndexRef, *, got_on: GotOn = lambda: None) -> IndexReader:
        """Open the revision's folder; there is nothing to copy."""
        reader = await asyncio.to_thread(EmbeddedReader.open, revision_folder(self._root, index))
        got_on()
        return reader


def revision_folder(root: Path, index: IndexRef) -> Path:
    """Return the folder of a revision below `root`.

    Raises:
        RevisionUnavailableError: a name that could lead elsewhere.
    """
    for name in (index.knowledge_base, index.revision):
        if not _NAME.fullmatch(name):
            raise RevisionUnavailableError(f"{name!r} is no name of a knowledge base or revision; mend the release")
    return root / index.knowledge_base / index.revision
