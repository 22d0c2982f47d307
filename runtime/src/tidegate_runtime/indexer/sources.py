"""Lists the files of a source: a mounted ConfigMap or a tree on a volume.

A listing is complete or it is an error. Whoever compares it with an index deletes what is not
listed, so a folder that is missing or cannot be read must never look like an empty one. Symbolic
links are followed to files inside the source alone: a link must not publish what lies beside it.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tidegate_api.config import DocumentFailure, SourceConfig
from tidegate_runtime.errors import UnreadableDocumentError, UnreadableSourceError

MAX_FILE_BYTES = 16 * 1024 * 1024

# A kubelet keeps versions of a mount under names with two dots; ext4 makes lost+found, readable by root alone.
_MOUNT_PREFIX = ".."
_NOT_CONTENT = frozenset({"lost+found"})

Scan = Callable[[Path], AbstractContextManager[Iterator[os.DirEntry[str]]]]


@dataclass(frozen=True, slots=True)
class FileSignature:
    """What changes when a file is written or replaced; equal signatures need no second reading."""

    modified_ns: int
    changed_ns: int
    size_bytes: int
    inode: int


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a source. `name` is its path relative to the source, with forward slashes."""

    name: str
    path: str
    signature: FileSignature


@dataclass(frozen=True, slots=True)
class Listing:
    """Every file of a source in the order of names, and those that were refused, each with a reason."""

    files: tuple[ListedFile, ...]
    refused: tuple[DocumentFailure, ...] = ()


def list_source(source: SourceConfig, *, extensions: Collection[str], scan: Scan = os.scandir) -> Listing:
    """Return the files of `source` that its `include` selects; without one, those with one of `extensions`.

    Args:
        source: where to look.
        extensions: endings of names, in lower case, that can be loaded.
        scan: lists a folder.

    Raises:
        UnreadableSourceError: the source, or a folder inside it, is missing or cannot be listed.
    """
    place, next_step = _place(source)
    root = _resolved_root(source, place, next_step)
    chosen = _Chooser(tuple(source.include), frozenset(extensions))
    files: list[ListedFile] = []
    refused: list[DocumentFailure] = []
    try:
        for name, entry in _walk(root, into_folders=source.volume is not None, scan=scan):
            if not chosen.takes(name):
                continue
            try:
                listed = _listed(name, entry, root, on_volume=source.volume is not None)
            except UnreadableDocumentError as error:
                refused.append(DocumentFailure(document=_printable(name), reason=str(error)))
                continue
            if listed is not None:
                files.append(listed)
    except OSError as error:
        raise _unreadable(source, error, next_step) from error
    files.sort(key=lambda file: file.name)
    return Listing(tuple(files), tuple(sorted(refused, key=lambda failure: failure.document)))


def read_file(file: ListedFile) -> bytes:
    """Return the bytes of a listed file.

    Raises:
        UnreadableDocumentError: it is too large, gone or not readable.
    """
    if file.signature.size_bytes > MAX_FILE_BYTES:
        raise _too_large(file.signature.size_bytes)
    try:
        with open(file.path, "rb", buffering=0) as stream:
            size_bytes = os.fstat(stream.fileno()).st_size  # it may have grown since it was listed
            data = stream.readall() if size_bytes <= MAX_FILE_BYTES else b""
    except OSError as error:
        raise UnreadableDocumentError(f"cannot be read: {error.strerror}; check its permissions") from error
    if size_bytes > MAX_FILE_BYTES:
        raise _too_large(size_bytes)
    return data


def _too_large(size_bytes: int) -> UnreadableDocumentError:
    mebibytes = 1024 * 1024
    return UnreadableDocumentError(
        f"has {size_bytes / mebibytes:.1f} MiB, the limit for one file is {MAX_FILE_BYTES // mebibytes} MiB; split it"
    )


