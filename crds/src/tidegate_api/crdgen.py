"""Writes the CustomResourceDefinitions from the models: `python -m tidegate_api.crdgen [--check] [--out DIR]`.

The API server takes *structural* schemas only, and pydantic emits something else: references,
`anyOf` with null, titles, defaults. This module turns one into the other and refuses what has no
structural form, and strings, lists and maps without a bound, naming the place: CEL rules are costed
by the bounds. Equal models give equal bytes. Defaults become words in the description (they are
filled in by code, never stored); the one schema default is the status that nobody has written yet.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tidegate_api.v1alpha1 import GROUP, KINDS, VERSION
from tidegate_api.v1alpha1.common import SUBDOMAIN_PATTERN, Definition, Resource

Document: TypeAlias = dict[str, Any]

HEADER = "# Generated from crds/src by `make generate`; do not edit.\n"
CATEGORY = "tidegate"
# Rules of a kind may look at nothing else of metadata, and at this only because it is declared.
METADATA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 253, "pattern": SUBDOMAIN_PATTERN}},
}
UNWRITTEN_STATUS = {"observedGeneration": -1}

_DROPPED = frozenset({"title", "discriminator", "default", "$ref", "anyOf", "const", "properties", "items"})
_REFUSED = {
    "prefixItems": "a tuple has no structural form: use an object with named members",
    "oneOf": "a union has no structural form: use one optional member per variant and a CEL rule",
    "allOf": "an intersection has no structural form: put the members into one model",
    "not": "a negation has no structural form: use a CEL rule",
    "patternProperties": "constrained keys have no structural form: use plain keys and a CEL rule",
    "propertyNames": "constrained keys have no structural form: use plain keys and a CEL rule",
}


class NotStructuralError(Exception):
    """A model that the API server could not take."""

    def __init__(self, path: str, why: str) -> None:
        """Say where in the model and why."""
        super().__init__(f"{path}: {why}")


def crd_documents() -> list[Document]:
    """Return one CustomResourceDefinition per kind."""
    return [_document(kind) for kind in KINDS]


def crd_files() -> dict[str, str]:
    """Return the text of every generated file by its name."""
    return {f"{document['spec']['names']['plural']}.yaml": _render(document) for document in crd_documents()}


def chart_files() -> dict[str, str]:
    """Return the chart's templates: the same documents behind `crds.create`, kept when the chart is removed."""
    files = {}
    for document in crd_documents():
        annotated = {
            **document,
            "metadata": {**document["metadata"], "annotations": {"helm.sh/resource-policy": "keep"}},
        }
        text = _render(annotated)
        if "{{" in text.removeprefix(HEADER):
            raise NotStructuralError(
                document["metadata"]["name"], "contains {{, which a chart would take for a template"
            )
        files[f"{document['spec']['names']['plural']}.yaml"] = "{{- if .Values.crds.create }}\n" + text + "{{- end }}\n"
    return files


def structural_schema(model: type[Resource]) -> Document:
    """Return the structural schema of a kind.

    Raises:
        NotStructuralError: a part of the model has no structural form or no bound.
    """
    emitted = model.model_json_schema(by_alias=True)
    definitions = emitted.pop("$defs", {})
    del emitted["properties"]["metadata"]
    schema = _Converter(definitions).convert(emitted, model.__name__)
    schema["properties"]["metadata"] = METADATA
    schema["properties"]["status"]["default"] = UNWRITTEN_STATUS
    schema["properties"]["apiVersion"] = {"type": "string"}
    schema["properties"]["kind"] = {"type": "string"}
    return schema


