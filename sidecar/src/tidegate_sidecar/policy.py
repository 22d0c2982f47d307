"""Which release answers a request. Pure: the same table, caller and facts give the same decision for ever.

Precedence: forced header > pin > rules in order > percentage > stable. A table is compiled once, so
that a decision looks only at rules which can match this caller: 256 rules and 10,000 pinned tenants
cost microseconds. Buckets are those of `tidegate_api.hashing`: a growing share moves nobody back, and
the release in the hash means that it isn't the same users who meet every candidate.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from tidegate_api.config import RoutingTable, RuleConfig
from tidegate_api.hashing import BUCKETS, BucketSeries
from tidegate_api.wire import HEADER_RELEASE, ErrorCode
from tidegate_sidecar.caller import SCOPE_FORCE, Caller
from tidegate_sidecar.errors import RequestError, shown

Arm = Literal["stable", "candidate", "pinned"]
Unit = Literal["user", "session", "request", "tenant", "query"]
Key = TypeVar("Key")

RULE_FORCED = "forced"
RULE_PIN = "pin"
RULE_PERCENTAGE = "percentage"
RULE_STABLE = "stable"
# Names go into response headers as they are.
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


class BrokenTableError(Exception):
    """A table that contradicts itself; obeying it would break requests."""


class Facts(NamedTuple):
    """What a decision may look at besides the caller. `headers` holds those that rules name, lower case."""

    request_id: str
    query: str
    session: str | None = None
    forced: str | None = None
    headers: Mapping[str, str] = {}


class Decision(NamedTuple):
    """Who answers and why. `bucket` is None where chance had no part."""

    release: str
    arm: Arm
    rule: str
    unit: Unit
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. An empty set matches everybody; `limit` is the number of buckets of `series` that it takes."""

    name: str
    tenants: frozenset[str]
    users: frozenset[str]
    headers: frozenset[tuple[str, str]]
    release: str
    limit: int
    series: BucketSeries


@dataclass(frozen=True, slots=True)
class TableIndex:
    """A routing table, compiled. Every rule stands in exactly one of the four places where it is looked up."""

    version: int
    unit: Unit
    stable: str
    candidate: str | None
    share: int
    share_series: BucketSeries
    releases: frozenset[str]
    pins: Mapping[str, str]
    rules: tuple[Rule, ...]
    by_tenant: Mapping[str, tuple[int, ...]]
    by_user: Mapping[str, tuple[int, ...]]
    by_header: Mapping[tuple[str, str], tuple[int, ...]]
    for_everybody: tuple[int, ...]
    header_names: tuple[str, ...]


# --- compiling -----------------------------------------------------------------------------------


def compile_table(table: RoutingTable) -> TableIndex:
    """Return the index of `table`. What names the role `candidate` while nobody has it decides nothing.

    Raises:
        BrokenTableError: stable or candidate is not among the releases, or a name or percentage is out of range.
    """
    releases = frozenset(release.name for release in table.releases)
    _check_table(table, releases)
    roles = {"stable": table.stable, "candidate": table.candidate}
    rules = tuple(
        _compile_rule(rule, release, table.salt)
        for rule in table.rules
        if (release := roles.get(rule.release, rule.release))
    )
    by_tenant: dict[str, list[int]] = {}
    by_user: dict[str, list[int]] = {}
    by_header: dict[tuple[str, str], list[int]] = {}
    for_everybody: list[int] = []
    for position, rule in enumerate(rules):
        if rule.tenants:
            _enter(by_tenant, rule.tenants, position)
        elif rule.users:
            _enter(by_user, rule.users, position)
        elif rule.headers:
            _enter(by_header, rule.headers, position)
        else:
            for_everybody.append(position)
    pins: dict[str, str] = {}
    for pin in table.pins:
        if release := roles.get(pin.release, pin.release):
            for tenant in pin.tenants:
                pins.setdefault(tenant, release)
    return TableIndex(
        version=table.version,
        unit=table.unit,
        stable=table.stable,
        candidate=table.candidate,
        share=_buckets(table.share),
        share_series=BucketSeries(table.salt, table.candidate or ""),
        releases=releases,
        pins=pins,
        rules=rules,
        by_tenant=_frozen(by_tenant),
        by_user=_frozen(by_user),
        by_header=_frozen(by_header),
        for_everybody=tuple(for_everybody),
        header_names=tuple(sorted({name for rule in rules for name, _ in rule.headers})),
    )


def _check_table(table: RoutingTable, releases: frozenset[str]) -> None:
    if table.stable not in releases:
        raise BrokenTableError(f"stable {shown(table.stable)} is not among the table's releases")
    if table.candidate is not None and table.candidate not in releases:
        raise BrokenTableError(f"candidate {shown(table.candidate)} is not among the table's releases")
    if not 0 <= table.share <= 100:
        raise BrokenTableError(f"share {table.share} is not a percentage")
    for rule in table.rules:
        if not 0 <= rule.percent <= 100:
            raise BrokenTableError(f"rule {shown(rule.name)}: percent {rule.percent} is not a percentage")
    for name in (*releases, *(rule.name for rule in table.rules)):
        if NAME.fullmatch(name) is None:
            raise BrokenTableError(f"{shown(name)} can't be the name of a release or rule")


