"""Names of children: legal for the longest parents, and never the same for two."""

import re
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate_operator.core.names import (
    NAME_CHARACTERS,
    Annotation,
    Component,
    Label,
    child_labels,
    deployment_name,
    index_label,
    indexer_name,
    label_value,
    override_name,
    release_object_name,
    routing_name,
)

LEGAL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
LEGAL_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LONGEST = "a" * 40
RELEASE = "rel-0123456789"


def children(parent: str) -> list[str]:
    """Return every name that is made from a parent's."""
    return [
        indexer_name(parent),
        routing_name(parent),
        override_name(parent),
        release_object_name(parent, RELEASE),
        deployment_name(parent, "0123456789"),
    ]


def test_names_read_as_documented() -> None:
    assert children("handbook") == [
        "handbook-indexer",
        "handbook-routing",
        "handbook-override",
        "handbook-rel-0123456789",
        "handbook-0123456789",
    ]
    assert index_label("handbook") == "index.tidegate.dev/handbook"


def test_children_of_the_longest_parent_are_legal() -> None:
    for name in children(LONGEST):
        assert LEGAL_NAME.fullmatch(name)
        assert len(name) <= NAME_CHARACTERS
    assert len(index_label(LONGEST).split("/")[1]) <= NAME_CHARACTERS


def test_children_of_parents_that_differ_in_one_character_differ() -> None:
    names = {*children(LONGEST), *children(LONGEST[:-1] + "b")}
    assert len(names) == 2 * len(children(LONGEST))


def test_every_child_carries_the_usual_labels() -> None:
    labels = child_labels(Component.INDEXER, "handbook")
    assert labels == {
        "app.kubernetes.io/name": "tidegate",
        "app.kubernetes.io/instance": "handbook",
        "app.kubernetes.io/component": "indexer",
        "app.kubernetes.io/part-of": "tidegate",
        "app.kubernetes.io/managed-by": "tidegate-operator",
    }
    assert all(type(key) is str for key in labels)


@pytest.mark.parametrize("text", ["", "a", "rel-0123456789", "A.b_c-9", "x" * 63])
def test_a_legal_value_stays(text: str) -> None:
    assert label_value(text) == text


def test_long_values_that_agree_in_what_is_kept_differ() -> None:
    texts = ["n" * 57 + letter + "n" * 200 for letter in "abc"] + ["n" * 64, "n" * 65]
    values = [label_value(text) for text in texts]
    assert all(first != second for first, second in combinations(values, 2))
    assert all(value.startswith("n" * 52 + "-") for value in values)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=90), min_size=2, max_size=8, unique=True))
def test_any_text_becomes_a_legal_value_of_its_own(texts: list[str]) -> None:
    values = [label_value(text) for text in texts]
    assert all(LEGAL_VALUE.fullmatch(value) and len(value) <= NAME_CHARACTERS for value in values)
    assert len(set(values)) == len(texts)


def test_our_labels_and_annotations_live_under_our_domain() -> None:
    for name in (*Label, *Annotation):
        assert name.startswith(("tidegate.dev/", "app.kubernetes.io/"))
