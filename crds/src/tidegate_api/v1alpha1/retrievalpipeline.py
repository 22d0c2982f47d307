"""RetrievalPipeline: how questions are answered from knowledge bases, and the pods that do it.

Only `knowledgeBases`, `nodes` and `output` change answers and make another release; everything else
rolls in place. The graph in `nodes` is checked by the operator's core (cycles and settings per type
are beyond CEL) and refused by `Accepted=False`.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from tidegate_api.v1alpha1.common import (
    AGE_COLUMN,
    PARENT_NAME_RULES,
    READY_COLUMN,
    VERSION_PATTERN,
    Column,
    Definition,
    Duration,
    Empty,
    History,
    Name,
    ObjectRef,
    OpenObject,
    ParentRef,
    Part,
    PartName,
    Quantity,
    ReadyPolicy,
    RequestOutcome,
    Requests,
    Resource,
    Resources,
    RoutingStatus,
    Scale,
    Status,
    StepStatus,
    Text,
    Timestamp,
    guarded,
    map_list,
    ordered_list,
    rule,
)


class Node(Part):
    """One step of the graph. Legs read an index; fuse joins its inputs."""

    name: PartName
    type: Literal["bm25", "dense", "fuse"]
    inputs: Annotated[list[PartName], Field(max_length=16, json_schema_extra=ordered_list())] = Field(
        default_factory=list
    )
    settings: OpenObject = Field(default_factory=dict, alias="with", description="settings of this type of node")


class SecretSource(Part):
    """A Secret in the same namespace."""

    secret_ref: ObjectRef


class Auth(Part):
    """How callers prove who they are."""

    model_config = ConfigDict(
        json_schema_extra=guarded(
            rule(
                "has(self.anonymous) != (has(self.apiKeys) || has(self.trustedHeaders))",
                "set apiKeys, trustedHeaders or both, or else anonymous: {} alone: it says who may ask",
            )
        )
    )

    anonymous: Empty | None = Field(default=None, description="everybody, who then reads only documents for tenant *")
    api_keys: SecretSource | None = Field(default=None, description="one entry per key in the Secret")
    trusted_headers: SecretSource | None = Field(
        default=None, description="x-tidegate-tenant, -user and -session are believed beside the shared secret"
    )


class Gpu(Part):
    """GPUs of a runtime pod."""

    resource: Annotated[str, Field(min_length=1, max_length=253)] = "nvidia.com/gpu"
    count: Annotated[int, Field(ge=0, le=16)] = 0


class Runtime(Part):
    """The pods that answer."""

    replicas: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        default=None, description="absent = 1; set it before using the scale subresource"
    )
    resources: Resources = Field(default_factory=Resources)
    gpu: Gpu = Field(default_factory=Gpu)
    version: Annotated[str, Field(max_length=128, pattern=VERSION_PATTERN)] = Field(
        default="", description="pins the version of the data planes; empty = the operator's, frozen into each release"
    )
    update: Literal["Warm", "Replace"] = Field(
        default="Warm", description="Replace frees the GPU before the new pod starts: no answers meanwhile"
    )
    pod: OpenObject = Field(
        default_factory=dict, description="labels, nodeSelector, tolerations, affinity and other members of the pod"
    )


class Sidecar(Part):
    """The container in front of the runtime."""

    resources: Resources = Field(default_factory=Resources)


class Releases(Part):
    """When a release is made and may serve."""

    wait_for_builds: bool = Field(default=True, description="false = go on with the newest revision that is built")
    require_policy: bool = Field(default=False, description="true = nothing new serves without a RoutingPolicy")


RequestTimeout = Annotated[
    Duration,
    Field(
        json_schema_extra=guarded(
            rule(
                "duration(self) >= duration('1ms') && duration(self) <= duration('10m')",
                "must be between 1ms and 10m: write for example 10s",
            )
        )
    ),
]


class Limits(Part):
    """Bounds on a request and on a pod."""

    request_timeout: RequestTimeout = "10s"
    max_query_bytes: Quantity = "8Ki"
    max_top_k: Annotated[int, Field(ge=1, le=1000)] = Field(default=100)
    max_concurrent: Annotated[int, Field(ge=1, le=10_000)] = 64
    requests_per_second_per_tenant: Annotated[float, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="0 = no limit"
    )


class RetrievalPipelineSpec(Part):
    """What a user asks for."""

    knowledge_bases: Annotated[list[ParentRef], Field(min_length=1, max_length=16, json_schema_extra=map_list())]
    nodes: Annotated[list[Node], Field(max_length=64, json_schema_extra=map_list())] = Field(
        default_factory=list, description="empty = the preset hybrid: bm25 and dense, fused"
    )
    output: PartName | None = Field(default=None, description="node whose result is the answer; needed beside nodes")
    auth: Auth
    runtime: Runtime = Field(default_factory=Runtime)
    sidecar: Sidecar = Field(default_factory=Sidecar)
    limits: Limits = Field(default_factory=Limits)
    releases: Releases = Field(default_factory=Releases)
    suspend: bool = Field(default=False, description="no changes; serving goes on")
    ready_policy: ReadyPolicy = "InForce"


class IndexRevision(Part):
    """One index revision of one knowledge base."""

    knowledge_base: Name
    revision: Name


IndexRevisions = Annotated[list[IndexRevision], Field(max_length=16, json_schema_extra=map_list("knowledgeBase"))]


class ReleaseVersions(Part):
    """Versions of the data planes, frozen when the release was made."""

    runtime: Name = ""
    sidecar: Name = ""


class ReleaseStatus(Part):
    """One release. Phases: Preparing, Warm, Serving, Cold, Expired, Failed."""

    name: Name
    pipeline_revision: Annotated[str, Field(max_length=64)]
    index_revisions: IndexRevisions = Field(default_factory=list)
    versions: ReleaseVersions = Field(default_factory=ReleaseVersions)
    phase: Annotated[str, Field(max_length=32)]
    created_at: Timestamp | None = None
    served_from: Timestamp | None = None
    served_until: Timestamp | None = None


class RejectedChange(Part):
    """What differed from stable."""

    pipeline_revision: Annotated[str, Field(max_length=64)] | None = None
    index_revisions: IndexRevisions = Field(default_factory=list)


class Rejection(Part):
    """A release that failed or was rolled back; what it changed is held until somebody says retry."""

    release: Name
    changed: RejectedChange = Field(default_factory=RejectedChange)
    reason: Text = ""
    at: Timestamp


class RolloutStatus(Part):
    """The one truth about which release serves and which one comes next."""

    stable: Name = ""
    candidate: Name = ""
    queued: Name = ""
    phase: Annotated[str, Field(max_length=32)] = ""
    step: StepStatus | None = None
    rejected: Annotated[list[Rejection], Field(max_length=20, json_schema_extra=ordered_list())] = Field(
        default_factory=list
    )
    history: History = Field(default_factory=list)


class RollbackStatus(Part):
    """Where a rollback would go. Readiness: Warm (under a second) or Cold."""

    target: Name = ""
    readiness: Annotated[str, Field(max_length=32)] = ""


class AuthStatus(Part):
    """What was read from the Secrets."""

    keys: int = 0


class RuntimeStatus(Part):
    """Pods of the release that serves; read by the scale subresource."""

    desired: int = 0
    ready: int = 0
    selector: Text = ""


class RetrievalPipelineStatus(Status):
    """What is true."""

    endpoint: Name = Field(default="", description="such as http://handbook.acme.svc:8080")
    serving_release: Name = ""
    candidate: Name = ""
    pods: Annotated[str, Field(max_length=32)] = Field(default="", description="such as 2/2")
    releases: Annotated[list[ReleaseStatus], Field(max_length=20, json_schema_extra=ordered_list())] = Field(
        default_factory=list, description="newest first, at most 20"
    )
    rollout: RolloutStatus = Field(default_factory=RolloutStatus)
    rollback: RollbackStatus = Field(default_factory=RollbackStatus)
    auth: AuthStatus = Field(default_factory=AuthStatus)
    runtime: RuntimeStatus = Field(default_factory=RuntimeStatus)
    routing: RoutingStatus = Field(default_factory=RoutingStatus)
    requests: Requests = Field(default_factory=list, description="last 10; used where no RoutingPolicy rules")
    last_request: RequestOutcome | None = None


class RetrievalPipeline(Resource):
    """Answers questions from knowledge bases."""

    model_config = ConfigDict(json_schema_extra=guarded(*PARENT_NAME_RULES))
    definition: ClassVar[Definition] = Definition(
        kind="RetrievalPipeline",
        plural="retrievalpipelines",
        singular="retrievalpipeline",
        short_name="rp",
        columns=(
            READY_COLUMN,
            Column("Serving", "string", ".status.servingRelease"),
            Column("Candidate", "string", ".status.candidate"),
            Column("Pods", "string", ".status.pods"),
            Column("Endpoint", "string", ".status.endpoint", priority=1),
            AGE_COLUMN,
        ),
        scale=Scale(".spec.runtime.replicas", ".status.runtime.ready", ".status.runtime.selector"),
    )

    kind: str = "RetrievalPipeline"
    spec: RetrievalPipelineSpec
    status: RetrievalPipelineStatus = Field(default_factory=RetrievalPipelineStatus)
