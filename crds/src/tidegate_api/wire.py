"""The HTTP contract: public requests and answers, the error envelope, and the hop to the runtime.

Unknown members of a request are refused by name: a typing mistake must not silently change what is
asked for. Answers are written by the runtime and completed by the sidecar.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

HEADER_RELEASE = "x-tidegate-release"
HEADER_ARM = "x-tidegate-arm"
HEADER_RULE = "x-tidegate-rule"
HEADER_TABLE = "x-tidegate-table"
HEADER_CACHE = "x-tidegate-cache"
HEADER_TENANT = "x-tidegate-tenant"
HEADER_USER = "x-tidegate-user"
HEADER_SESSION = "x-tidegate-session"
HEADER_PROXY_SECRET = "x-tidegate-proxy-secret"  # noqa: S105 - the name of a header, not a secret
# Runtime -> sidecar only: what must be counted without reading the body.
HEADER_DEGRADED = "x-tidegate-degraded"
HEADER_RESULTS = "x-tidegate-results"

# How many results a request that does not say gets, where the pipeline's limit allows them.
DEFAULT_TOP_K = 10


class ErrorCode(StrEnum):
    """Closed set of error codes that callers may rely on."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    RELEASE_UNAVAILABLE = "release_unavailable"
    OVERLOADED = "overloaded"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    INTERNAL = "internal"


STATUS_OF_CODE: dict[ErrorCode, int] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.TOO_LARGE: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.RELEASE_UNAVAILABLE: 503,
    ErrorCode.OVERLOADED: 503,
    ErrorCode.DEADLINE_EXCEEDED: 504,
    ErrorCode.INTERNAL: 500,
}


class Wire(BaseModel):
    """Strict and frozen: an unknown member is an error that names it, and so is a number that JSON does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Scalar = str | int | float | bool


class Comparison(Wire):
    """`{"type": "eq", "key": "department", "value": "hr"}`, as in the OpenAI vector-store grammar."""

    type: Literal["eq"]
    key: Annotated[str, Field(min_length=1, max_length=64)]
    value: Scalar


class Membership(Wire):
    """`{"type": "in", "key": "year", "value": [2024, 2025]}`."""

    type: Literal["in"]
    key: Annotated[str, Field(min_length=1, max_length=64)]
    value: Annotated[list[Scalar], Field(min_length=1, max_length=256)]


class Compound(Wire):
    """`{"type": "and", "filters": [...]}`; at most 8 levels deep, checked by the runtime."""

    type: Literal["and", "or"]
    filters: Annotated[list["Filter"], Field(min_length=1, max_length=64)]


Filter = Annotated[Comparison | Membership | Compound, Field(discriminator="type")]


class RetrieveRequest(Wire):
    """Body of `POST /v1/retrieve`. Sizes that depend on the pipeline are checked by the sidecar."""

    query: Annotated[str, Field(min_length=1)]
    knowledge_bases: Annotated[list[str], Field(min_length=1, max_length=16)] | None = None
    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    filters: Filter | None = None
    session_id: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=600_000)] | None = None
    explain: bool = False


class Scope(Wire):
    """Who asks. `tenant` None is an anonymous caller, who sees only what is for every tenant."""

    tenant: str | None = None
    groups: list[str] = Field(default_factory=list)


class SearchRequest(Wire):
    """Sidecar -> runtime, `POST /v1/search`: a request that is authenticated and routed already."""

    query_id: str
    release: str
    query: str
    scope: Scope
    knowledge_bases: list[str] | None = None
    top_k: int | None = None
    filters: Filter | None = None
    deadline_ms: int
    explain: bool = Field(default=False, description="caller holds scope `explain`: raw leg scores may be shown")


class CloseRequest(Wire):
    """Sidecar -> runtime, `POST /v1/close`: nothing will be asked of this release any more."""

    release: str


class Location(Wire):
    """Where the chunk stands in the original: character offsets, end exclusive."""

    start: int
    end: int


class Result(Wire):
    """One chunk of an answer, best first."""

    chunk_id: str
    document_id: str
    title: str
    content: str
    score: float
    score_kind: Literal["fused", "bm25", "dense"]
    scores: dict[str, float] | None = Field(default=None, description="by leg; only for keys with scope `explain`")
    source: str
    knowledge_base: str
    revision: str
    content_generation: int
    location: Location
    metadata: dict[str, Scalar | list[Scalar]]


class Degraded(Wire):
    """A node that did not do its part, and how long it was waited for."""

    node: str
    reason: Literal["timeout", "error", "unavailable", "language_mismatch"]
    after_ms: float


class SearchResponse(Wire):
    """Runtime -> sidecar. The sidecar adds query_id, release, arm and route in front and passes the rest on."""

    results: list[Result]
    degraded: list[Degraded]
    timings_ms: dict[str, float]


class Route(Wire):
    """Why this release answered."""

    rule: str
    unit: str
    bucket: int | None
    table: int


class ErrorBody(Wire):
    """`{"error": {...}}`: never a stack trace, a store address or another tenant's data."""

    code: ErrorCode
    message: str
    query_id: str
