"""The manifest: the one mutable file of a revision, always replaced whole.

What it names exists and is complete; what it does not name is rubbish from a crash. It holds all
that may change without touching segments: rules per source, deletions, readiness, statistics.
"""

from typing import Self

from pydantic import Field, ValidationError

from tidegate_api.model import Model
from tidegate_api.shape import ALGORITHMS, RevisionShape
from tidegate_api.wire import Scalar
from tidegate_runtime.errors import RevisionUnavailableError, StateVersionError
from tidegate_runtime.stores.embedded.files import Files
from tidegate_runtime.stores.embedded.format import FORMAT_VERSION

MANIFEST_NAME = "manifest.json"
_OURS = ("analyzer", "embedded")


class FileEntry(Model):
    """An immutable file, named by its digest."""

    name: str
    sha256: str
    size_bytes: int


class Totals(Model):
    """Counts over live documents; BM25 needs them exact."""

    documents: int = 0
    chunks: int = 0
    terms: int = 0
    truncated_chunks: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(
            documents=self.documents + other.documents,
            chunks=self.chunks + other.chunks,
            terms=self.terms + other.terms,
            truncated_chunks=self.truncated_chunks + other.truncated_chunks,
        )


class SegmentEntry(Model):
    """A segment and which of its documents are gone. `stored_chunks` counts dead ones too."""

    file: FileEntry
    deletions: FileEntry | None = None
    stored_chunks: int
    live: Totals


class RulesEntry(Model):
    """Who may read a source and what every document of it is filterable by."""

    tenants: list[str]
    metadata: dict[str, Scalar] = Field(default_factory=dict)


class Manifest(Model):
    """Everything a reader must know besides the segments."""

    format: int = FORMAT_VERSION
    revision: str
    shape: RevisionShape
    content_generation: int = 0
    ready: bool = False
    dense: bool = False
    rules: dict[str, RulesEntry] = Field(default_factory=dict)
    segments: list[SegmentEntry] = Field(default_factory=list)

    @property
    def totals(self) -> Totals:
        """Return the counts over all segments."""
        return sum((segment.live for segment in self.segments), Totals())

    def files(self) -> list[FileEntry]:
        """Return every file that a reader needs beside the manifest itself."""
        deletions = [segment.deletions for segment in self.segments if segment.deletions]
        return [*(segment.file for segment in self.segments), *deletions]

    def encode(self) -> bytes:
        """Return the bytes of the manifest file."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()

    @classmethod
    def decode(cls, content: bytes, *, place: str) -> Self:
        """Parse a manifest file.

        Raises:
            StateVersionError: another version of this software wrote it.
            RevisionUnavailableError: it is damaged.
        """
        try:
            version = _Versioned.model_validate_json(content).format
            if version != FORMAT_VERSION:
                raise StateVersionError(
                    f"{place} has format {version}, this version reads {FORMAT_VERSION}: "
                    "start with an empty state folder, or run the version that wrote it"
                )
            manifest = cls.model_validate_json(content)
        except ValidationError as error:
            raise RevisionUnavailableError(
                f"{place} is damaged: remove the revision's folder to fetch or build it again"
            ) from error
        _require_known_algorithms(manifest.shape, place=place)
        return manifest


class _Versioned(Model):
    format: int


def _require_known_algorithms(shape: RevisionShape, *, place: str) -> None:
    for algorithm in _OURS:
        written = shape.algorithms.get(algorithm, ALGORITHMS[algorithm])
        if written != ALGORITHMS[algorithm]:
            raise StateVersionError(
                f"{place} was made with {written}, this version has {ALGORITHMS[algorithm]}: "
                "build the revision again, or run the version that wrote it"
            )


def read_manifest(files: Files, *, place: str) -> Manifest | None:
    """Return the manifest in `files`, None when there is none yet."""
    try:
        content = files.read(MANIFEST_NAME)
    except FileNotFoundError:
        return None
    return Manifest.decode(content, place=place)
