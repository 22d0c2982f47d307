"""The chart's rights are those that the operator asks for at its start, and those that it hands on."""

from collections.abc import Callable
from typing import Any

import pytest

from tidegate_operator.core.kinds import OWN_KINDS, Kind, Ref, group, plural
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.role import role
from tidegate_operator.core.rights import needed_rights

Manifest = dict[str, Any]
Grants = set[tuple[str, str, str]]

# An Event that can't be written is no reason not to start, so the operator does not ask for it; nor for the
# right to block the deletion of its kinds, which most clusters don't enforce.
NOT_ASKED_FOR = {
    ("", "events", "create"),
    *((group(kind), f"{plural(kind)}/finalizers", "update") for kind in OWN_KINDS),
}


@pytest.fixture(scope="module")
def rights(render: Callable[[Manifest], list[Manifest]]) -> Grants:
    """Return (group, resource, verb) of everything that the operator may do."""
    manifests = render({"rbac": {"scope": "namespaces"}})
    (found,) = [manifest for manifest in manifests if manifest["kind"] == "Role"]
    return granted_by(found["rules"])


def granted_by(rules: list[Manifest]) -> Grants:
    """Return (group, resource, verb) of everything that some rules grant, names of objects left aside."""
    return {
        (api_group, resource, verb)
        for rule in rules
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_rights_are_what_the_operator_asks_for_and_no_more(rights: Grants) -> None:
    asked = {
        (group(right.kind), "/".join(filter(None, [plural(right.kind), right.subresource])), right.verb)
        for right in needed_rights()
    }

    assert rights == asked | NOT_ASKED_FOR


def test_the_operator_holds_every_right_that_it_hands_on(rights: Grants) -> None:
    owner = Owner(Ref(Kind.KNOWLEDGE_BASE, "acme", "handbook"), "uid")
    handed_on = role("handbook-indexer", owner, Component.INDEXER, config_maps=["handbook-indexer"], lease="lease")

    assert granted_by(handed_on["rules"]) <= rights
