"""The chart's rights fit the operator's code: what it reads, and what it hands on to its pods."""

from collections.abc import Callable
from typing import Any

import pytest

from tidegate_operator.core.kinds import OWN_KINDS, Kind, Ref, group, plural
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.role import role

Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def rights(render: Callable[[Manifest], list[Manifest]]) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) of everything that the operator may do."""
    manifests = render({"rbac": {"scope": "namespaces"}})
    (found,) = [manifest for manifest in manifests if manifest["kind"] == "Role"]
    return granted_by(found["rules"])


def granted_by(rules: list[Manifest]) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) of everything that some rules grant, names of objects left aside."""
    return {
        (api_group, resource, verb)
        for rule in rules
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_that_the_operator_knows_can_be_read(rights: set[tuple[str, str, str]], kind: Kind) -> None:
    assert (group(kind), plural(kind), "get") in rights


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (*OWN_KINDS, Kind.POD)])
def test_every_kind_of_child_can_be_applied(rights: set[tuple[str, str, str]], kind: Kind) -> None:
    assert {(group(kind), plural(kind), verb) for verb in ("create", "patch")} <= rights


def test_of_its_own_kinds_the_operator_writes_nothing_but_status(rights: set[tuple[str, str, str]]) -> None:
    for kind in OWN_KINDS:
        verbs = {verb for api_group, resource, verb in rights if (api_group, resource) == (group(kind), plural(kind))}

        assert verbs == {"get", "list", "watch"}
        assert (group(kind), f"{plural(kind)}/status", "patch") in rights


def test_the_operator_holds_every_right_that_it_hands_on(rights: set[tuple[str, str, str]]) -> None:
    owner = Owner(Ref(Kind.KNOWLEDGE_BASE, "acme", "handbook"), "uid")
    handed_on = role("handbook-indexer", owner, Component.INDEXER, config_maps=["handbook-indexer"], lease="lease")

    assert granted_by(handed_on["rules"]) <= rights
