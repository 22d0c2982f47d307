"""Rendered documents: what the control plane writes and the data planes obey.

Three documents, each written whole and replaced atomically:

- `IndexerConfig` says which revisions of a knowledge base should exist and from which sources.
- `RoutingTable` says which releases exist and who is served by which; the higher version wins.
- `SidecarConfig` holds what a sidecar can reload without a restart: authentication and limits.

`IndexerState`, `RuntimeState` and `SidecarState` are the answers: what really runs, polled by the
control plane. Durations are seconds or milliseconds as named; sizes are bytes.
"""

from typing import Literal

from pydantic import Field

from tidegate_api.hashing import content_hash
from tidegate_api.model import Model
from tidegate_api.shape import Language, RevisionShape

# Entries of the ConfigMaps that hold rendered documents.
INDEXER_CONFIG_KEY = "config.json"
TABLE_KEY = "routing.json"
SIDECAR_CONFIG_KEY = "sidecar.json"

# --- indexer -------------------------------------------------------------------------------------


class ConfigMapFrom(Model):
    """Documents are the entries of a ConfigMap; `path` is where they are found as files."""

    name: str
    path: str


class VolumeFrom(Model):
    """Documents are the files below `path`, an absolute path in the indexer's file system."""

    claim_name: str
    path: str


class SourceConfig(Model):
    """One source of documents. Exactly one of `config_map` and `volume` is set."""

    name: str
    config_map: ConfigMapFrom | None = None
    volume: VolumeFrom | None = None
    include: list[str] = Field(default_factory=list, description="glob patterns; empty = every supported format")
    refresh_seconds: float = Field(default=900, description="0 = only when the config or its sync token changes")
    metadata: dict[str, str | int | float | bool] = Field(default_factory=dict)
    tenants: list[str] = Field(default_factory=lambda: ["*"])


class RevisionConfig(Model):
    """A revision that should exist and be kept in step with the sources."""

    name: str
    shape: RevisionShape


class IndexerConfig(Model):
    """What one indexer should make true."""

    knowledge_base: str
    namespace: str
    language: Literal["auto", "en", "zh", "multi"] = Field(description="as asked for; auto needs a census first")
    sources: list[SourceConfig]
    revisions: list[RevisionConfig] = Field(default_factory=list, description="empty until the language is known")
    sync: str = Field(default="", description="an opaque token; a change asks for a look at every source at once")

    def config_hash(self) -> str:
        """Return the hash that an indexer reports for the config it obeys."""
        return content_hash(self.to_document())  # type: ignore[arg-type]


class DocumentFailure(Model):
    """A document that could not be indexed, and why."""

    document: str
    reason: str


class SyncState(Model):
    """Outcome of the last look at the sources. Failures are counted whole and named up to 20."""

    last_at: str | None = None
    last_handled: str = Field(default="", description="the sync token of the last complete look")
    added: int = 0
    changed: int = 0
    deleted: int = 0
    failed: int = 0
    failures: list[DocumentFailure] = Field(default_factory=list)


class RevisionState(Model):
    """What is true of one revision on the indexer's volume."""

    name: str
    phase: Literal["Pending", "Building", "Ready", "Failed"]
    message: str = ""
    reason: str = Field(default="", description="StoreFull: the volume has no room; empty = none, or another")
    documents: int = 0
    chunks: int = 0
    documents_done: int = Field(default=0, description="of documents_total, in the present pass")
    documents_total: int = 0
    size_bytes: int = 0
    load_bytes: int = Field(default=0, description="memory that a reader needs to hold it")
    language: Language
    embedder: str = ""
    provides: list[str] = Field(default_factory=list, description="legs it can answer, such as bm25 and dense")
    content_generation: int = 0
    truncated_chunks: int = Field(default=0, description="chunks cut by the encoder; the bar is 0")
    created_at: str = ""
    ready_at: str | None = None


class Census(Model):
    """Scripts found in the sources, as characters per script, and the language they decide."""

    language: Language
    scripts: dict[str, int] = Field(default_factory=dict)
    documents: int = 0


class IndexerState(Model):
    """Answer of `GET /v1/state` of an indexer."""

    process: str = Field(description="changes with every start")
    config_hash: str = ""
    census: Census | None = None
    revisions: list[RevisionState] = Field(default_factory=list)
    sync: SyncState = Field(default_factory=SyncState)
    message: str = Field(default="", description="why nothing can be done, such as a missing source; empty = well")
    reason: str = Field(default="", description="StoreFull: the volume has no room; empty = none, or another")


# --- releases and routing ------------------------------------------------------------------------


class NodeConfig(Model):
    """One node of a pipeline graph; `settings` are checked per type by `tidegate_api.nodes`."""

    name: str
    type: str
    inputs: list[str] = Field(default_factory=list)
    settings: dict[str, object] = Field(default_factory=dict, alias="with")