class _Converter:
    """Converts the nodes of one emitted schema; holds its definitions."""

    def __init__(self, definitions: Mapping[str, Document]) -> None:
        self._definitions = definitions

    def convert(self, emitted: Document, path: str) -> Document:
        """Return the structural form of one node."""
        node = self._resolved(emitted, path)
        for keyword, why in _REFUSED.items():
            if keyword in node:
                raise NotStructuralError(path, why)
        schema = {key: value for key, value in node.items() if key not in _DROPPED}
        if "const" in node:
            schema["enum"] = [node["const"]]
        if ".status" not in path:
            _describe_default(schema, node)
        _bools_of_exclusive_bounds(schema)
        match node.get("type"):
            case "object":
                self._convert_object(schema, node, path)
            case "array":
                if "items" not in node:
                    raise NotStructuralError(path, "a list needs a type of its items")
                schema["items"] = self.convert(node["items"], f"{path}[]")
            case None if "x-kubernetes-int-or-string" not in schema:
                raise NotStructuralError(path, "has no type")
        _refuse_unbounded(schema, path)
        return schema

    def _convert_object(self, schema: Document, node: Document, path: str) -> None:
        """Fill in members of an object, values of a map, or say that anything goes."""
        values = schema.pop("additionalProperties", None)
        if "properties" in node:
            schema["properties"] = {
                name: self.convert(member, f"{path}.{name}") for name, member in node["properties"].items()
            }
        elif isinstance(values, dict):
            schema["additionalProperties"] = self.convert(values, f"{path}[]")
        elif values is True:
            schema["x-kubernetes-preserve-unknown-fields"] = True

    def _resolved(self, emitted: Document, path: str) -> Document:
        """Follow references and unions until a node stands on its own; what stands outside wins."""
        node = emitted
        while "$ref" in node or "anyOf" in node:
            outer = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
            if "$ref" in node:
                inner = self._definitions[node["$ref"].removeprefix("#/$defs/")]
            else:
                inner = self._union(node["anyOf"], path)
            rules = "x-kubernetes-validations"
            both = {rules: [*inner[rules], *outer[rules]]} if rules in inner and rules in outer else {}
            node = {**inner, **outer, **both}
        return node

    def _union(self, variants: list[Document], path: str) -> Document:
        """Return the one form of a union that Kubernetes knows: optional, or int-or-string."""
        real = [variant for variant in variants if variant.get("type") != "null"]
        if len(real) == 1:
            return real[0]
        if sorted(str(variant.get("type")) for variant in real) == ["integer", "string"]:
            merged = {key: value for variant in real for key, value in variant.items() if key != "type"}
            return {**merged, "x-kubernetes-int-or-string": True}
        raise NotStructuralError(
            path, "a union has no structural form: use one optional member per variant and a CEL rule"
        )


def _describe_default(schema: Document, node: Document) -> None:
    default = node.get("default")
    if default in (None, "", {}, []):
        return
    text = yaml.safe_dump(default, default_flow_style=True, width=1000).removesuffix("\n").removesuffix("\n...")
    described = schema.get("description")
    schema["description"] = f"{described} (default: {text})" if described else f"default: {text}"


def _bools_of_exclusive_bounds(schema: Document) -> None:
    for bound in ("Minimum", "Maximum"):
        if f"exclusive{bound}" in schema:
            schema[bound.lower()] = schema[f"exclusive{bound}"]
            schema[f"exclusive{bound}"] = True


def _refuse_unbounded(schema: Document, path: str) -> None:
    kind = schema.get("type")
    if kind == "string" and "maxLength" not in schema and "enum" not in schema and path.count(".") > 1:
        raise NotStructuralError(path, "a string needs max_length: rules are costed by it")
    if kind == "array" and "maxItems" not in schema:
        raise NotStructuralError(path, "a list needs max_length: rules are costed by it")
    if kind == "array" and "x-kubernetes-list-type" not in schema:
        raise NotStructuralError(path, "a list must say whether it is a map_list or an ordered_list")
    is_map = "additionalProperties" in schema or "x-kubernetes-preserve-unknown-fields" in schema
    if is_map and "maxProperties" not in schema:
        raise NotStructuralError(path, "a map needs max_length: rules are costed by it")


def _document(model: type[Resource]) -> Document:
    definition = model.definition
    version: Document = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural_schema(model)},
        "subresources": _subresources(definition),
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.json_path}
            | ({"priority": column.priority} if column.priority else {})
            for column in definition.columns
        ],
    }
    if definition.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable_fields]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{definition.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "tidegate"},
        },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.singular,
                "shortNames": [definition.short_name],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _subresources(definition: Definition) -> Document:
    subresources: Document = {"status": {}}
    if definition.scale:
        subresources["scale"] = {
            "specReplicasPath": definition.scale.replicas_path,
            "statusReplicasPath": definition.scale.status_path,
            "labelSelectorPath": definition.scale.selector_path,
        }
    return subresources


class _PlainDumper(yaml.SafeDumper):
    """Writes every value out: no anchors, so that a part stands where it is read."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        """Repeat instead of referring."""
        return True


def _render(document: Document) -> str:
    return HEADER + yaml.dump(document, Dumper=_PlainDumper, sort_keys=True, width=120, allow_unicode=True)


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with `--check` return 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tidegate_api.crdgen", description="Write the CRDs.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail when a file is stale")
    parser.add_argument("--out", type=Path, default=Path("crds"), metavar="DIR")
    options = parser.parse_args(arguments)
    stale = 0
    for name, text in crd_files().items():
        path: Path = options.out / name
        if path.is_file() and path.read_text() == text:
            continue
        stale += 1
        if options.check:
            sys.stderr.write(f"{path} is stale: run `make generate` and commit the result\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
