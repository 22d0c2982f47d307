"""KnowledgeBase: documents, how they are cut and embedded, and where their index lives.

What decides the shape of an index revision (language, chunking, embedding, metadataSchema, store)
builds another revision when it changes; everything else reaches the live revisions at once.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from tidegate_api.v1alpha1.common import (
    AGE_COLUMN,
    PARENT_NAME_RULES,
    READY_COLUMN,
    Column,
    Definition,
    Duration,
    Identity,
    Name,
    NodeSelector,
    ObjectName,
    ObjectRef,
    OptionalObjectName,
    Part,
    PartName,
    Quantity,
    ReadyPolicy,
    RelativePath,
    Resource,
    Resources,
    Status,
    Text,
    Timestamp,
    Tolerations,
    exactly_one,
    guarded,
    map_list,
    ordered_list,
    rule,
)

METADATA_KEY_RULE = rule(
    "self.all(key, key.size() >= 1 && key.size() <= 64)", "every key must have 1 to 64 characters: shorten the key"
)

MetadataSchema = Annotated[
    dict[str, Literal["keyword", "number", "date", "bool"]],
    Field(max_length=64, json_schema_extra=guarded(METADATA_KEY_RULE)),
]
SourceMetadata = Annotated[
    dict[str, Annotated[int, Field(ge=-(2**53), le=2**53)] | Annotated[str, Field(max_length=256)]],
    Field(max_length=32, json_schema_extra=guarded(METADATA_KEY_RULE)),
]


class VolumeSource(Part):
    """Files on a PersistentVolumeClaim."""

    claim_name: ObjectName
    path: RelativePath = Field(default="", description="folder inside the volume; empty = all of it")


class SourceFrom(Part):
    """Where documents come from."""

    model_config = ConfigDict(
        json_schema_extra=guarded(exactly_one("configMap", "volume", of="where the documents come from"))
    )

    config_map: ObjectRef | None = Field(default=None, description="each entry is one file")
    volume: VolumeSource | None = None


class Chunking(Part):
    """How documents are cut. Sizes are in the embedder's tokens and are capped by what it can read."""

    strategy: Literal["markdown", "recursive", "fixed"] | None = Field(
        default=None, description="absent = markdown; in a source: absent = as in spec.chunking"
    )
    size_tokens: Annotated[int, Field(ge=16, le=8192)] | None = Field(
        default=None, description="absent = 200; in a source: absent = as in spec.chunking"
    )
    overlap_tokens: Annotated[int, Field(ge=0, le=4096)] | None = Field(
        default=None,
        description="absent = 24; in a source: absent = as in spec.chunking; less than half the size is used",
    )


class Source(Part):
    """One source of documents."""

    name: PartName
    type: Literal["text"] = "text"
    from_: SourceFrom = Field(alias="from")
    include: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]],
        Field(max_length=64, json_schema_extra=ordered_list()),
    ] = Field(default_factory=list, description="glob patterns such as **/*.md; empty = every supported format")
    refresh: Duration = Field(
        default="15m",
        description="how often to look for changes; 0s = only on a change of the spec or tidegate.dev/sync",
    )
    metadata: SourceMetadata = Field(
        default_factory=dict, description="given to every document; filterable by keys of metadataSchema"
    )
    tenants: Annotated[list[Identity], Field(min_length=1, max_length=256, json_schema_extra=ordered_list())] = Field(
        default_factory=lambda: ["*"], description="who may read; a document's own tenants narrow it, never widen it"
    )
    chunking: Chunking = Field(default_factory=Chunking, description="overrides spec.chunking for this source")


class Embedding(Part):
    """What turns text into vectors."""

    model: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        default="auto", description="auto (by language) or a built-in: minilm (English), use-m3 (multilingual)"
    )


class EmbeddedStore(Part):
    """The index on a volume of its own."""

    claim_name: OptionalObjectName = Field(default="", description="an existing claim; empty = one is made")
    size: Quantity = Field(default="10Gi", description="size of the claim that is made; it can grow, never shrink")
    storage_class_name: OptionalObjectName = Field(default="", description="empty = the cluster's default")
    distribute: Literal["copy"] = Field(default="copy", description="pods copy what they serve and check its digest")


class IndexStore(Part):
    """Where index revisions live."""

    model_config = ConfigDict(json_schema_extra=guarded(exactly_one("embedded", of="which store holds the index")))

    embedded: EmbeddedStore | None = None


class Store(Part):
    """Stores of this knowledge base."""

    index: IndexStore | None = Field(default=None, description="absent = embedded")