class PipelineConfig(Model):
    """The part of a RetrievalPipeline that answers depend on; its hash is the pipeline revision."""

    knowledge_bases: list[str]
    nodes: list[NodeConfig]
    output: str

    def revision(self) -> str:
        """Return the pipeline revision: a hash of everything that can change an answer."""
        return content_hash(self.to_document())  # type: ignore[arg-type]


class IndexRef(Model):
    """One index revision of one knowledge base."""

    knowledge_base: str
    revision: str


class Versions(Model):
    """Versions of the data planes, frozen when a release was made."""

    runtime: str
    sidecar: str


class ReleaseConfig(Model):
    """A release: pipeline revision x index revisions x versions. Immutable; equal hashes are the same release."""

    name: str
    pipeline: PipelineConfig
    indexes: list[IndexRef]
    versions: Versions
    deployment: str = Field(default="", description="hash of the Deployment that serves it; empty = this pod")

    @staticmethod
    def make(
        *, pipeline: PipelineConfig, indexes: list[IndexRef], versions: Versions, deployment: str = ""
    ) -> "ReleaseConfig":
        """Name the release by its content. Images that came later do not make another release."""
        ordered = sorted(indexes, key=lambda index: index.knowledge_base)
        content = {"pipeline": pipeline.to_document(), "indexes": [index.to_document() for index in ordered]}
        name = f"rel-{content_hash(content)}"  # type: ignore[arg-type]
        return ReleaseConfig(name=name, pipeline=pipeline, indexes=ordered, versions=versions, deployment=deployment)


class HeaderMatch(Model):
    """A request header that must have exactly this value."""

    name: str
    exact: str


class RuleConfig(Model):
    """A rule in order: every member that is set must match (AND), any value of a member will do (OR)."""

    name: str
    tenants: list[str] = Field(default_factory=list)
    users: list[str] = Field(default_factory=list)
    headers: list[HeaderMatch] = Field(default_factory=list)
    release: str
    percent: float = 100


class PinConfig(Model):
    """Tenants that are always served by one release."""

    tenants: list[str]
    release: str


class RoutingTable(Model):
    """The one document that sidecars obey. `version` grows by one with each write; the higher wins."""

    version: int
    pipeline: str
    namespace: str = ""
    pipeline_uid: str = ""
    generation: int = 0
    unit: Literal["user", "session", "request", "tenant", "query"] = "user"
    salt: str
    stable: str
    candidate: str | None = None
    share: float = Field(default=0, description="percent of units that the candidate serves, steps of 0.01")
    pins: list[PinConfig] = Field(default_factory=list)
    rules: list[RuleConfig] = Field(default_factory=list)
    releases: list[ReleaseConfig]

    def table_hash(self) -> str:
        """Return the hash of the content, `version` left out: equal hashes need no write."""
        return content_hash(self.model_copy(update={"version": 0}).to_document())  # type: ignore[arg-type]


# --- sidecar -------------------------------------------------------------------------------------


class AuthConfig(Model):
    """How callers prove who they are. Directories hold the entries of a mounted Secret, a file each."""

    anonymous: bool = False
    api_keys_dir: str | None = None
    trusted_headers_dir: str | None = Field(
        default=None, description="holds the shared proxy secret in the file `secret`"
    )


class LimitsConfig(Model):
    """Bounds on a request and on this pod."""

    request_timeout_ms: int = 10_000
    max_query_bytes: int = 8192
    max_top_k: int = 100
    max_concurrent: int = 64
    requests_per_second_per_tenant: float = Field(default=0, description="0 = no limit")


class SidecarConfig(Model):
    """What a sidecar reloads without a restart."""

    pipeline: str
    namespace: str
    auth: AuthConfig
    limits: LimitsConfig = Field(default_factory=LimitsConfig)

    def config_hash(self) -> str:
        """Return the hash that a sidecar reports for the config it obeys."""
        return content_hash(self.to_document())  # type: ignore[arg-type]


class ReleaseState(Model):
    """A release as a runtime holds it. `content_generations` is by knowledge base."""

    name: str
    phase: Literal["Loading", "Warm", "Failed"]
    message: str = ""
    content_generations: dict[str, int] = Field(default_factory=dict)


class RuntimeState(Model):
    """Answer of `GET /v1/state` of a runtime, on its socket."""

    process: str
    releases: list[ReleaseState] = Field(default_factory=list)


class SidecarState(Model):
    """Answer of `GET /v1/state` on port 8081."""

    process: str
    table_version: int = Field(default=0, description="0 = no table obeyed yet")
    table_hash: str = ""
    table_source: Literal["", "api", "file"] = ""
    config_hash: str = ""
    releases: list[ReleaseState] = Field(default_factory=list)
    ready: bool = False
    message: str = ""
    reason: str = Field(default="", description="SecretInvalid: nobody can get in; empty = none, or another")
    api_keys: int = 0
    requests: dict[str, dict[str, int]] = Field(
        default_factory=dict, description="by release, by outcome; since the start"
    )
