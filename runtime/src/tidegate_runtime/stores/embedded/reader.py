"""Following a revision: the newest complete view, reopened when the manifest has changed.

A reader needs the manifest and the files it names, nothing else, so it works on the indexer's
volume as on a mirrored folder. Between reading the manifest and opening its files a writer may have
replaced both: then a file is gone, a newer manifest is there, and it starts again. Segments that
stay are shared from view to view; what a view has mapped stays valid after the file is removed.
"""

from pathlib import Path
from threading import Lock

from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.stores.embedded.files import LocalFiles
from tidegate_runtime.stores.embedded.han import load_dictionary
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, Manifest
from tidegate_runtime.stores.embedded.opening import open_segments
from tidegate_runtime.stores.embedded.segment import Segment
from tidegate_runtime.stores.embedded.snapshot import EmbeddedSnapshot

_ATTEMPTS = 10
_Stamp = tuple[int, int, int]


class EmbeddedReader:
    """Implements `IndexReader`. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = LocalFiles(directory)
        self._lock = Lock()
        self._segments: dict[str, Segment] = {}
        self._current: tuple[_Stamp, EmbeddedSnapshot] | None = None

    @staticmethod
    def open(directory: Path) -> "EmbeddedReader":
        """Return a reader of the revision in `directory`; the folder may still be empty."""
        return EmbeddedReader(directory)

    def snapshot(self) -> EmbeddedSnapshot:
        with self._lock:
            try:
                return self._newest()
            except OSError as error:
                raise RevisionUnavailableError(f"{self._directory} cannot be read: {error}") from error

    def close(self) -> None:
        with self._lock:
            self._segments.clear()
            self._current = None

    def _newest(self, *, attempts_left: int = _ATTEMPTS) -> EmbeddedSnapshot:
        stamp = self._stamp()
        if self._current is not None and self._current[0] == stamp:
            return self._current[1]
        try:
            snapshot = self._open()
        except FileNotFoundError:
            if not attempts_left:
                raise
            return self._newest(attempts_left=attempts_left - 1)
        self._current = (stamp, snapshot)
        return snapshot

    def _stamp(self) -> _Stamp:
        try:
            status = (self._directory / MANIFEST_NAME).stat()
        except FileNotFoundError as error:
            raise RevisionUnavailableError(f"{self._directory}: no revision is here yet") from error
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _open(self) -> EmbeddedSnapshot:
        manifest = Manifest.decode(self._files.read(MANIFEST_NAME), place=str(self._directory / MANIFEST_NAME))
        if not manifest.ready:
            raise RevisionUnavailableError(f"revision {manifest.revision} is still being built")
        opened = open_segments(manifest, self._files, known=self._segments)
        if manifest.shape.language != "en":
            load_dictionary()
        self._segments = {item.entry.file.name: item.segment for item in opened}
        return EmbeddedSnapshot(manifest, [(item.segment, item.live) for item in opened])
