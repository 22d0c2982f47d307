"""From specs to the documents that the data planes obey: pure functions, no cluster and no clock.

The operator and `tidegate local` call the same ones, so equal YAML means equal revisions, releases
and answers in both. Defaults are filled in and notations parsed before anything is hashed: writing a
default out, `1m` for `60s` or `0.10` for `0.1` makes no other revision and no other release.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tidegate_api.builtins import resolve_embedder
from tidegate_api.config import (
    AuthConfig,
    ConfigMapFrom,
    HeaderMatch,
    IndexerConfig,
    LimitsConfig,
    NodeConfig,
    PinConfig,
    PipelineConfig,
    ReleaseConfig,
    RevisionConfig,
    RoutingTable,
    RuleConfig,
    SidecarConfig,
    SourceConfig,
    VolumeFrom,
)
from tidegate_api.nodes import HYBRID_NODES, HYBRID_OUTPUT, complete_settings
from tidegate_api.shape import ALGORITHMS, ChunkingShape, EmbedderFingerprint, Language, RevisionShape
from tidegate_api.v1alpha1.common import duration_seconds, quantity_value
from tidegate_api.v1alpha1.knowledgebase import Chunking, KnowledgeBaseSpec, Source
from tidegate_api.v1alpha1.retrievalpipeline import Limits, RetrievalPipelineSpec
from tidegate_api.v1alpha1.routingpolicy import Pin, RoutingPolicySpec, Rule

DEFAULT_STRATEGY = "markdown"
DEFAULT_SIZE_TOKENS = 200
DEFAULT_OVERLAP_TOKENS = 24

# What an encoder reads beside the chunk: its two special tokens, and the title put in front.
_SPECIAL_TOKENS = 2
_TITLE_TOKENS = 32

# --- index ---------------------------------------------------------------------------------------


def revision_shape(spec: KnowledgeBaseSpec, language: Language) -> RevisionShape:
    """Return the shape of the revision that `spec` asks for, once its language is known.

    Raises:
        UnknownModelError: `embedding.model` names nothing that is there.
    """
    embedder = resolve_embedder(spec.embedding.model, language)
    cap = chunk_cap_tokens(embedder)
    chunking = _chunking_shape([spec.chunking], cap)
    by_source = {source.name: _chunking_shape([source.chunking, spec.chunking], cap) for source in spec.sources}
    overrides = {name: shape for name, shape in by_source.items() if shape != chunking}
    strategies = {chunking.strategy, *(shape.strategy for shape in overrides.values())}
    return RevisionShape(
        language=language,
        chunking=chunking,
        source_chunking=overrides,
        embedder=embedder,
        metadata_schema=dict(spec.metadata_schema),
        algorithms={name: ALGORITHMS[name] for name in sorted({*strategies, "analyzer", "embedded"})},
    )


def chunk_cap_tokens(embedder: EmbedderFingerprint) -> int:
    """Return the largest chunk that the encoder reads whole, with a title in front."""
    # A token is at least one byte, so this bounds the prefix's tokens without a tokenizer.
    prefix_tokens = len(embedder.passage_prefix.encode())
    return embedder.max_tokens - _SPECIAL_TOKENS - prefix_tokens - _TITLE_TOKENS


def _chunking_shape(wanted: Sequence[Chunking], cap_tokens: int) -> ChunkingShape:
    """Return the chunking that the first of `wanted` which says something asks for, member by member."""
    strategy = next((each.strategy for each in wanted if each.strategy is not None), DEFAULT_STRATEGY)
    asked = next((each.size_tokens for each in wanted if each.size_tokens is not None), DEFAULT_SIZE_TOKENS)
    overlap = next((each.overlap_tokens for each in wanted if each.overlap_tokens is not None), DEFAULT_OVERLAP_TOKENS)
    size = min(asked, cap_tokens)
    return ChunkingShape(strategy=strategy, size_tokens=size, overlap_tokens=min(overlap, (size - 1) // 2))


def indexer_config(
    spec: KnowledgeBaseSpec,
    *,
    name: str,
    namespace: str,
    revisions: Sequence[RevisionConfig],
    paths: Mapping[str, PurePath],
    sync: str = "",
) -> IndexerConfig:
    """Return what the indexer of knowledge base `name` should make true.

    Args:
        spec: what the user asks for.
        name: of the knowledge base.
        namespace: of the knowledge base.
        revisions: that should exist; none while the language is unknown.
        paths: absolute folder of every source by its name, as the indexer sees it.
        sync: value of the annotation that asks for a look at once.
    """
    return IndexerConfig(
        knowledge_base=name,
        namespace=namespace,
        language=spec.language,
        sources=[_source_config(source, paths[source.name]) for source in spec.sources],
        revisions=list(revisions),
        sync=sync,
    )


def _source_config(source: Source, path: PurePath) -> SourceConfig:
    origin = source.from_
    return SourceConfig(
        name=source.name,
        config_map=ConfigMapFrom(name=origin.config_map.name, path=str(path)) if origin.config_map else None,
        volume=VolumeFrom(claim_name=origin.volume.claim_name, path=str(path)) if origin.volume else None,
        include=list(source.include),
        refresh_seconds=duration_seconds(source.refresh),
        metadata=dict(source.metadata),
        tenants=list(source.tenants),
    )


# --- pipeline ------------------------------------------------------------------------------------


def pipeline_config(spec: RetrievalPipelineSpec) -> PipelineConfig:
    """Return the part of `spec` that answers depend on; `graph_violations` has found nothing wrong with it.

    Nodes and inputs stand in order of their names: their order in the spec means nothing.
    """
    nodes, output = effective_graph(spec)
    return PipelineConfig(
        knowledge_bases=sorted(reference.name for reference in spec.knowledge_bases),
        nodes=sorted((_complete(node) for node in nodes), key=lambda node: node.name),
        output=output,
    )


def effective_graph(spec: RetrievalPipelineSpec) -> tuple[Sequence[NodeConfig], str]:
    """Return the nodes as they are written, and the output; without nodes, the preset's."""
    if not spec.nodes:
        return HYBRID_NODES, spec.output or HYBRID_OUTPUT
    written = [
        NodeConfig(name=node.name, type=node.type, inputs=node.inputs, settings=node.settings) for node in spec.nodes
    ]
    return written, spec.output or ""


