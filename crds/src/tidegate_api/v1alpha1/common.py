"""Field types and members that the three kinds share.

Bounds, patterns and CEL rules stand beside the field they guard and nowhere else: the generated
schema carries them to the API server, `tidegate_api.cel` evaluates the same schema offline, and the
models only parse. Defaults live here, in code: a schema default would be stored in every object and
show up as a difference after an upgrade that changes it. Durations and quantities are Kubernetes'
own notations, so equal values in different spellings are compared by their parsed value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from tidegate_api.model import Model

GROUP = "tidegate.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

# --- what the generator reads beside a model -----------------------------------------------------

Schema = dict[str, Any]


def rule(expression: str, message: str, *, reason: str = "FieldValueInvalid", field_path: str = "") -> Schema:
    """Return one CEL rule. `message` says what is allowed and what to do next; the path stands before it.

    `field_path` names the member to blame, where that isn't the whole of `self`.
    """
    blamed = {"fieldPath": field_path} if field_path else {}
    return {"rule": expression, "message": message, "reason": reason, **blamed}


def guarded(*rules: Schema, **schema: object) -> Schema:
    """Return schema members that carry CEL rules, for `json_schema_extra` of a model or a field."""
    return {"x-kubernetes-validations": list(rules), **schema}


def map_list(key: str = "name") -> Schema:
    """Mark a list whose items are identified by `key`: appliers merge it, the API server refuses a key given twice."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def ordered_list(*rules: Schema) -> Schema:
    """Mark a list whose order is its meaning: it has one owner and is replaced whole."""
    extra: Schema = {"x-kubernetes-list-type": "atomic"}
    return {**extra, **guarded(*rules)} if rules else extra


def exactly_one(*members: str, of: str) -> Schema:
    """Return the rule that exactly one of `members` is set."""
    tests = ", ".join(f"has(self.{member})" for member in members)
    listed = f"{', '.join(members[:-1])} and {members[-1]}" if len(members) > 1 else members[0]
    message = f"set exactly one of {listed}" if len(members) > 1 else f"set {listed}"
    return rule(f"[{tests}].filter(x, x).size() == 1", f"{message}: it says {of}")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; priority 1 is shown by `-o wide` only."""

    name: str
    type: Literal["string", "integer", "date"]
    json_path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the scale subresource."""

    replicas_path: str
    status_path: str
    selector_path: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What a CustomResourceDefinition says about a kind apart from its schema."""

    kind: str
    plural: str
    singular: str
    short_name: str
    columns: tuple[Column, ...]
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()


READY_COLUMN = Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status')
AGE_COLUMN = Column("Age", "date", ".metadata.creationTimestamp")

# --- scalars -------------------------------------------------------------------------------------

DURATION_PATTERN = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
QUANTITY_PATTERN = r"^[0-9]{1,15}([.][0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
RELEASE_PATTERN = r"^(stable|candidate|rel-[0-9a-f]{10})$"
HEADER_NAME_PATTERN = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
VERSION_PATTERN = r"^[A-Za-z0-9_.-]*$"
OPTIONAL_SUBDOMAIN_PATTERN = f"^$|{SUBDOMAIN_PATTERN}"

_SUBDOMAIN_HINT = "use lower-case letters, digits, - and ., beginning and ending with a letter or digit"
# What to write instead, for messages of the offline check.
PATTERN_HINTS = {
    DURATION_PATTERN: "write a duration such as 30s, 15m or 1h30m",
    QUANTITY_PATTERN: "write a quantity such as 8Ki, 512Mi or 2",
    LABEL_PATTERN: "use lower-case letters, digits and -, beginning and ending with a letter or digit",
    SUBDOMAIN_PATTERN: _SUBDOMAIN_HINT,
    OPTIONAL_SUBDOMAIN_PATTERN: _SUBDOMAIN_HINT,
    RELEASE_PATTERN: "write stable, candidate or the name of a release such as rel-0123456789",
    HEADER_NAME_PATTERN: "write the name of a header, such as x-beta",
    VERSION_PATTERN: "write a version such as 0.1.0, or leave it empty",
}

Duration = Annotated[str, Field(pattern=DURATION_PATTERN, max_length=32)]
Quantity = Annotated[int, Field(ge=0)] | Annotated[str, Field(pattern=QUANTITY_PATTERN, max_length=32)]
# A name inside a list: source, node, rule, step.
PartName = Annotated[str, Field(pattern=LABEL_PATTERN, max_length=63)]
# Name of an object of ours whose children are named after it.
ParentName = Annotated[str, Field(pattern=LABEL_PATTERN, max_length=40)]
# Name of any other object of the namespace.
ObjectName = Annotated[str, Field(pattern=SUBDOMAIN_PATTERN, max_length=253)]
# What identifies a tenant or a user; anything printable.
Identity = Annotated[str, Field(min_length=1, max_length=256)]
ReleaseSelector = Annotated[str, Field(pattern=RELEASE_PATTERN, max_length=14)]
# The same, where an empty string means that none is named.
OptionalObjectName = Annotated[str, Field(pattern=OPTIONAL_SUBDOMAIN_PATTERN, max_length=253)]
OpenObject = Annotated[dict[str, object], Field(max_length=64)]
Name = Annotated[str, Field(max_length=253)]
Text = Annotated[str, Field(max_length=1024)]
Timestamp = Annotated[str, Field(max_length=40)]
ReadyPolicy = Literal["Serving", "InForce", "Completed"]

RelativePath = Annotated[
    str,
    Field(
        max_length=512,
        json_schema_extra=guarded(
            rule(
                "!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",
                "must stay inside the volume: write it relative to the volume's root, without a leading / and without ..",
            )
        ),
    ),
]

_DURATION_PARTS = re.compile(r"([0-9]+)(h|ms|m|s)")
_DURATION_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
# Wider than the pattern above: live objects of the API server are compared by it too.
_QUANTITY_PARTS = re.compile(r"([0-9]+(?:[.][0-9]*)?)(n|u|m|[kMGTPE]|[KMGTPE]i|[eE][0-9]{1,2}|)")
_QUANTITY_UNITS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def duration_seconds(duration: str) -> float:
    """Return the length of a duration such as `1m30s`, which the schema has checked already."""
    parts = _DURATION_PARTS.findall(duration)
    return sum(int(count) * _DURATION_UNITS_MS[unit] for count, unit in parts) / 1000


def quantity_value(quantity: int | str) -> Decimal:
    """Return the value of a quantity such as `8Ki`.

    Raises:
        ValueError: it is none.
    """
    found = _QUANTITY_PARTS.fullmatch(str(quantity))
    if found is None:
        raise ValueError(f"{quantity!r} is not a quantity such as 512Mi")
    number, unit = found.groups()
    return Decimal(number) * (_QUANTITY_UNITS[unit] if unit in _QUANTITY_UNITS else Decimal(f"1{unit}"))


# --- members -------------------------------------------------------------------------------------


class Part(Model):
    """Base of everything in a resource. A member that is null counts as absent, as the API server has it."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return {key: member for key, member in value.items() if member is not None}
        return value