def _place(source: SourceConfig) -> tuple[str, str]:
    """Return the folder of a source, and what to do when it is not as it should be."""
    if source.config_map is not None:
        return source.config_map.path, f"check that ConfigMap {source.config_map.name!r} exists and is mounted"
    if source.volume is not None:
        claim = source.volume.claim_name
        return source.volume.path, f"check from.volume.path and that claim {claim!r} holds it and is mounted"
    raise UnreadableSourceError(f"source {source.name!r}: from names neither configMap nor volume; set one of them")


def _resolved_root(source: SourceConfig, place: str, next_step: str) -> Path:
    try:
        resolved = Path(os.path.realpath(place, strict=True))
        mode = resolved.stat().st_mode
    except OSError as error:
        raise _unreadable(source, error, next_step) from error
    if not stat.S_ISDIR(mode):
        raise UnreadableSourceError(f"source {source.name!r}: {place} is not a folder; {next_step}")
    return resolved


def _unreadable(source: SourceConfig, error: OSError, next_step: str) -> UnreadableSourceError:
    where = error.filename or _place(source)[0]
    cause = {
        FileNotFoundError: "does not exist",
        PermissionError: "may not be read by this process",
        NotADirectoryError: "is not a folder",
    }.get(type(error), f"cannot be listed ({error.strerror})")
    return UnreadableSourceError(f"source {source.name!r}: {where} {cause}; {next_step}")


def _walk(root: Path, *, into_folders: bool, scan: Scan) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the name and the entry of everything below `root` that is not a folder."""
    waiting = [("", root)]
    while waiting:
        prefix, folder = waiting.pop()
        try:
            with scan(folder) as entries:
                found = list(entries)
        except FileNotFoundError:
            if not prefix:
                raise
            continue  # removed while the walk was elsewhere: gone like anything else that was deleted
        for entry in found:
            if entry.name.startswith(_MOUNT_PREFIX) or entry.name in _NOT_CONTENT:
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield prefix + entry.name, entry
            elif into_folders:
                waiting.append((f"{prefix}{entry.name}/", Path(entry.path)))


def _listed(name: str, entry: os.DirEntry[str], root: Path, *, on_volume: bool) -> ListedFile | None:
    """Return the file, or None when it is no longer there or is a folder behind a link."""
    if not name.isascii() and name != _printable(name):
        raise UnreadableDocumentError("its name is not UTF-8; rename it")
    try:
        if entry.is_symlink() and not Path(os.path.realpath(entry.path, strict=True)).is_relative_to(root):
            raise UnreadableDocumentError("is a link that leads outside the source; copy the file instead")
        status = entry.stat()
    except FileNotFoundError:
        if on_volume and os.path.lexists(entry.path):  # a kubelet removes the link of a key after the key
            raise UnreadableDocumentError("is a link that leads to nothing; mend or remove it") from None
        return None
    except OSError as error:
        raise UnreadableDocumentError(f"cannot be looked at: {error.strerror}; check its permissions") from error
    if stat.S_ISDIR(status.st_mode):
        return None
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableDocumentError("is not a regular file; remove it or leave it out with include")
    signature = FileSignature(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    return ListedFile(name, entry.path, signature)


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Chooser:
    patterns: tuple[str, ...]
    extensions: frozenset[str]

    def takes(self, name: str) -> bool:
        if not self.patterns:
            return os.path.splitext(name)[1].lower() in self.extensions
        return any(matches_glob(name, pattern) for pattern in self.patterns)


def matches_glob(name: str, pattern: str) -> bool:
    """Whether a relative path matches: `*`, `?` and `[…]` inside one part, `**` for any number of parts."""
    return _parts_match(name.split("/"), [part for part in pattern.split("/") if part not in ("", ".")])


def _parts_match(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    # Row by row, as for edit distance: a pattern with many `**` costs parts x patterns, never more.
    reachable = {0}
    for pattern in patterns:
        if pattern == "**":
            reachable = set(range(min(reachable), len(parts) + 1)) if reachable else set()
        else:
            reachable = {at + 1 for at in reachable if at < len(parts) and fnmatchcase(parts[at], pattern)}
        if not reachable:
            return False
    return len(parts) in reachable
