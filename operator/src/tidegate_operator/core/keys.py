"""Keys: what is reconciled as one, and which keys an event wakes.

A RetrievalPipeline and its RoutingPolicies are one key, so there is one truth about a rollout. Children
carry their parent's name as a label; a release also carries the knowledge bases it refers to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.names import Label, index_label

_INDEX_LABEL_PREFIX = index_label("")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """One unit of reconciling."""

    kind: Kind
    namespace: str
    name: str

    @property
    def ref(self) -> Ref:
        """Return the reference of the object that the key is named after."""
        return Ref(self.kind, self.namespace, self.name)


@dataclass(slots=True)
class References:
    """Which pipelines refer to a knowledge base, learnt from the pipelines' own events.

    Only a hint about whom to wake: what it does not know yet is found at the next resync.
    """

    _used_by: dict[Key, frozenset[str]] = field(default_factory=dict)

    def learn(self, pipeline: Manifest, *, deleted: bool) -> None:
        """Remember what a pipeline refers to."""
        key = Key(Kind.RETRIEVAL_PIPELINE, pipeline["metadata"]["namespace"], pipeline["metadata"]["name"])
        if deleted:
            self._used_by.pop(key, None)
        else:
            listed = (pipeline.get("spec") or {}).get("knowledgeBases") or []
            self._used_by[key] = frozenset(str(reference.get("name")) for reference in listed)

    def pipelines_of(self, namespace: str, knowledge_base: str) -> Iterator[Key]:
        """Return the pipelines that refer to a knowledge base."""
        for key, used in self._used_by.items():
            if key.namespace == namespace and knowledge_base in used:
                yield key


def keys_to_wake(kind: Kind, manifest: Manifest, references: References) -> frozenset[Key]:
    """Return the keys that must look again after an event about `manifest`."""
    metadata = manifest["metadata"]
    namespace, name = str(metadata["namespace"]), str(metadata["name"])
    match kind:
        case Kind.KNOWLEDGE_BASE:
            return frozenset({Key(kind, namespace, name), *references.pipelines_of(namespace, name)})
        case Kind.RETRIEVAL_PIPELINE:
            return frozenset({Key(kind, namespace, name)})
        case Kind.ROUTING_POLICY:
            pipeline = ((manifest.get("spec") or {}).get("pipeline") or {}).get("name")
            return frozenset({Key(Kind.RETRIEVAL_PIPELINE, namespace, str(pipeline))}) if pipeline else frozenset()
        case _:
            return frozenset(_parents(namespace, metadata.get("labels") or {}))


def _parents(namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
    if knowledge_base := labels.get(Label.KNOWLEDGE_BASE):
        yield Key(Kind.KNOWLEDGE_BASE, namespace, knowledge_base)
    if pipeline := labels.get(Label.PIPELINE):
        yield Key(Kind.RETRIEVAL_PIPELINE, namespace, pipeline)
    for label in labels:
        if label.startswith(_INDEX_LABEL_PREFIX):
            yield Key(Kind.KNOWLEDGE_BASE, namespace, label.removeprefix(_INDEX_LABEL_PREFIX))
