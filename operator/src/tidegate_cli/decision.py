"""Why a request goes to a release: a routing table's decision made again, with every way that was passed over.

The decision itself is `tidegate_sidecar.policy.decide`, the very code that pods run, so a replay from
the same table and the same facts cannot tell another story than what happened. Pure: no cluster.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml
from pydantic import ValidationError

from tidegate_api.config import TABLE_KEY, RoutingTable, RuleConfig
from tidegate_api.hashing import BUCKETS
from tidegate_api.wire import HEADER_RELEASE
from tidegate_sidecar.caller import SCOPE_FORCE, SCOPE_QUERY, Caller
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.policy import (
    RULE_PERCENTAGE,
    BrokenTableError,
    Decision,
    Facts,
    Rule,
    TableIndex,
    compile_table,
    decide,
    unit_of,
)

NAMED_MAX = 3


class TableError(Exception):
    """There is no routing table that could be replayed; the text says what was found."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is known of a request: who asked, and what a rule may look at. `release` is one that was forced."""

    query: str = ""
    tenant: str = ""
    user: str = ""
    session: str = ""
    release: str = ""
    request_id: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A way to decide that was looked at before, and why it did not decide."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A decision and its reasons. `refusal` is the message that the caller would get instead of an answer."""

    table: int
    release: str
    arm: str
    rule: str
    unit: str
    unit_value: str
    bucket: int | None
    takes: str
    refusal: str
    passed_over: tuple[PassedOver, ...]


def read_table(text: str) -> RoutingTable:
    """Return the routing table in `text`: the document itself, or the ConfigMap that holds it, as JSON or YAML.

    Raises:
        TableError: it holds none.
    """
    document = _parsed(text)
    if document.get("kind") == "ConfigMap":
        data = document.get("data")
        held = data.get(TABLE_KEY) if isinstance(data, dict) else None
        if not held:
            raise TableError(f"the ConfigMap holds no {TABLE_KEY}: no release has been made yet")
        document = _parsed(str(held))
    try:
        return RoutingTable.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise TableError(f"not a routing table: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _parsed(text: str) -> dict[str, object]:
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise TableError(f"the table is neither JSON nor YAML: {error}") from None
    if not isinstance(document, dict):
        raise TableError("the table is not an object; give the ConfigMap <pipeline>-routing, or its routing.json")
    return document


def replay(table: RoutingTable, request: Request) -> Replay:
    """Return how `table` decides on `request`. A forced release is taken to come with a key of scope `force`.

    Raises:
        TableError: the table contradicts itself; no pod obeys it.
    """
    try:
        index = compile_table(table)
    except BrokenTableError as error:
        raise TableError(f"no pod obeys this table: {error}") from None
    caller = Caller(
        tenant=request.tenant or None,
        user=request.user or None,
        session=request.session or None,
        scopes=frozenset({SCOPE_QUERY, SCOPE_FORCE}),
    )
    facts = Facts(
        request_id=request.request_id,
        query=request.query,
        session=request.session or None,
        forced=request.release or None,
        headers={name.lower(): value for name, value in request.headers.items() if name.lower() in index.header_names},
    )
    unit, unit_value = unit_of(index.unit, caller, facts)
    decision, refusal = None, ""
    try:
        decision = decide(index, caller, facts)
    except RequestError as error:
        refusal = error.message
    return Replay(
        table=index.version,
        release=decision.release if decision else "",
        arm=decision.arm if decision else "",
        rule=decision.rule if decision else "",
        unit=unit,
        unit_value=unit_value,
        bucket=decision.bucket if decision else None,
        takes=_takes(index, decision) if decision else "",
        refusal=refusal,
        passed_over=tuple(_passed_over(table, index, caller, facts)),
    )


def _takes(index: TableIndex, decision: Decision) -> str:
    """Return which buckets the candidate, or the rule that decided, takes; empty where chance had no part."""
    if decision.bucket is None:
        return ""
    if decision.rule == RULE_PERCENTAGE:
        return _range(index.share)
    return _range(next(rule.limit for rule in index.rules if rule.name == decision.rule))


def _range(limit: int) -> str:
    return f"0-{limit - 1} ({limit * 100 / BUCKETS:g} %)" if limit else "none (0 %)"


def _passed_over(table: RoutingTable, index: TableIndex, caller: Caller, facts: Facts) -> Iterator[PassedOver]:
    """Yield what was looked at in vain, in the order of precedence, up to what decides."""
    if facts.forced is not None:
        return
    yield PassedOver("forced release", f"no {HEADER_RELEASE} was sent")
    if caller.tenant is not None and caller.tenant in index.pins:
        return
    yield PassedOver("pins", _why_not_pinned(index, caller))
    compiled = {rule.name: rule for rule in index.rules}
    for rule in table.rules:
        why = _why_not(rule, compiled.get(rule.name), index, caller, facts)
        if not why:
            return
        yield PassedOver(f"rule {rule.name}", why)
    if index.candidate is None:
        yield PassedOver(RULE_PERCENTAGE, "there is no candidate")
    elif index.share == 0:
        yield PassedOver(RULE_PERCENTAGE, f"candidate {index.candidate} has no share yet")


def _why_not_pinned(index: TableIndex, caller: Caller) -> str:
    if not index.pins:
        return "the table has none"
    return f"tenant {caller.tenant} is not pinned" if caller.tenant else "the caller has no tenant"


def _why_not(rule: RuleConfig, compiled: Rule | None, index: TableIndex, caller: Caller, facts: Facts) -> str:
    """Return why a rule does not decide; empty = it does."""
    if compiled is None:
        return f"it names {rule.release}, and nothing has that role now"
    if compiled.tenants and caller.tenant not in compiled.tenants:
        return _not_among("tenant", caller.tenant, rule.tenants)
    user = None if caller.user is None else unicodedata.normalize("NFC", caller.user)
    if compiled.users and user not in compiled.users:
        return _not_among("user", caller.user, rule.users)
    if compiled.headers and compiled.headers.isdisjoint(facts.headers.items()):
        wanted = [f"{header.name}: {header.exact}" for header in rule.headers]
        return f"no header is {_listed(wanted)}"
    drawn = compiled.series.bucket(unit_of(index.unit, caller, facts)[1])
    if drawn < compiled.limit:
        return ""
    return f"bucket {drawn} is not among those it takes: {_range(compiled.limit)}"


def _not_among(what: str, value: str | None, wanted: Iterable[str]) -> str:
    said = f"{what} {value} is" if value is not None else f"the caller has no {what}; it is"
    return f"{said} not among {_listed(list(wanted))}" if value is not None else f"{said} for {_listed(list(wanted))}"


def _listed(values: list[str]) -> str:
    more = f" and {len(values) - NAMED_MAX} more" if len(values) > NAMED_MAX else ""
    return f"{', '.join(values[:NAMED_MAX])}{more}"
