"""RoutingPolicy: who is served by which release, and how a new one gains traffic.

Order is the meaning of pins, rules and steps, so these lists are replaced whole and their names are
kept unique by CEL. What decides where a user lands (pipeline, salt) can't change under a rollout.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from tidegate_api.v1alpha1.common import (
    AGE_COLUMN,
    HEADER_NAME_PATTERN,
    READY_COLUMN,
    Column,
    Definition,
    Duration,
    Empty,
    History,
    Identity,
    Name,
    ParentRef,
    Part,
    PartName,
    ReadyPolicy,
    ReleaseSelector,
    RequestOutcome,
    Requests,
    Resource,
    RoutingStatus,
    Status,
    StepStatus,
    exactly_one,
    guarded,
    ordered_list,
    rule,
)

UNIQUE_NAMES = rule(
    "self.all(x, self.exists_one(y, y.name == x.name))",
    "every name must be given once: rename one of the two",
)

Identities = Annotated[list[Identity], Field(min_length=1, max_length=256, json_schema_extra=ordered_list())]
Percent = Annotated[float, Field(ge=0, le=100)]


class Pin(Part):
    """Tenants that are always served by one release."""

    tenants: Identities
    release: ReleaseSelector


class HeaderExact(Part):
    """A request header and the value it must have."""

    name: Annotated[str, Field(pattern=HEADER_NAME_PATTERN, max_length=128)]
    exact: Annotated[str, Field(max_length=256)]


class Match(Part):
    """Every member that is set must match; any value of a member will do."""

    model_config = ConfigDict(
        json_schema_extra=guarded(
            rule(
                "has(self.tenants) || has(self.users) || has(self.headers)",
                "set at least one of tenants, users and headers: for everybody use rollout.steps instead",
            )
        )
    )

    tenants: Identities | None = None
    users: Identities | None = None
    headers: (
        Annotated[list[HeaderExact], Field(min_length=1, max_length=16, json_schema_extra=ordered_list())] | None
    ) = None


class Rule(Part):
    """The first rule that matches decides, before the percentage."""

    name: PartName
    match: Match
    serve: ReleaseSelector
    percent: Percent = Field(default=100, description="share of the matching units that it binds")
    from_: PartName | None = Field(default=None, alias="from", description="step at which the rule begins to bind")


class Step(Part):
    """One step of a rollout."""

    model_config = ConfigDict(json_schema_extra=guarded(exactly_one("percent", "pause", of="what the step does")))

    name: PartName
    percent: Percent | None = Field(default=None, description="share of units that the candidate serves")
    pause: Empty | None = Field(default=None, description="{} = wait until a person promotes")


class Rollout(Part):
    """How a candidate gains traffic. No steps = it serves as soon as it is warm."""

    steps: Annotated[list[Step], Field(max_length=32, json_schema_extra=ordered_list(UNIQUE_NAMES))] = Field(
        default_factory=list
    )


class RollbackWindow(Part):
    """What is kept warm after a promotion. Both bounds hold."""

    releases: Annotated[int, Field(ge=0, le=1)] = 1
    duration: Duration = "2h"
    replicas: Literal["full"] = "full"


class RoutingPolicySpec(Part):
    """What a user asks for."""

    model_config = ConfigDict(
        json_schema_extra=guarded(
            rule(
                "!has(oldSelf.salt) || oldSelf.salt == '' || (has(self.salt) && self.salt == oldSelf.salt)",
                "can't change once it is set, because every user would be dealt again: put the earlier value back",
                reason="FieldValueForbidden",
                field_path=".salt",
            ),
            rule(
                "!has(self.rules) || self.rules.all(r, !has(r.from) || (has(self.rollout) && has(self.rollout.steps) "
                "&& self.rollout.steps.exists(s, s.name == r.from)))",
                "every `from` must be the name of a step in rollout.steps: correct it, or leave it out",
                field_path=".rules",
            ),
        )
    )

    pipeline: Annotated[
        ParentRef,
        Field(
            json_schema_extra=guarded(
                rule(
                    "self == oldSelf",
                    "can't change: delete this RoutingPolicy and make another one for the other pipeline",
                    reason="FieldValueForbidden",
                )
            )
        ),
    ]
    unit: Literal["user", "session", "request", "tenant", "query"] = Field(
        default="user", description="what stays with one release; user falls back to session, then request"
    )
    salt: Annotated[str, Field(max_length=128)] = Field(default="", description="empty = namespace/pipeline")
    pins: Annotated[list[Pin], Field(max_length=64, json_schema_extra=ordered_list())] = Field(default_factory=list)
    rules: Annotated[list[Rule], Field(max_length=256, json_schema_extra=ordered_list(UNIQUE_NAMES))] = Field(
        default_factory=list
    )
    rollout: Rollout = Field(default_factory=Rollout)
    rollback_window: RollbackWindow = Field(default_factory=RollbackWindow)
    ready_policy: ReadyPolicy = "InForce"


class RoutingPolicyStatus(Status):
    """What is true; mirrors the pipeline's rollout."""

    stable: Name = ""
    candidate: Name = ""
    phase: Annotated[str, Field(max_length=32)] = Field(
        default="",
        description="Idle, Preparing, Progressing, Paused, Promoting, RollingBack, Failed or Suspended",
    )
    step: StepStatus | None = None
    share: Annotated[str, Field(max_length=16)] = Field(default="", description="such as 5%")
    step_name: Name = ""
    history: History = Field(default_factory=list)
    routing: RoutingStatus = Field(default_factory=RoutingStatus)
    requests: Requests = Field(default_factory=list, description="last 10")
    last_request: RequestOutcome | None = None


class RoutingPolicy(Resource):
    """Decides who is served by which release of a pipeline."""

    definition: ClassVar[Definition] = Definition(
        kind="RoutingPolicy",
        plural="routingpolicies",
        singular="routingpolicy",
        short_name="rpol",
        columns=(
            READY_COLUMN,
            Column("Phase", "string", ".status.phase"),
            Column("Stable", "string", ".status.stable"),
            Column("Candidate", "string", ".status.candidate"),
            Column("Share", "string", ".status.share"),
            Column("Step", "string", ".status.stepName"),
            AGE_COLUMN,
        ),
        selectable_fields=(".spec.pipeline.name",),
    )

    kind: str = "RoutingPolicy"
    spec: RoutingPolicySpec
    status: RoutingPolicyStatus = Field(default_factory=RoutingPolicyStatus)
