"""Judges manifests as the API server and the operator would, without either.

Three looks, all of them always: members that the schema does not know, the schema with its CEL
rules, and what CEL cannot say (graphs, models, references to other objects). What is accepted is
parsed; what is not is a line with file, object, field, value and next step.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate_api.cel import unknown_fields, violations
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec
from tidegate_api.violation import Violation
from tidegate_cli.manifests import OUR_KINDS, Manifest, ManifestError, Manifests
from tidegate_operator.core.acceptance import knowledge_base_violations, pipeline_violations


@dataclass(frozen=True, slots=True)
class Accepted:
    """Manifests that may be served, and what a person should know about them."""

    manifests: Manifests
    knowledge_bases: dict[str, KnowledgeBaseSpec] = field(default_factory=dict)
    pipelines: dict[str, RetrievalPipelineSpec] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def accept(manifests: Manifests) -> Accepted:
    """Return the specs to serve.

    Raises:
        ManifestError: anything is wrong, or there is nothing to serve.
    """
    problems = [
        f"{manifest}: {violation}"
        for kind in OUR_KINDS
        for manifest in manifests.of_kind(kind)
        for violation in (*unknown_fields(kind, manifest.body), *violations(kind, manifest.body))
    ]
    if problems:
        raise ManifestError(problems)
    accepted = Accepted(
        manifests,
        {m.name: KnowledgeBaseSpec.model_validate(m.body["spec"]) for m in manifests.of_kind("KnowledgeBase")},
        {m.name: RetrievalPipelineSpec.model_validate(m.body["spec"]) for m in manifests.of_kind("RetrievalPipeline")},
        tuple(_remarks(manifests)),
    )
    problems = [f"{manifest}: {violation}" for manifest, violation in _beyond_the_schema(accepted)]
    if not accepted.pipelines:
        problems.append(
            "no RetrievalPipeline is among the given files; add one, as in examples/quickstart/pipeline.yaml"
        )
    if problems:
        raise ManifestError(problems)
    return accepted


def _beyond_the_schema(accepted: Accepted) -> Iterator[tuple[Manifest, Violation]]:
    manifests = accepted.manifests
    for manifest in manifests.of_kind("KnowledgeBase"):
        for violation in _knowledge_base(accepted.knowledge_bases[manifest.name], manifests):
            yield manifest, violation
    for manifest in manifests.of_kind("RetrievalPipeline"):
        for violation in _pipeline(accepted.pipelines[manifest.name], manifests):
            yield manifest, violation
    for manifest in manifests.of_kind("RoutingPolicy"):
        policy = RoutingPolicySpec.model_validate(manifest.body["spec"])
        if manifests.find("RetrievalPipeline", policy.pipeline.name) is None:
            yield manifest, _missing("spec.pipeline.name", "RetrievalPipeline", policy.pipeline.name)


def _knowledge_base(spec: KnowledgeBaseSpec, manifests: Manifests) -> Iterator[Violation]:
    yield from knowledge_base_violations(spec)
    for source in spec.sources:
        config_map = source.from_.config_map
        if config_map is not None and manifests.find("ConfigMap", config_map.name) is None:
            yield _missing(f"spec.sources[{source.name}].from.configMap.name", "ConfigMap", config_map.name)


def _pipeline(spec: RetrievalPipelineSpec, manifests: Manifests) -> Iterator[Violation]:
    yield from pipeline_violations(spec)
    for reference in spec.knowledge_bases:
        if manifests.find("KnowledgeBase", reference.name) is None:
            yield _missing("spec.knowledgeBases", "KnowledgeBase", reference.name)
    for member, source in (("apiKeys", spec.auth.api_keys), ("trustedHeaders", spec.auth.trusted_headers)):
        if source is None:
            continue
        path = f"spec.auth.{member}.secretRef.name"
        secret = manifests.find("Secret", source.secret_ref.name)
        if secret is None:
            yield _missing(path, "Secret", source.secret_ref.name)
        elif member == "trustedHeaders" and not _has_entry(secret, "secret"):
            yield Violation(path, f"Secret {source.secret_ref.name!r} has no entry 'secret': add it under stringData")


def _has_entry(manifest: Manifest, key: str) -> bool:
    sections = (manifest.body.get(member) for member in ("data", "stringData"))
    return any(isinstance(section, dict) and key in section for section in sections)


def _missing(path: str, kind: str, name: str) -> Violation:
    return Violation(path, f"{kind} {name!r} is not among the given files: add its manifest or correct the name")


def _remarks(manifests: Manifests) -> Iterator[str]:
    for manifest in manifests.of_kind("RoutingPolicy"):
        yield f"{manifest}: is checked but not obeyed here; one release serves everybody"
