"""Judges manifests as the API server and the operator would, without either.

Three looks: members that the schema does not know, the schema with its CEL rules, and what CEL cannot
say (graphs, models, references to other objects, what those hold). An object that its schema refuses
is not given the third, all others are. What is accepted is parsed and complete; what is not is a line
with file, object, field, value and next step.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidegate_api.cel import unknown_fields, violations
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec
from tidegate_api.violation import Violation
from tidegate_cli.local_files import entry_names, entry_violations
from tidegate_cli.manifests import OUR_KINDS, Manifest, ManifestError, Manifests
from tidegate_operator.core.acceptance import knowledge_base_violations, pipeline_violations, policy_violations
from tidegate_operator.core.names import Annotation

_API_KEYS_PATH = "spec.auth.apiKeys.secretRef.name"
_TRUSTED_HEADERS_PATH = "spec.auth.trustedHeaders.secretRef.name"
_Found = Iterator[tuple[Manifest, Violation]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Manifests that may be served, and what a person should know about them."""

    manifests: Manifests
    knowledge_bases: dict[str, KnowledgeBaseSpec] = field(default_factory=dict)
    pipelines: dict[str, RetrievalPipelineSpec] = field(default_factory=dict)
    policies: dict[str, RoutingPolicySpec] = field(default_factory=dict)

    def sync_token(self, knowledge_base: str) -> str:
        """Return the value of the annotation that asks for a look at the sources, and confirms deletions."""
        metadata = self.manifests.objects["KnowledgeBase", knowledge_base].body.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        return str(annotations.get(Annotation.SYNC, "")) if isinstance(annotations, dict) else ""

    def remarks(self) -> list[str]:
        """Return what is accepted but does nothing here."""
        return [
            f"{self.manifests.objects['RoutingPolicy', name]}: is checked but not obeyed here; one release serves everybody"
            for name in self.policies
        ]


def accept(manifests: Manifests, claims: Mapping[str, Path], *, before: Manifests | None = None) -> Accepted:
    """Return the specs to serve; `claims` are the folders that stand for PersistentVolumeClaims.

    Args:
        before: what was accepted last, of which `manifests` are an edit; some rules compare the two.

    Raises:
        ManifestError: anything is wrong, or there is nothing to serve.
    """
    problems: list[str] = []
    specs: dict[str, dict[str, object]] = {kind: {} for kind in OUR_KINDS}
    for kind in OUR_KINDS:
        for manifest in manifests.of_kind(kind):
            old = before.find(kind, manifest.name) if before is not None else None
            refused = violations(kind, manifest.body, old.body if old is not None else None)
            problems += [f"{manifest}: {each}" for each in (*unknown_fields(kind, manifest.body), *refused)]
            if not refused:
                specs[kind][manifest.name] = manifest.body["spec"]
    accepted = Accepted(
        manifests,
        {name: KnowledgeBaseSpec.model_validate(spec) for name, spec in specs["KnowledgeBase"].items()},
        {name: RetrievalPipelineSpec.model_validate(spec) for name, spec in specs["RetrievalPipeline"].items()},
        {name: RoutingPolicySpec.model_validate(spec) for name, spec in specs["RoutingPolicy"].items()},
    )
    problems += [f"{manifest}: {violation}" for manifest, violation in _beyond_the_schema(accepted, claims)]
    if not manifests.of_kind("RetrievalPipeline"):
        problems.append(
            "no RetrievalPipeline is among the given files; add one, as in examples/quickstart/pipeline.yaml"
        )
    if problems:
        raise ManifestError(problems)
    return accepted