class Build(Part):
    """The pod that builds the index and keeps it in step."""

    resources: Resources = Field(default_factory=Resources)
    node_selector: NodeSelector = Field(default_factory=dict)
    tolerations: Tolerations = Field(default_factory=list)


class KnowledgeBaseSpec(Part):
    """What a user asks for."""

    language: Literal["auto", "en", "zh", "multi"] = Field(
        default="auto",
        description="decides analyzers; auto is decided once, from the documents, and recorded in status",
    )
    sources: Annotated[list[Source], Field(min_length=1, max_length=32, json_schema_extra=map_list())]
    metadata_schema: MetadataSchema = Field(default_factory=dict, description="what filters may use, and its type")
    chunking: Chunking = Field(default_factory=Chunking)
    embedding: Embedding = Field(default_factory=Embedding)
    store: Store = Field(default_factory=Store)
    build: Build = Field(default_factory=Build)
    revision_history_limit: Annotated[int, Field(ge=0, le=50)] = Field(
        default=5, description="revisions kept although nothing refers to them"
    )
    ready_policy: ReadyPolicy = "InForce"


class RevisionStatus(Part):
    """One index revision. Phases: Pending, Building, Ready, Failed, Retiring."""

    name: Name
    phase: Annotated[str, Field(max_length=32)]
    documents: int = 0
    chunks: int = 0
    size_bytes: int = 0
    load_bytes: int = Field(default=0, description="memory that a reader needs to hold it")
    language: Annotated[str, Field(max_length=16)] = ""
    embedder: Annotated[str, Field(max_length=128)] = Field(default="", description="such as minilm@8199be6f/384")
    provides: Annotated[
        list[Annotated[str, Field(max_length=32)]], Field(max_length=16, json_schema_extra=ordered_list())
    ] = Field(default_factory=list, description="legs it can answer")
    created_at: Timestamp | None = None
    ready_at: Timestamp | None = None
    retiring_since: Timestamp | None = Field(default=None, description="when it was decided that it may go")
    content_generation: int = 0
    truncated_chunks: int = 0
    references: int = 0
    referenced_by: Annotated[list[Name], Field(max_length=10, json_schema_extra=ordered_list())] = Field(
        default_factory=list, description="at most 10 named"
    )


class SyncFailure(Part):
    """A document that could not be indexed."""

    document: Annotated[str, Field(max_length=512)]
    reason: Text


class SyncStatus(Part):
    """Outcome of the last look at the sources that changed something."""

    last_at: Timestamp | None = None
    last_handled: Name = Field(default="", description="value of tidegate.dev/sync that was last carried out")
    added: int = 0
    changed: int = 0
    deleted: int = 0
    failed: int = 0
    failures: Annotated[list[SyncFailure], Field(max_length=20, json_schema_extra=ordered_list())] = Field(
        default_factory=list, description="at most 20 kept; `failed` counts all"
    )


class KnowledgeBaseStatus(Status):
    """What is true."""

    language: Annotated[str, Field(max_length=16)] = ""
    desired_revision: Name = Field(default="", description="the revision of this generation, built or not")
    latest_revision: Name = Field(default="", description="the newest revision that is built")
    documents: int = Field(default=0, description="of latestRevision")
    chunks: int = Field(default=0, description="of latestRevision")
    building: Annotated[str, Field(max_length=32)] = Field(
        default="", description="progress; empty when nothing builds"
    )
    revisions: Annotated[list[RevisionStatus], Field(max_length=10, json_schema_extra=ordered_list())] = Field(
        default_factory=list, description="newest first, at most 10"
    )
    sync: SyncStatus = Field(default_factory=SyncStatus)


class KnowledgeBase(Resource):
    """Documents and the versioned indexes built from them."""

    model_config = ConfigDict(json_schema_extra=guarded(*PARENT_NAME_RULES))
    definition: ClassVar[Definition] = Definition(
        kind="KnowledgeBase",
        plural="knowledgebases",
        singular="knowledgebase",
        short_name="kb",
        columns=(
            READY_COLUMN,
            Column("Revision", "string", ".status.latestRevision"),
            Column("Docs", "integer", ".status.documents"),
            Column("Chunks", "integer", ".status.chunks"),
            Column("Building", "string", ".status.building"),
            AGE_COLUMN,
        ),
    )

    kind: str = "KnowledgeBase"
    spec: KnowledgeBaseSpec
    status: KnowledgeBaseStatus = Field(default_factory=KnowledgeBaseStatus)
