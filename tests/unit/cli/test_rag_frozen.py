"""What a release froze is read from the very object that the operator makes, or it is said why it cannot be."""

from typing import Any

import pytest
from tests.unit.cli.test_kubectl_rag import Cluster
from tests.unit.cli.test_rag_diff import frozen

from tidegate_cli.rag_frozen import Unreadable, read_frozen
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.controllerrevision import frozen_release

RELEASE = frozen()
NAME = f"docs-{RELEASE.release.name}"


def test_it_is_found_where_the_operator_puts_it() -> None:
    manifest = frozen_release(RELEASE, Owner(Ref(Kind.RETRIEVAL_PIPELINE, namespace="acme", name="docs"), "u1"))
    at = Cluster(objects={("controllerrevisions", manifest["metadata"]["name"]): manifest})
    assert read_frozen(at, pipeline="docs", release=RELEASE.release.name) == RELEASE


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, f'Error from server (NotFound): controllerrevisions.apps "{NAME}" not found'),
        ({}, f"ControllerRevision {NAME}: data: "),
        ({"data": {"runtimeImage": "runtime:1"}}, f"ControllerRevision {NAME}: data.release: Field required"),
        (
            {"data": {**RELEASE.to_document(), "schemaVersion": 2}},
            f"ControllerRevision {NAME} is of a newer version; upgrade kubectl-rag",
        ),
    ],
    ids=["gone", "empty", "not understood", "of a newer operator"],
)
def test_what_cannot_be_read_says_why(found: dict[str, Any] | None, why: str) -> None:
    at = Cluster(objects={} if found is None else {("controllerrevisions", NAME): found})
    read = read_frozen(at, pipeline="docs", release=RELEASE.release.name)
    assert isinstance(read, Unreadable)
    assert read.why.startswith(why)
