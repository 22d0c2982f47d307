"""The accept/reject table, offline: the same cases are run against a real API server elsewhere."""

from typing import Any

import pytest
from tests.cel.table import Case, load_cases

from tidegate_api.cel import unknown_fields, violations
from tidegate_api.crdgen import structural_schema
from tidegate_api.v1alpha1 import KINDS

CASES = load_cases()
MODELS = {model.definition.kind: model for model in KINDS}


def test_names_of_cases_are_unique() -> None:
    names = [case.name for case in CASES]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_admission(case: Case) -> None:
    found = [*violations(case.kind, case.manifest, case.old), *unknown_fields(case.kind, case.manifest)]
    lines = [str(violation) for violation in found]
    if case.accept:
        assert lines == []
        MODELS[case.kind].model_validate(case.manifest)
    else:
        assert any(case.path in line and case.message in line for line in lines), lines or "accepted"


def test_every_rule_refuses_some_case() -> None:
    refusals = [line for case in CASES for line in map(str, violations(case.kind, case.manifest, case.old))]
    for model in KINDS:
        for rule in rules_of(structural_schema(model)):
            assert any(line.endswith(rule["message"]) for line in refusals), rule


def rules_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every CEL rule in a schema."""
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    own: list[dict[str, Any]] = schema.get("x-kubernetes-validations", [])
    return own + [rule for child in below if child for rule in rules_of(child)]
