"""Making files appear, in the one order that survives a kill or a full disk at any point.

New immutable files first (written under a partial name, forced to disk, renamed), then the folder
is forced to disk, then the manifest is replaced the same way: that rename is the commit. Removing
what the new manifest no longer names comes last and may be lost; the next writer does it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from tidegate_runtime.errors import RevisionUnavailableError, StoreFullError, is_no_room
from tidegate_runtime.stores.embedded.files import DELETIONS_SUFFIX, PARTIAL_SUFFIX, SEGMENT_SUFFIX, Files
from tidegate_runtime.stores.embedded.format import EncodedFile, encode
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, Manifest

_OURS = (SEGMENT_SUFFIX, DELETIONS_SUFFIX, PARTIAL_SUFFIX)


def publish(manifest: Manifest, files: Files, *, new_files: Mapping[str, EncodedFile]) -> None:
    """Make `manifest` the revision's content, `new_files` being those that it names and the folder lacks.

    Raises:
        StoreFullError: the disk is full; the revision is as it was.
        RevisionUnavailableError: the disk failed in another way; the revision is as it was.
    """
    with failures_told():
        try:
            for name, content in new_files.items():
                _write(name, content, files)
            files.sync()
            _write(MANIFEST_NAME, encode((manifest.encode(),)), files)
        except OSError:
            _remove_all([*new_files, MANIFEST_NAME + PARTIAL_SUFFIX], files)
            raise
        files.sync()


def remove_rubbish(manifest: Manifest, files: Files) -> None:
    """Remove every file of ours that `manifest` does not name. What cannot be removed now is left to the next time."""
    named = {file.name for file in manifest.files()}
    with suppress(OSError):
        _remove_all([name for name in files.names() if name.endswith(_OURS) and name not in named], files)


@contextmanager
def failures_told() -> Iterator[None]:
    """Turn what the file system says into what the caller can do about it."""
    try:
        yield
    except OSError as error:
        if is_no_room(error):
            raise StoreFullError(
                "the volume of the index is full; nothing was changed: enlarge it or remove documents"
            ) from error
        raise RevisionUnavailableError(f"the volume of the index cannot be used: {error}") from error


def _write(name: str, content: EncodedFile, files: Files) -> None:
    partial = name + PARTIAL_SUFFIX
    try:
        files.create(partial, content.parts)
        files.rename(partial, name)
    except OSError:
        _remove_all([partial], files)
        raise


def _remove_all(names: Iterable[str], files: Files) -> None:
    with suppress(OSError):
        for name in names:
            files.remove(name)
