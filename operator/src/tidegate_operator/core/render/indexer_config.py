"""The ConfigMap that an indexer obeys, and where its pod finds the sources.

Beside the rendered config it keeps the spec that was last accepted: a later, unusable spec changes
nothing, and what is in force can be made again from the cluster alone.
"""

import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from tidegate_api.config import INDEXER_CONFIG_KEY, IndexerConfig, RevisionConfig
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec, Source
from tidegate_operator.core.desired import indexer_config
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component, Label, indexer_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child, with_labels

ACCEPTED_KEY = "accepted.json"
_SOURCES = PurePosixPath("/sources")
_CLAIMS = PurePosixPath("/claims")


def source_path(source: Source) -> PurePosixPath:
    """Return where a source's documents are in the indexer's file system."""
    volume = source.from_.volume
    return config_map_path(source.name) if volume is None else claim_path(volume.claim_name) / volume.path


def config_map_path(source: str) -> PurePosixPath:
    """Return where the ConfigMap of a source is mounted."""
    return _SOURCES / source


def claim_path(claim: str) -> PurePosixPath:
    """Return where a claim is mounted."""
    return _CLAIMS / claim


def document(spec: KnowledgeBaseSpec, owner: Owner, *, revisions: Sequence[RevisionConfig], sync: str) -> IndexerConfig:
    """Return what the indexer should make true."""
    return indexer_config(
        spec,
        name=owner.ref.name,
        namespace=owner.ref.namespace,
        revisions=revisions,
        paths={source.name: source_path(source) for source in spec.sources},
        sync=sync,
    )


def indexer_config_map(config: IndexerConfig, accepted: KnowledgeBaseSpec, owner: Owner) -> Manifest:
    """Return the ConfigMap of a knowledge base's indexer."""
    data = {
        INDEXER_CONFIG_KEY: _text(config.to_document()),
        ACCEPTED_KEY: _text(accepted.model_dump(by_alias=True, exclude_unset=True, mode="json")),
    }
    manifest = child(Kind.CONFIG_MAP, indexer_name(owner.ref.name), owner, Component.INDEXER, data=data)
    return with_labels(manifest, {Label.WATCH.value: Component.INDEXER.value})


def _text(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
