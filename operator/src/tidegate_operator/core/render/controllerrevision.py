"""Frozen facts: the shape of an index revision, the content of a release. Data that never changes.

`revision` is a mandatory number of the kind; our names are content addresses and have no order, so it
says nothing.
"""

from tidegate_api.config import ReleaseConfig, RevisionConfig
from tidegate_api.model import Model
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component, Label, index_label, release_object_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.releases import FrozenRelease
from tidegate_operator.core.render.meta import child, with_labels

SCHEMA_VERSION = 1


class FrozenRevision(Model):
    """The data of an index revision's ControllerRevision: enough to keep it in step after the spec has moved on."""

    schema_version: int = SCHEMA_VERSION
    revision: RevisionConfig
    # The indexer takes the newest of its revisions' images: an operator upgrade restarts no indexer by itself.
    runtime_image: str


def frozen_revision(frozen: FrozenRevision, owner: Owner) -> Manifest:
    """Return the ControllerRevision of an index revision; it carries the revision's own name."""
    data = frozen.to_document()
    return child(
        Kind.CONTROLLER_REVISION, frozen.revision.name, owner, Component.INDEXER, data=data, revision=SCHEMA_VERSION
    )


def frozen_release(frozen: FrozenRelease, owner: Owner) -> Manifest:
    """Return the ControllerRevision of a release, labelled with every index revision that it refers to."""
    release = frozen.release
    manifest = child(
        Kind.CONTROLLER_REVISION,
        release_object_name(owner.ref.name, release.name),
        owner,
        Component.RETRIEVAL,
        data=frozen.to_document(),
        revision=SCHEMA_VERSION,
    )
    return with_labels(manifest, {Label.RELEASE.value: release.name, **references(release)})


def references(release: ReleaseConfig) -> dict[str, str]:
    """Return the labels that hold index revisions in use."""
    return {index_label(index.knowledge_base): index.revision for index in release.indexes}
