"""Conditions: when the transition time moves, what is left out, in which order they stand."""

from datetime import UTC, datetime, timedelta, timezone

from tidegate_api.conditions import (
    ConditionType,
    Reason,
    Statement,
    find,
    is_true,
    merged,
    set_condition,
    timestamp,
)
from tidegate_api.v1alpha1 import Condition

THEN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
NOW = THEN + timedelta(hours=1)


def ready(status: str = "True", reason: str = Reason.IN_FORCE, message: str = "") -> Statement:
    return Statement(ConditionType.READY, status, reason, message)  # type: ignore[arg-type]


def test_a_first_statement_is_stamped() -> None:
    [condition] = merged([], [ready(message="serves rel-0123456789")], generation=3, now=NOW)
    assert condition == Condition(
        type="Ready",
        status="True",
        reason="InForce",
        message="serves rel-0123456789",
        last_transition_time="2026-11-29T13:00:00Z",
        observed_generation=3,
    )


def test_transition_time_moves_only_when_the_status_flips() -> None:
    before = merged([], [ready()], generation=1, now=THEN)
    [other_reason] = merged(before, [ready(reason=Reason.SERVING, message="new")], generation=2, now=NOW)
    [flipped] = merged(before, [ready("False", Reason.NO_READY_POD)], generation=2, now=NOW)
    assert (other_reason.last_transition_time, other_reason.observed_generation) == (timestamp(THEN), 2)
    assert other_reason.reason == "Serving"
    assert flipped.last_transition_time == timestamp(NOW)


def test_equal_statements_give_equal_conditions() -> None:
    before = merged([], [ready()], generation=1, now=THEN)
    assert merged(before, [ready()], generation=1, now=NOW) == before


def test_what_is_not_stated_any_more_is_gone() -> None:
    before = merged([], [ready(), Statement(ConditionType.DEGRADED, "True", "DocumentsFailed")], generation=1, now=THEN)
    assert [condition.type for condition in merged(before, [ready()], generation=1, now=NOW)] == ["Ready"]


def test_abnormal_conditions_stand_only_while_they_are_true() -> None:
    statements = [
        Statement(ConditionType.STALLED, "False", "Fine"),
        Statement(ConditionType.ACCEPTED, "False", Reason.INVALID_GRAPH),
    ]
    assert [condition.type for condition in merged([], statements, generation=1, now=NOW)] == ["Accepted"]


def test_the_summary_stands_first_whatever_the_order_of_statements() -> None:
    statements = [Statement(kind, "True", "Reason") for kind in reversed(ConditionType)]
    shown = [condition.type for condition in merged([], statements, generation=1, now=NOW)]
    assert shown == [str(kind) for kind in ConditionType]


def test_one_condition_is_set_and_the_others_stay() -> None:
    foreign = Condition(type="Zoned", status="True", reason="Elsewhere", last_transition_time=timestamp(THEN))
    before = [foreign, *merged([], [ready()], generation=1, now=THEN)]
    after = set_condition(before, Statement(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), generation=2, now=NOW)
    assert [condition.type for condition in after] == ["Ready", "Accepted", "Zoned"]
    assert after[0] == before[1]
    again = set_condition(after, Statement(ConditionType.ACCEPTED, "True", Reason.ACCEPTED), generation=2, now=THEN)
    assert again == after


def test_conditions_are_found_by_type() -> None:
    conditions = merged([], [ready("False", Reason.STARTING)], generation=1, now=NOW)
    assert find(conditions, ConditionType.READY) == conditions[0]
    assert find(conditions, ConditionType.STALLED) is None
    assert not is_true(conditions, ConditionType.READY)
    assert not is_true(conditions, ConditionType.STALLED)
    assert is_true(merged([], [ready()], generation=1, now=NOW), ConditionType.READY)


def test_a_message_is_cut_before_it_fills_the_status() -> None:
    [condition] = merged([], [ready(message="x" * 5000)], generation=1, now=NOW)
    assert len(condition.message) == 1024


def test_times_are_written_in_utc() -> None:
    assert timestamp(datetime(2026, 1, 1, 2, 0, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-01T00:00:00Z"


def test_reasons_are_legal_in_kubernetes() -> None:
    assert all(reason.isalpha() and reason[0].isupper() for reason in Reason)
