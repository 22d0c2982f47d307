"""The generator: what it makes of models, what it refuses, and that the files in the tree are fresh."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
import yaml
from pydantic import ConfigDict, Field

from tidegate_api.crdgen import (
    HEADER,
    NotStructuralError,
    chart_files,
    crd_documents,
    crd_files,
    main,
    structural_schema,
)
from tidegate_api.v1alpha1.common import (
    Definition,
    Part,
    Quantity,
    Resource,
    exactly_one,
    guarded,
    map_list,
    ordered_list,
    rule,
)

ROOT = Path(__file__).resolve().parents[3]
KINDS = {document["spec"]["names"]["kind"]: document for document in crd_documents()}


class Thing(Resource):
    """A kind for these tests."""

    definition: ClassVar[Definition] = Definition("Thing", "things", "thing", "th", ())
    status: dict[str, int] = Field(default_factory=dict, max_length=4)


def schema_of(annotation: Any, **field: Any) -> dict[str, Any]:
    """Return the schema of a member that is declared so."""
    default = field.pop("default", ...)
    declared = {"__annotations__": {"member": annotation}, "member": Field(default, **field), "__module__": __name__}
    spec = type("ThingSpec", (Part,), declared)
    kind = type("Custom", (Thing,), {"__annotations__": {"spec": spec}, "__module__": __name__})
    schema: dict[str, Any] = structural_schema(kind)["properties"]["spec"]["properties"]["member"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every node of a schema with its path."""
    yield path, schema
    for name, member in schema.get("properties", {}).items():
        yield from nodes(member, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "[*]")):
        if key in schema:
            yield from nodes(schema[key], f"{path}{mark}")


