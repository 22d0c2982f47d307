"""Following a revision: the newest complete view, reopened when the manifest has changed.

A reader needs the manifest and the files it names, nothing else, so it works on the indexer's
volume as on a mirrored folder. Between reading the manifest and opening its files a writer may have
replaced both: then the files are gone, a newer manifest is there, and it starts again.
"""

from pathlib import Path
from threading import Lock

from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.stores.embedded.analyzer import Analyzer
from tidegate_runtime.stores.embedded.files import LocalFiles
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, Manifest, read_manifest
from tidegate_runtime.stores.embedded.opening import open_segments
from tidegate_runtime.stores.embedded.segment import Segment
from tidegate_runtime.stores.embedded.snapshot import EmbeddedSnapshot

_ATTEMPTS = 10
_Stamp = tuple[int, int, int]


class EmbeddedReader:
    """Implements `IndexReader`. Thread-safe."""

    def __init__(self, directory: Path, *, require_ready: bool) -> None:
        self._directory = directory
        self._files = LocalFiles(directory)
        self._require_ready = require_ready
        self._analyzer = Analyzer()
        self._lock = Lock()
        self._segments: dict[str, Segment] = {}
        self._current: tuple[_Stamp, EmbeddedSnapshot] | None = None

    @staticmethod
    def open(directory: Path, *, require_ready: bool = True) -> "EmbeddedReader":
        """Return a reader of the revision in `directory`; the folder may still be empty.

        `require_ready` False also opens a revision that has not passed its checks, to check it.
        """
        return EmbeddedReader(directory, require_ready=require_ready)

    def snapshot(self) -> EmbeddedSnapshot:
        with self._lock:
            for _ in range(_ATTEMPTS):
                stamp = self._stamp()
                if self._current is not None and self._current[0] == stamp:
                    return self._current[1]
                if (opened := self._open()) is not None:
                    self._current = (stamp, opened)
                    return opened
        raise RevisionUnavailableError(
            f"{self._directory}: files named by the manifest are missing; fetch or build the revision again"
        )

    def close(self) -> None:
        with self._lock:
            self._segments.clear()
            self._current = None

    def _stamp(self) -> _Stamp:
        try:
            status = (self._directory / MANIFEST_NAME).stat()
        except FileNotFoundError as error:
            raise RevisionUnavailableError(f"{self._directory}: no revision is here yet") from error
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _open(self) -> EmbeddedSnapshot | None:
        manifest = read_manifest(self._files, place=str(self._directory / MANIFEST_NAME))
        if manifest is None:
            return None
        self._check(manifest)
        try:
            opened = open_segments(manifest, self._files, known=self._segments)
        except FileNotFoundError:
            return None
        self._segments = {item.entry.file.name: item.segment for item in opened}
        return EmbeddedSnapshot(manifest, [(item.segment, item.live) for item in opened], analyzer=self._analyzer)

    def _check(self, manifest: Manifest) -> None:
        if self._require_ready and not manifest.ready:
            raise RevisionUnavailableError(f"revision {manifest.revision} is still being built")