def _beyond_the_schema(accepted: Accepted, claims: Mapping[str, Path]) -> _Found:
    objects = accepted.manifests.objects
    for name, knowledge_base in accepted.knowledge_bases.items():
        for violation in (*knowledge_base_violations(knowledge_base), *_claim_violations(knowledge_base, claims)):
            yield objects["KnowledgeBase", name], violation
    for name, pipeline in accepted.pipelines.items():
        for violation in pipeline_violations(pipeline):
            yield objects["RetrievalPipeline", name], violation
    for name, policy in accepted.policies.items():
        # Which releases there will be is not known here: whatever a pin or a rule names may come to be one.
        named = {pin.release for pin in policy.pins} | {rule.serve for rule in policy.rules}
        for violation in policy_violations(policy, releases=named):
            yield objects["RoutingPolicy", name], violation
    yield from _reference_violations(accepted)


def _reference_violations(accepted: Accepted) -> _Found:
    held: dict[str, Manifest] = {}
    for owner, path, kind, name in _references(accepted):
        manifest = accepted.manifests.find(kind, name)
        if manifest is None:
            yield owner, Violation(path, f"{kind} {name!r} is not among the given files: add it or correct the name")
            continue
        yield from ((owner, violation) for violation in _namespace_violations(path, owner, manifest))
        if kind in ("ConfigMap", "Secret"):
            held[str(manifest)] = manifest
            yield from ((owner, violation) for violation in _secret_violations(path, manifest))
    for manifest in held.values():
        yield from ((manifest, violation) for violation in entry_violations(manifest))


def _namespace_violations(path: str, owner: Manifest, named: Manifest) -> Iterator[Violation]:
    """Yield when both name a namespace and not the same; who names none lands where it is applied to."""
    if owner.namespace and named.namespace and owner.namespace != named.namespace:
        yield Violation(
            path,
            f"{named.kind} {named.name!r} is in namespace {named.namespace!r}, not in {owner.namespace!r}: "
            "references stay within a namespace, put both into one",
        )


def _references(accepted: Accepted) -> Iterator[tuple[Manifest, str, str, str]]:
    """Yield owner, field, kind and name of every reference between objects."""
    objects = accepted.manifests.objects
    for name, knowledge_base in accepted.knowledge_bases.items():
        for source in knowledge_base.sources:
            if source.from_.config_map is not None:
                path = f"spec.sources[{source.name}].from.configMap.name"
                yield objects["KnowledgeBase", name], path, "ConfigMap", source.from_.config_map.name
    for name, pipeline in accepted.pipelines.items():
        owner = objects["RetrievalPipeline", name]
        for reference in pipeline.knowledge_bases:
            yield owner, "spec.knowledgeBases", "KnowledgeBase", reference.name
        if pipeline.auth.api_keys is not None:
            yield owner, _API_KEYS_PATH, "Secret", pipeline.auth.api_keys.secret_ref.name
        if pipeline.auth.trusted_headers is not None:
            yield owner, _TRUSTED_HEADERS_PATH, "Secret", pipeline.auth.trusted_headers.secret_ref.name
    for name, policy in accepted.policies.items():
        yield objects["RoutingPolicy", name], "spec.pipeline.name", "RetrievalPipeline", policy.pipeline.name


def _secret_violations(path: str, secret: Manifest) -> Iterator[Violation]:
    """Yield what the field at `path` needs of its Secret and does not find."""
    names = entry_names(secret)
    if path == _TRUSTED_HEADERS_PATH and "secret" not in names:
        yield Violation(path, f"Secret {secret.name!r} has no entry 'secret': add it under stringData")
    if path == _API_KEYS_PATH and not names:
        yield Violation(path, f"Secret {secret.name!r} has no entry: add one per key under stringData")


def _claim_violations(spec: KnowledgeBaseSpec, claims: Mapping[str, Path]) -> Iterator[Violation]:
    for source in spec.sources:
        if source.from_.volume is None:
            continue
        path, claim = f"spec.sources[{source.name}].from.volume.claimName", source.from_.volume.claim_name
        if claim not in claims:
            yield Violation(path, f"claim {claim!r} has no folder here: add --volume {claim}=PATH")
        elif not os.path.isdir(claims[claim]):  # unlike Path.is_dir, no path makes it raise
            yield Violation(path, f"--volume {claim}={claims[claim]} is not a folder: correct the path")
