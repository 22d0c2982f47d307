"""Which share of a revision's chunks its encoder cannot read.

Counted by document as documents are stored, so that an edit costs what it touches; what an earlier
process stored is counted once from the revision itself. The share depends on content alone, never
on the order in which it came.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.indexer.census import MISMATCH_SHARE_MAX, language_mismatch_share
from tidegate_runtime.ports import DocumentKey, DocumentRecord


class ForeignChunks:
    """Chunks of one revision in scripts that its encoder does not read."""

    def __init__(self, fingerprint: EmbedderFingerprint) -> None:
        self._fingerprint = fingerprint
        self._counts: dict[DocumentKey, tuple[int, int]] = {}

    def note(self, record: DocumentRecord) -> None:
        """Count a document that is being stored."""
        self._count(record.key, [chunk.content for chunk in record.chunks])

    def too_many(
        self, manifest: Mapping[DocumentKey, str], *, stored: Callable[[], Iterable[tuple[DocumentKey, str]]]
    ) -> bool:
        """Whether the encoder cannot read more than the permitted share.

        Args:
            manifest: the documents that the revision holds.
            stored: gives document and content of every chunk; called only when a document was never counted.
        """
        if "*" in self._fingerprint.languages:
            return False
        if manifest.keys() - self._counts.keys():
            contents: defaultdict[DocumentKey, list[str]] = defaultdict(list)
            for key, content in stored():
                contents[key].append(content)
            for key in manifest:
                self._count(key, contents[key])
        self._counts = {key: self._counts[key] for key in manifest}
        foreign = sum(count for count, _ in self._counts.values())
        return foreign > MISMATCH_SHARE_MAX * sum(chunks for _, chunks in self._counts.values())

    def _count(self, key: DocumentKey, contents: Sequence[str]) -> None:
        beyond_ascii = [content for content in contents if not content.isascii()]  # Latin letters are always read
        share = language_mismatch_share(beyond_ascii, self._fingerprint) if beyond_ascii else 0.0
        self._counts[key] = round(share * len(beyond_ascii)), len(contents)