class ObjectMeta(Part):
    """The metadata that anything here looks at."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: list[str] = Field(default_factory=list)


class Resource(Part):
    """Base of the kinds. `definition` says what their CustomResourceDefinition holds beside the schema."""

    definition: ClassVar[Definition]

    api_version: str = API_VERSION
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)


# Children are named after these objects, so their names leave room for suffixes and never look like a child.
PARENT_NAME_RULES = (
    rule(
        "self.metadata.name.size() <= 40",
        "must have at most 40 characters, because names of other objects are made from it: choose a shorter name",
        field_path=".metadata.name",
    ),
    rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "must be lower-case letters, digits and -, begin with a letter and end with a letter or digit, "
        "because a Service carries it: choose another name",
        field_path=".metadata.name",
    ),
    rule(
        "!self.metadata.name.matches('-(indexer|routing|override)$|-rel-')",
        "must not end in -indexer, -routing or -override nor contain -rel-, because objects made by Tidegate do: "
        "choose another name",
        field_path=".metadata.name",
    ),
)


class ObjectRef(Part):
    """A ConfigMap, Secret or claim in the same namespace."""

    name: ObjectName


class ParentRef(Part):
    """A KnowledgeBase or RetrievalPipeline in the same namespace."""

    name: ParentName


class Empty(Part):
    """A choice that has no settings yet."""


class Resources(Part):
    """Compute resources, as in a container."""

    limits: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    requests: Annotated[dict[str, Quantity], Field(max_length=16)] = Field(default_factory=dict)


NodeSelector = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)]
Tolerations = Annotated[list[OpenObject], Field(max_length=32, json_schema_extra=ordered_list())]


class Condition(Part):
    """One condition, shaped as `metav1.Condition`."""

    type: Annotated[str, Field(max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(max_length=1024)]
    message: Annotated[str, Field(max_length=32768)] = ""
    last_transition_time: Timestamp
    observed_generation: int = 0


Conditions = Annotated[list[Condition], Field(max_length=32, json_schema_extra=map_list("type"))]


class RequestOutcome(Part):
    """What became of a request made by annotation. Each id is carried out once."""

    id: Annotated[str, Field(max_length=128)]
    verb: Annotated[str, Field(max_length=32)]
    to: Name = ""
    by: Text = ""
    result: Annotated[str, Field(max_length=32)] = Field(description="done or refused")
    message: Text = ""
    at: Timestamp


Requests = Annotated[list[RequestOutcome], Field(max_length=10, json_schema_extra=ordered_list())]


class HistoryEntry(Part):
    """A release that served, and how it came to stop."""

    release: Name
    from_: Timestamp = Field(alias="from")
    until: Timestamp | None = None
    how: Annotated[str, Field(max_length=32)] = Field(default="", description="promoted, rolledBack, aborted or pinned")
    by: Text = ""
    reason: Text = ""


History = Annotated[list[HistoryEntry], Field(max_length=20, json_schema_extra=ordered_list())]


class StepStatus(Part):
    """The step that a rollout stands at."""

    name: Name
    since: Timestamp
    share: float = Field(default=0, description="percent of units that the candidate serves")


class RoutingStatus(Part):
    """Which routing table is written and which pods obey it."""

    version: int = 0
    hash: Annotated[str, Field(max_length=64)] = ""
    applied_pods: int = 0
    total_pods: int = 0
    pending: Annotated[list[Name], Field(max_length=10, json_schema_extra=ordered_list())] = Field(
        default_factory=list, description="pods that have not acknowledged this version, at most 10 named"
    )
    summary: Annotated[str, Field(max_length=32)] = Field(default="", description="such as 3/3")


class Status(Part):
    """Members that every kind's status has."""

    observed_generation: int = Field(default=-1, description="generation that this status speaks of")
    conditions: Conditions = Field(default_factory=list)
