"""An encoder that remembers: vectors by text and fingerprint, in one file, so that a rerun costs seconds.

Only for measuring quality; whatever is timed uses the encoder itself.
"""

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.ports import Embedder, FloatVector, Tokenizer

TEXTS_PER_COMMIT = 256


class RememberedEmbedder:
    """Implements `Embedder` over another one, which is asked for new texts only."""

    def __init__(self, embedder: Embedder, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._lock = threading.Lock()
        self._store = sqlite3.connect(path, check_same_thread=False)
        self._store.execute("create table if not exists vectors (key blob primary key, vector blob)")

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Return the encoder's own fingerprint."""
        return self._embedder.fingerprint

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the encoder's own tokenizer."""
        return self._embedder.tokenizer

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        """Return the vectors of `texts`."""
        vectors = np.empty((len(texts), self.fingerprint.dimension), dtype=np.float32)
        for first in range(0, len(texts), TEXTS_PER_COMMIT):
            part = texts[first : first + TEXTS_PER_COMMIT]
            vectors[first : first + len(part)] = self._remembered("passage", part)
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        """Return the vector of a query."""
        vector: FloatVector = self._remembered("query", [text])[0]
        return vector

    def _remembered(self, kind: str, texts: Sequence[str]) -> FloatVector:
        keys = [self._key(kind, text) for text in texts]
        with self._lock:
            known = {key: row[0] for key in keys if (row := self._look_up(key)) is not None}
            missing = [position for position, key in enumerate(keys) if key not in known]
            fresh = self._embed(kind, [texts[position] for position in missing])
            for position, vector in zip(missing, fresh, strict=True):
                known[keys[position]] = vector.tobytes()
                self._store.execute("insert or replace into vectors values (?, ?)", (keys[position], vector.tobytes()))
            self._store.commit()
        return np.stack([np.frombuffer(known[key], dtype=np.float32) for key in keys])

    def _embed(self, kind: str, texts: Sequence[str]) -> Sequence[FloatVector]:
        if kind == "query":
            return [self._embedder.embed_query(text) for text in texts]
        return list(self._embedder.embed_passages(texts)) if texts else []

    def _look_up(self, key: bytes) -> tuple[bytes] | None:
        row: tuple[bytes] | None = self._store.execute("select vector from vectors where key = ?", (key,)).fetchone()
        return row

    def _key(self, kind: str, text: str) -> bytes:
        fingerprint = self.fingerprint
        parts = (fingerprint.model, fingerprint.digest, fingerprint.pooling, str(fingerprint.max_tokens), kind, text)
        return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
