"""Brings revisions from their indexer to this pod, and keeps them in step.

A mirror of a revision is a folder like the indexer's: immutable files named by digest under one
manifest. Files come first, each checked against the digest the manifest states; then the manifest is
replaced; then what it no longer names goes. So a reader always finds a complete revision, and a
process that dies in between leaves nothing worse than a file to fetch again.
"""

import asyncio
import hashlib
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tidegate_api.config import IndexRef
from tidegate_runtime.errors import RevisionUnavailableError, StateVersionError
from tidegate_runtime.ports import IndexReader, IndexSnapshot
from tidegate_runtime.revisions import revision_folder
from tidegate_runtime.sharing import GotOn
from tidegate_runtime.stores.embedded import MANIFEST_NAME, EmbeddedReader, FileEntry, Manifest

_logger = logging.getLogger(__name__)
FOLLOW_SECONDS = 1.0
FOLLOW_PAUSE_MAX_SECONDS = 30.0
MANIFEST_SECONDS = 10.0
# A file is given up when nothing of it has come for this long; how long it takes in all depends on its size.
FILE_SILENCE_SECONDS = 30.0
PIECE_BYTES = 1024 * 1024
# The indexer may compact between our reading of its manifest and our fetching a file.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """An indexer: its base URL, and the file that holds the bearer token (read for every request: it may change)."""

    url: str
    token_file: Path


class FileGoneError(Exception):
    """A file is no longer there; the manifest has moved on."""


class Mirror:
    """One revision of one indexer, in one folder. Used by one task at a time."""

    def __init__(self, origin: Origin, *, revision: str, folder: Path, session: aiohttp.ClientSession) -> None:
        self._origin = origin
        self._revision = revision
        self._folder = folder
        self._session = session
        self._manifest: bytes = b""

    async def pull(self, got_on: GotOn = lambda: None) -> bool:
        """Bring the folder to the indexer's present state; return whether anything changed.

        `got_on` is called after every piece of a file.

        Raises:
            RevisionUnavailableError: the indexer cannot be reached, or what it sent is not what it should be.
        """
        for _ in range(ATTEMPTS):
            try:
                return await self._pull_once(got_on)
            except FileGoneError:
                continue
            except (aiohttp.ClientError, TimeoutError) as error:
                raise RevisionUnavailableError(
                    f"{self._origin.url} cannot be reached for revision {self._revision}: {type(error).__name__}"
                ) from error
            except OSError as error:
                raise RevisionUnavailableError(f"{self._folder} cannot be written: {error.strerror}") from error
        raise RevisionUnavailableError(f"revision {self._revision} changes faster than it can be copied")

    async def _pull_once(self, got_on: GotOn) -> bool:
        content = await self._fetch_manifest()
        if content == self._manifest:
            return False
        try:
            manifest = Manifest.decode(content, place=f"{self._origin.url} revision {self._revision}")
        except StateVersionError as error:
            raise RevisionUnavailableError(str(error)) from error
        self._folder.mkdir(parents=True, exist_ok=True)
        for entry in manifest.files():
            await self._fetch(entry, got_on)
        _replace(self._folder / MANIFEST_NAME, content)
        named = {entry.name for entry in manifest.files()} | {MANIFEST_NAME}
        for path in self._folder.iterdir():
            if path.name not in named:
                path.unlink()
        self._manifest = content
        return True

    async def _fetch_manifest(self) -> bytes:
        url = f"{self._origin.url}/v1/revisions/{self._revision}/manifest"
        timeout = aiohttp.ClientTimeout(total=MANIFEST_SECONDS)
        async with self._session.get(url, headers=self._headers(), timeout=timeout) as response:
            if response.status != 200:
                raise RevisionUnavailableError(
                    f"{self._origin.url} answered {response.status} for revision {self._revision}; {_advice(response.status)}"
                )
            return await response.read()

    async def _fetch(self, entry: FileEntry, got_on: GotOn) -> None:
        target = self._folder / entry.name
        # A file has its name only since its digest was right, and never changes afterwards.
        if target.is_file() and target.stat().st_size == entry.size_bytes:
            return
        url = f"{self._origin.url}/v1/revisions/{self._revision}/files/{entry.name}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=MANIFEST_SECONDS, sock_read=FILE_SILENCE_SECONDS)
        partial = target.with_name(f"{entry.name}.partial")
        digest = hashlib.sha256()
        async with self._session.get(url, headers=self._headers(), timeout=timeout) as response:
            if response.status == 404:
                raise FileGoneError
            response.raise_for_status()
            with partial.open("wb") as file:
                async for piece in response.content.iter_chunked(PIECE_BYTES):
                    digest.update(piece)
                    await asyncio.to_thread(file.write, piece)
                    got_on()
        if digest.hexdigest() != entry.sha256:
            partial.unlink()
            raise RevisionUnavailableError(
                f"{entry.name} of revision {self._revision} arrived with another digest than its manifest states"
            )
        partial.replace(target)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._origin.token_file.read_text().strip()}"}


class PulledReader:
    """A reader over a mirror that is kept in step until it is closed."""

    def __init__(self, reader: IndexReader, following: "asyncio.Task[None]") -> None:
        self._reader = reader
        self._following = following

    def snapshot(self) -> IndexSnapshot:
        """Return the newest complete view."""
        return self._reader.snapshot()

    def close(self) -> None:
        """Stop following and release files."""
        self._following.cancel()
        self._reader.close()


class PulledRevisions:
    """Opens revisions by copying them from their indexers into folders below `root`."""

    def __init__(self, root: Path, *, origins: Mapping[str, Origin], session: aiohttp.ClientSession) -> None:
        self._root = root
        self._origins = origins
        self._session = session

    async def open(self, index: IndexRef, *, got_on: GotOn = lambda: None) -> IndexReader:
        """Copy the revision and return a reader that follows it."""
        origin = self._origins.get(index.knowledge_base)
        if origin is None:
            raise RevisionUnavailableError(
                f"no indexer is known for knowledge base {index.knowledge_base!r}; name it with --pull"
            )
        folder = revision_folder(self._root, index)
        mirror = Mirror(origin, revision=index.revision, folder=folder, session=self._session)
        await mirror.pull(got_on)
        following = asyncio.create_task(_follow(mirror, index), name=f"follow {index.revision}")
        return PulledReader(await asyncio.to_thread(EmbeddedReader.open, folder), following)


async def _follow(mirror: Mirror, index: IndexRef) -> None:
    """Pull again and again. What was copied goes on serving while the indexer is away; that is logged once."""
    pause_seconds, away = FOLLOW_SECONDS, False
    while True:
        await asyncio.sleep(pause_seconds * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
        try:
            await mirror.pull()
        except RevisionUnavailableError as error:
            pause_seconds = min(2 * pause_seconds, FOLLOW_PAUSE_MAX_SECONDS)
            if not away:
                away = True
                _logger.warning("revision stays as it is", extra={"revision": index.revision, "reason": str(error)})
            continue
        if away:
            _logger.info("revision in step again", extra={"revision": index.revision})
        pause_seconds, away = FOLLOW_SECONDS, False


def _advice(status: int) -> str:
    if status == 401:
        return "the bearer token is not the indexer's"
    if status == 404:
        return "it is not built there, or not proven yet"
    return "see the indexer's log"


def _replace(path: Path, content: bytes) -> None:
    replacement = path.with_name(f"{path.name}.partial")
    replacement.write_bytes(content)
    replacement.replace(path)