ALL_NODES = [
    (f"{kind}{path}", schema)
    for kind, document in KINDS.items()
    for path, schema in nodes(document["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
]

# --- files -----------------------------------------------------------------------------------------


def test_files_in_the_tree_are_fresh() -> None:
    assert main(["--check", "--out", str(ROOT / "crds")]) == 0


def test_check_names_the_stale_file_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    assert main(["--check", "--out", str(tmp_path)]) == 0
    (tmp_path / "knowledgebases.yaml").write_text("edited")
    (tmp_path / "routingpolicies.yaml").unlink()
    assert main(["--check", "--out", str(tmp_path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("/")[-1] for line in lines] == [
        "knowledgebases.yaml is stale: run `make generate` and commit the result",
        "routingpolicies.yaml is stale: run `make generate` and commit the result",
    ]
    assert (tmp_path / "knowledgebases.yaml").read_text() == "edited"


def test_equal_models_give_equal_bytes_under_a_header() -> None:
    assert crd_files() == crd_files()
    assert all(text.startswith(HEADER) for text in crd_files().values())
    assert [yaml.safe_load(text) for text in crd_files().values()] == crd_documents()


def test_chart_copies_are_optional_and_outlive_the_chart() -> None:
    for name, text in chart_files().items():
        first, *middle, last = text.splitlines()
        assert (first, last) == ("{{- if .Values.crds.create }}", "{{- end }}")
        document = yaml.safe_load("\n".join(middle))
        assert document["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert document == yaml.safe_load(crd_files()[name])


# --- the kinds -------------------------------------------------------------------------------------


def test_names_and_subresources() -> None:
    names = {kind: document["spec"]["names"] for kind, document in KINDS.items()}
    assert {kind: each["shortNames"] for kind, each in names.items()} == {
        "KnowledgeBase": ["kb"],
        "RetrievalPipeline": ["rp"],
        "RoutingPolicy": ["rpol"],
    }
    assert all(each["categories"] == ["tidegate"] for each in names.values())
    versions = {kind: document["spec"]["versions"][0] for kind, document in KINDS.items()}
    assert all("status" in version["subresources"] for version in versions.values())
    assert versions["RetrievalPipeline"]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.runtime.replicas",
        "statusReplicasPath": ".status.runtime.ready",
        "labelSelectorPath": ".status.runtime.selector",
    }
    assert versions["RoutingPolicy"]["selectableFields"] == [{"jsonPath": ".spec.pipeline.name"}]


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("KnowledgeBase", ["READY", "REVISION", "DOCS", "CHUNKS", "BUILDING", "AGE"]),
        ("RetrievalPipeline", ["READY", "SERVING", "CANDIDATE", "PODS", "AGE", "ENDPOINT (wide)"]),
        ("RoutingPolicy", ["READY", "PHASE", "STABLE", "CANDIDATE", "SHARE", "STEP", "AGE"]),
    ],
)
def test_columns_of_kubectl_get(kind: str, columns: list[str]) -> None:
    printed = KINDS[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"].upper() + (" (wide)" if column.get("priority") else "") for column in printed]
    assert sorted(shown) == sorted(columns)
    assert [name for name in shown if "wide" not in name] == [name for name in columns if "wide" not in name]


def test_the_only_schema_default_is_a_status_that_nobody_has_written() -> None:
    defaults = {path: schema["default"] for path, schema in ALL_NODES if "default" in schema}
    assert defaults == {f"{kind}.status": {"observedGeneration": -1} for kind in KINDS}


@pytest.mark.parametrize(("path", "schema"), ALL_NODES, ids=[path for path, _ in ALL_NODES])
def test_every_list_map_and_string_has_a_bound(path: str, schema: dict[str, Any]) -> None:
    match schema.get("type"):
        case "array":
            assert "maxItems" in schema
            assert schema["x-kubernetes-list-type"] in ("map", "atomic")
        case "object":
            assert "maxProperties" in schema or "properties" in schema
        case "string":
            assert "maxLength" in schema or "enum" in schema or path.endswith((".apiVersion", ".kind"))


@pytest.mark.parametrize(
    ("path", "items"),
    [
        ("KnowledgeBase.spec.sources", 32),
        ("RetrievalPipeline.spec.knowledgeBases", 16),
        ("RetrievalPipeline.spec.nodes", 64),
        ("RoutingPolicy.spec.rollout.steps", 32),
        ("RoutingPolicy.spec.rules", 256),
        ("RoutingPolicy.spec.pins", 64),
    ],
)
def test_lists_have_the_bound_and_the_kind_that_users_rely_on(path: str, items: int) -> None:
    schema = dict(ALL_NODES)[path]
    named = path.startswith(("KnowledgeBase", "RetrievalPipeline"))
    assert schema["maxItems"] == items
    assert schema["x-kubernetes-list-type"] == ("map" if named else "atomic")
    assert schema.get("x-kubernetes-list-map-keys") == (["name"] if named else None)


def test_open_objects_keep_what_they_are_given() -> None:
    kept = [path for path, schema in ALL_NODES if schema.get("x-kubernetes-preserve-unknown-fields")]
    assert kept == [
        "KnowledgeBase.spec.build.tolerations[]",
        "RetrievalPipeline.spec.nodes[].with",
        "RetrievalPipeline.spec.runtime.pod",
    ]


def test_every_rule_has_a_message_of_one_line() -> None:
    rules = [each for _, schema in ALL_NODES for each in schema.get("x-kubernetes-validations", [])]
    assert rules
    assert all(each["message"] and "\n" not in each["message"] for each in rules)


# --- conversion ------------------------------------------------------------------------------------


def test_optional_members_are_plain_and_defaults_become_words() -> None:
    assert schema_of(Annotated[str, Field(max_length=9)] | None, default=None) == {"type": "string", "maxLength": 9}
    assert schema_of(bool, default=True) == {"type": "boolean", "description": "default: true"}
    assert schema_of(int, default=5, description="how many") == {
        "type": "integer",
        "description": "how many (default: 5)",
    }


def test_an_integer_or_string_is_marked_as_such() -> None:
    schema = schema_of(Quantity)
    assert schema["x-kubernetes-int-or-string"] is True
    assert {"minimum", "maxLength", "pattern"} <= schema.keys()
    assert "type" not in schema


def test_exclusive_bounds_become_flags() -> None:
    schema = schema_of(Annotated[float, Field(gt=0, lt=1)])
    assert schema == {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True}


def test_rules_of_a_field_join_those_of_its_model() -> None:
    class Choice(Part):
        """One of two."""

        model_config = ConfigDict(json_schema_extra=guarded(exactly_one("left", "right", of="where to go")))
        left: int | None = None
        right: int | None = None

    schema = schema_of(Choice, json_schema_extra=guarded(rule("self == oldSelf", "can't change")))
    assert [each["message"] for each in schema["x-kubernetes-validations"]] == [
        "set exactly one of left and right: it says where to go",
        "can't change",
    ]


@pytest.mark.parametrize(
    ("annotation", "field", "why"),
    [
        (tuple[int, str], {}, "a tuple has no structural form"),
        (int | list[int], {}, "a union has no structural form"),
        (dict[Annotated[str, Field(pattern="^a")], int], {"max_length": 4}, "constrained keys have no structural form"),
        (Any, {}, "has no type"),
        (list[int], {"json_schema_extra": map_list()}, "a list needs max_length"),
        (list[int], {"max_length": 4}, "map_list or an ordered_list"),
        (list[Any], {"max_length": 4, "json_schema_extra": ordered_list()}, "has no type"),
        (dict[str, int], {}, "a map needs max_length"),
        (dict[str, object], {}, "a map needs max_length"),
        (str, {}, "a string needs max_length"),
    ],
    ids=["tuple", "union", "keys", "any", "unbounded list", "list of no kind", "items", "map", "open map", "string"],
)
def test_what_the_api_server_could_not_take_is_refused_by_name(
    annotation: Any, field: dict[str, Any], why: str
) -> None:
    with pytest.raises(NotStructuralError, match=rf"^Custom\.spec\.member.*: .*{why}"):
        schema_of(annotation, **field)


def test_a_discriminated_union_is_refused() -> None:
    class Left(Part):
        """One."""

        kind: Annotated[str, Field(max_length=4)]

    with pytest.raises(NotStructuralError, match="a union has no structural form"):
        schema_of(Left | Quantity)