def _compile_rule(rule: RuleConfig, release: str, salt: str) -> Rule:
    return Rule(
        name=rule.name,
        tenants=frozenset(rule.tenants),
        users=frozenset(_nfc(user) for user in rule.users),
        headers=frozenset((header.name.lower(), header.exact) for header in rule.headers),
        release=release,
        limit=_buckets(rule.percent),
        series=BucketSeries(salt, rule.name),
    )


def _buckets(percent: float) -> int:
    return round(percent * BUCKETS / 100)


def _enter(index: dict[Key, list[int]], keys: Iterable[Key], position: int) -> None:
    for key in keys:
        index.setdefault(key, []).append(position)


def _frozen(index: Mapping[Key, list[int]]) -> dict[Key, tuple[int, ...]]:
    return {key: tuple(positions) for key, positions in index.items()}


# --- deciding ------------------------------------------------------------------------------------


def decide(index: TableIndex, caller: Caller, facts: Facts) -> Decision:
    """Return which release answers.

    Raises:
        RequestError: forced without the scope, or what decides names a release that the table does not have.
    """
    kind, unit = unit_of(index.unit, caller, facts)
    if facts.forced is not None:
        return _forced(index, caller, facts.forced, kind)
    if caller.tenant is not None and caller.tenant in index.pins:
        release = _existing(index, index.pins[caller.tenant], RULE_PIN)
        return Decision(release, "pinned", RULE_PIN, kind)
    if index.rules:
        decision = _by_rule(index, caller, facts, kind, unit)
        if decision is not None:
            return decision
    if index.candidate is not None and index.share > 0:
        drawn = index.share_series.bucket(unit)
        if drawn < index.share:
            return Decision(index.candidate, "candidate", RULE_PERCENTAGE, kind, drawn)
        return Decision(index.stable, "stable", RULE_PERCENTAGE, kind, drawn)
    return Decision(index.stable, "stable", RULE_STABLE, kind)


def _forced(index: TableIndex, caller: Caller, name: str, kind: Unit) -> Decision:
    if SCOPE_FORCE not in caller.scopes:
        raise RequestError(
            ErrorCode.FORBIDDEN, f"header {HEADER_RELEASE} needs a key with scope `force`; leave it out or use one"
        )
    aliases = {"stable": index.stable, "candidate": index.candidate}
    release = _existing(index, aliases.get(name) or name, f"header {HEADER_RELEASE}")
    return Decision(release, _arm(index, release), RULE_FORCED, kind)


def _by_rule(index: TableIndex, caller: Caller, facts: Facts, kind: Unit, unit: str) -> Decision | None:
    user = None if caller.user is None else _nfc(caller.user)
    positions = [*index.for_everybody]
    if caller.tenant is not None:
        positions += index.by_tenant.get(caller.tenant, ())
    if user is not None:
        positions += index.by_user.get(user, ())
    for header in facts.headers.items():
        positions += index.by_header.get(header, ())
    for position in sorted(positions):
        rule = index.rules[position]
        if rule.tenants and caller.tenant not in rule.tenants:
            continue
        if rule.users and user not in rule.users:
            continue
        if rule.headers and rule.headers.isdisjoint(facts.headers.items()):
            continue
        drawn = None if rule.limit == BUCKETS else rule.series.bucket(unit)
        if drawn is None or drawn < rule.limit:
            release = _existing(index, rule.release, f"rule {rule.name}")
            return Decision(release, _arm(index, release), rule.name, kind, drawn)
    return None


def unit_of(named: Unit, caller: Caller, facts: Facts) -> tuple[Unit, str]:
    """Return what sticks: the unit that the table names where the request has one, else the next finer one."""
    if named == "query":
        return "query", facts.query
    if named == "tenant" and caller.tenant is not None:
        return "tenant", caller.tenant
    if named == "user" and caller.user is not None:
        return "user", caller.user
    if named in ("user", "session") and facts.session is not None:
        return "session", facts.session
    return "request", facts.request_id


def _existing(index: TableIndex, release: str, decided_by: str) -> str:
    if release in index.releases:
        return release
    message = f"{decided_by} names release {shown(release)}, which routing table {index.version} does not have"
    raise RequestError(ErrorCode.RELEASE_UNAVAILABLE, f"{message}; correct it or wait for that release")


def _arm(index: TableIndex, release: str) -> Arm:
    if release == index.stable:
        return "stable"
    return "candidate" if release == index.candidate else "pinned"


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
