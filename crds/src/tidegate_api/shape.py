"""The shape of an index revision: what is hashed into its name.

Two specs with the same shape share one physical index; any difference builds another revision
beside it. Content (sources, include, refresh, metadata, tenants) is never part of a shape: it
reaches every live revision at once. The full shape travels with the revision, so that an old one
can be kept in step after the spec has moved on.
"""

from typing import Literal

from pydantic import Field

from tidegate_api.hashing import content_hash
from tidegate_api.model import Model

Language = Literal["en", "zh", "multi"]
MetadataType = Literal["keyword", "number", "date", "bool"]

# Changing how one of these works changes what an index holds: raise its number in the same commit.
ALGORITHMS = {
    "markdown": "markdown/1",
    "recursive": "recursive/1",
    "fixed": "fixed/1",
    "analyzer": "analyzer/1",
    "embedded": "embedded/1",
}


class EmbedderFingerprint(Model):
    """What makes two vectors comparable. A query is embedded only by the same fingerprint as its index."""

    model: str
    digest: str = Field(description="sha256 of the weights, hexadecimal")
    dimension: int
    max_tokens: int = Field(description="tokens the encoder reads, special tokens included")
    pooling: Literal["mean", "cls", "model"] = "mean"
    normalised: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    scale: float = Field(description="largest |component| of a unit vector; fixes the int8 quantisation")
    languages: list[str] = Field(description="languages the model is good for; ['*'] = any")

    def summary(self) -> str:
        """Return the form shown in status, such as `minilm@8199be6f/384`."""
        return f"{self.model}@{self.digest[:8]}/{self.dimension}"


class ChunkingShape(Model):
    """How documents are cut. Sizes are in the embedder's tokens and already capped by it."""

    strategy: Literal["markdown", "recursive", "fixed"]
    size_tokens: int
    overlap_tokens: int


class RevisionShape(Model):
    """Everything that decides what an index revision holds for given documents."""

    language: Language
    chunking: ChunkingShape
    source_chunking: dict[str, ChunkingShape] = Field(default_factory=dict, description="overrides, by source name")
    embedder: EmbedderFingerprint
    metadata_schema: dict[str, MetadataType] = Field(default_factory=dict)
    store: Literal["embedded"] = "embedded"
    algorithms: dict[str, str] = Field(description="ids of the algorithms used, such as markdown/1")

    def revision_name(self, knowledge_base: str) -> str:
        """Return the name of the revision of `knowledge_base` that has this shape."""
        return f"{knowledge_base}-{content_hash(self.to_document())}"  # type: ignore[arg-type]

    def chunking_of(self, source: str) -> ChunkingShape:
        """Return how documents of `source` are cut."""
        return self.source_chunking.get(source, self.chunking)
