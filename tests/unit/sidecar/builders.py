"""Small documents that the sidecar's tests start from."""

import hashlib
import json

from tidegate_api.config import (
    AuthConfig,
    IndexRef,
    LimitsConfig,
    NodeConfig,
    PinConfig,
    PipelineConfig,
    ReleaseConfig,
    RoutingTable,
    RuleConfig,
    SidecarConfig,
    Versions,
)

PIPELINE = "handbook"


def release(name: str) -> ReleaseConfig:
    return ReleaseConfig(
        name=name,
        pipeline=PipelineConfig(
            knowledge_bases=["handbook"], nodes=[NodeConfig(name="lexical", type="bm25")], output="lexical"
        ),
        indexes=[IndexRef(knowledge_base="handbook", revision="handbook-7d9f4c2b1a")],
        versions=Versions(runtime="0.1.0", sidecar="0.1.0"),
    )


def table(
    *names: str,
    version: int = 1,
    candidate: str | None = None,
    share: float = 0,
    rules: list[RuleConfig] | None = None,
    pins: list[PinConfig] | None = None,
    unit: str = "user",
) -> RoutingTable:
    """A table of the releases `names`, the first of which is stable."""
    found = names or ("rel-a",)
    return RoutingTable(
        version=version,
        pipeline=PIPELINE,
        salt="acme/handbook",
        stable=found[0],
        candidate=candidate,
        share=share,
        unit=unit,
        rules=rules or [],
        pins=pins or [],
        releases=[release(name) for name in found],
    )


def config(*, anonymous: bool = True, limits: LimitsConfig | None = None, **auth: str) -> SidecarConfig:
    return SidecarConfig(
        pipeline=PIPELINE,
        namespace="acme",
        auth=AuthConfig(anonymous=anonymous, **auth),
        limits=limits or LimitsConfig(),
    )


def key_entry(key: str, *tenants: str, **members: object) -> bytes:
    """The Secret entry of `key`."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    return json.dumps({"sha256": digest, "tenants": list(tenants), **members}).encode()