def _complete(node: NodeConfig) -> NodeConfig:
    return node.model_copy(update={"inputs": sorted(node.inputs), "settings": complete_settings(node)})


def sidecar_config(
    spec: RetrievalPipelineSpec, *, pipeline: str, namespace: str, auth_paths: Mapping[str, PurePath]
) -> SidecarConfig:
    """Return what the sidecars of `pipeline` reload without a restart.

    Args:
        spec: what the user asks for.
        pipeline: its name.
        namespace: its namespace.
        auth_paths: absolute folders of the mounted Secrets, by `api_keys` and `trusted_headers`.
    """
    auth = spec.auth
    return SidecarConfig(
        pipeline=pipeline,
        namespace=namespace,
        auth=AuthConfig(
            anonymous=auth.anonymous is not None,
            api_keys_dir=str(auth_paths["api_keys"]) if auth.api_keys else None,
            trusted_headers_dir=str(auth_paths["trusted_headers"]) if auth.trusted_headers else None,
        ),
        limits=_limits_config(spec.limits),
    )


def _limits_config(limits: Limits) -> LimitsConfig:
    return LimitsConfig(
        request_timeout_ms=round(duration_seconds(limits.request_timeout) * 1000),
        max_query_bytes=int(quantity_value(limits.max_query_bytes)),
        max_top_k=limits.max_top_k,
        max_concurrent=limits.max_concurrent,
        requests_per_second_per_tenant=limits.requests_per_second_per_tenant,
    )


# --- routing -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PipelineIdentity:
    """Which pipeline a table is for."""

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Split:
    """How far a rollout has come. `begun` names every step that has begun, the present one included."""

    stable: str
    candidate: str | None = None
    share: float = 0
    begun: frozenset[str] = frozenset()


class UnservableReleaseError(Exception):
    """A pin or rule names a release that the table does not hold; `policy_violations` says so first."""


def routing_table(
    identity: PipelineIdentity,
    split: Split,
    *,
    releases: Sequence[ReleaseConfig],
    version: int,
    policy: RoutingPolicySpec | None = None,
) -> RoutingTable:
    """Return the table that sidecars obey. Without a policy the stable release gets everything.

    A pin or rule that names the candidate is left out while there is none, and until the rollout serves.

    Raises:
        UnservableReleaseError: a pin or rule names a release that is not in `releases`.
    """
    known = frozenset(release.name for release in releases)
    rules = _bound_rules(policy, split) if policy else ()
    pins = _bound_pins(policy, split) if policy else ()
    return RoutingTable(
        version=version,
        pipeline=identity.name,
        namespace=identity.namespace,
        pipeline_uid=identity.uid,
        generation=identity.generation,
        unit=policy.unit if policy else "user",
        salt=(policy.salt if policy else "") or f"{identity.namespace}/{identity.name}",
        stable=split.stable,
        candidate=split.candidate,
        share=split.share if split.candidate else 0,
        pins=[PinConfig(tenants=list(pin.tenants), release=_release(pin.release, split, known)) for pin in pins],
        rules=[_rule_config(rule, _release(rule.serve, split, known)) for rule in rules],
        releases=sorted(releases, key=lambda release: release.name),
    )


def _bound_pins(policy: RoutingPolicySpec, split: Split) -> Iterator[Pin]:
    for pin in policy.pins:
        if pin.release != "candidate" or _candidate_serves(policy, split):
            yield pin


def _bound_rules(policy: RoutingPolicySpec, split: Split) -> Iterator[Rule]:
    for rule in policy.rules:
        if rule.serve == "candidate" and split.candidate is None:
            continue
        if rule.from_ is not None:
            bound = rule.from_ in split.begun
        else:
            bound = rule.serve != "candidate" or _candidate_serves(policy, split)
        if bound:
            yield rule


def _candidate_serves(policy: RoutingPolicySpec, split: Split) -> bool:
    """Return whether the first step that serves has begun: rules must not expose a candidate before it."""
    steps_that_serve = {step.name for step in policy.rollout.steps if step.percent is not None}
    return split.candidate is not None and (split.share > 0 or bool(steps_that_serve & split.begun))


def _release(selector: str, split: Split, known: frozenset[str]) -> str:
    release = {"stable": split.stable, "candidate": split.candidate}.get(selector, selector)
    if release is None or release not in known:
        raise UnservableReleaseError(f"{selector} is not among the releases of this table")
    return release


def _rule_config(rule: Rule, release: str) -> RuleConfig:
    match = rule.match
    return RuleConfig(
        name=rule.name,
        tenants=list(match.tenants or ()),
        users=list(match.users or ()),
        headers=[HeaderMatch(name=header.name.lower(), exact=header.exact) for header in match.headers or ()],
        release=release,
        percent=rule.percent,
    )
