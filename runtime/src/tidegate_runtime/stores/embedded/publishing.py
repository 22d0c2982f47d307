"""Making files appear, in the one order that survives a kill or a full disk at any point.

New immutable files first (written under a partial name, forced to disk, renamed), then the folder
is forced to disk, then the manifest is replaced the same way: that rename is the commit. Removing
what the new manifest no longer names comes last and may be lost; the next writer does it.
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from tidegate_runtime.errors import RevisionUnavailableError, StoreFullError
from tidegate_runtime.stores.embedded.files import PARTIAL_SUFFIX, Files
from tidegate_runtime.stores.embedded.format import EncodedFile, encode
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, Manifest

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def publish(manifest: Manifest, files: Files, *, new_files: Iterable[tuple[str, EncodedFile]]) -> None:
    """Make `manifest` the revision's content, `new_files` being those that it names and the folder lacks.

    Raises:
        StoreFullError: the disk is full; the revision is as it was.
        RevisionUnavailableError: the disk failed in another way; the revision is as it was.
    """
    with _failures_told(files):
        for name, content in new_files:
            _write(name, content, files)
        files.sync()
        _write(MANIFEST_NAME, encode((manifest.encode(),)), files)
        files.sync()


def remove_rubbish(manifest: Manifest, files: Files) -> None:
    """Remove every file of ours that `manifest` does not name."""
    named = {MANIFEST_NAME, *(file.name for file in manifest.files())}
    for name in files.names():
        if name not in named:
            files.remove(name)


def _write(name: str, content: EncodedFile, files: Files) -> None:
    partial = name + PARTIAL_SUFFIX
    files.remove(partial)
    files.create(partial, content.parts)
    files.rename(partial, name)


@contextmanager
def _failures_told(files: Files) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            for name in files.names():
                if name.endswith(PARTIAL_SUFFIX):
                    files.remove(name)
        if error.errno in _FULL:
            raise StoreFullError(
                "the volume of the index is full; nothing was changed: enlarge it or remove documents"
            ) from error
        raise RevisionUnavailableError(f"the volume of the index cannot be written: {error.strerror}") from error
