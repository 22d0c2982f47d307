"""The rollout: which release serves and which one comes next, one transition at a time, on data only."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from tidegate_api.config import IndexRef, NodeConfig, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.v1alpha1.common import Empty
from tidegate_api.v1alpha1.retrievalpipeline import RolloutStatus
from tidegate_api.v1alpha1.routingpolicy import Step
from tidegate_operator.core.plan import Note
from tidegate_operator.core.requests import Request
from tidegate_operator.core.rollout import Phase, RolloutFacts, advance, in_window, rollback_target
from tidegate_operator.core.rollout_requests import answer

START = datetime(2026, 1, 1, tzinfo=UTC)


def release(top_k: int = 50, **indexes: str) -> ReleaseConfig:
    pipeline = PipelineConfig(
        knowledge_bases=sorted(indexes or {"docs": ""}),
        nodes=[NodeConfig(name="lexical", type="bm25", settings={"topK": top_k})],
        output="lexical",
    )
    listed = [
        IndexRef(knowledge_base=name, revision=revision) for name, revision in (indexes or {"docs": "docs-1"}).items()
    ]
    return ReleaseConfig.make(pipeline=pipeline, indexes=listed, versions=Versions(runtime="1", sidecar="1"))


R1, R2, R3 = release(docs="docs-1"), release(docs="docs-2"), release(docs="docs-3")
P2 = release(20, docs="docs-1")  # another pipeline revision over the first index
P2R2 = release(20, docs="docs-2")
ALL = {each.name: each for each in (R1, R2, R3, P2, P2R2)}
FIVE_THEN_PAUSE = (Step(name="five", percent=5), Step(name="look", pause=Empty()), Step(name="all", percent=100))


@dataclass
class Rollout:
    """Drives the state as the operator does: until nothing moves."""

    state: RolloutStatus = field(default_factory=RolloutStatus)
    facts: RolloutFacts = field(default_factory=lambda: RolloutFacts(desired="", releases=ALL))
    now: datetime = START
    notes: list[Note] = field(default_factory=list)

    def ask(self, desired: ReleaseConfig, **facts: object) -> "Rollout":
        self.facts = replace(self.facts, desired=desired.name, **facts)  # type: ignore[arg-type]
        return self.settle()

    def see(self, **facts: object) -> "Rollout":
        self.facts = replace(self.facts, **facts)  # type: ignore[arg-type]
        return self.settle()

    def settle(self) -> "Rollout":
        for _ in range(50):
            moved = advance(self.state, self.facts, self.now)
            self.notes += moved.notes
            if moved.state == self.state:
                return self
            self.state = moved.state
        raise AssertionError(f"the rollout never rests: {self.state}")

    def request(self, verb: str, to: str = "") -> str:
        answered = answer(Request(id="1", verb=verb, to=to, by="ann"), self.state, self.facts, self.now)
        self.state = answered.state
        self.notes += answered.notes
        self.settle()
        return answered.outcome.result

    def warm(self, *releases: ReleaseConfig) -> "Rollout":
        return self.see(warm=frozenset(each.name for each in releases))

    @property
    def place(self) -> tuple[str, str, str]:
        return self.state.stable, self.state.candidate, self.state.phase


def serving(first: ReleaseConfig = R1, **facts: object) -> Rollout:
    return Rollout().ask(first).warm(first).see(**facts)


def test_the_first_release_serves_only_when_it_is_warm() -> None:
    rollout = Rollout().ask(R1)
    assert rollout.place == ("", R1.name, Phase.PREPARING)

    rollout.warm(R1)
    assert rollout.place == (R1.name, "", Phase.IDLE)
    assert [entry.release for entry in rollout.state.history] == [R1.name]


def test_without_a_policy_a_new_release_serves_as_soon_as_it_is_warm() -> None:
    rollout = serving().ask(R2)
    assert rollout.place == (R1.name, R2.name, Phase.PREPARING)

    rollout.warm(R1, R2)
    assert rollout.place == (R2.name, "", Phase.IDLE)
    assert [(entry.release, entry.how) for entry in rollout.state.history] == [(R2.name, ""), (R1.name, "promoted")]


def test_nothing_new_begins_where_a_policy_is_required_and_missing() -> None:
    assert serving().ask(R2, may_start=False).place == (R1.name, "", Phase.IDLE)


def test_a_newer_wish_replaces_a_candidate_nobody_was_sent_to() -> None:
    assert serving().ask(R2).ask(R3).place == (R1.name, R3.name, Phase.PREPARING)


def test_asking_for_stable_again_is_a_clean_cancel() -> None:
    rollout = serving().ask(R2).ask(R1)

    assert rollout.place == (R1.name, "", Phase.IDLE)
    assert rollout.state.rejected == []


def stepped() -> Rollout:
    return serving(has_policy=True, steps=FIVE_THEN_PAUSE).ask(R2)


def test_steps_follow_each_other_when_pods_acknowledge_and_pause_for_a_person() -> None:
    rollout = stepped().warm(R1, R2)
    assert rollout.state.step is not None
    assert (rollout.state.step.name, rollout.state.step.share, rollout.state.phase) == ("five", 5, Phase.PROGRESSING)

    rollout.see(acknowledged=True)
    assert (rollout.state.step.name, rollout.state.step.share, rollout.state.phase) == ("look", 5, Phase.PAUSED)

    assert rollout.see(acknowledged=False).request("promote") == "done"
    assert rollout.state.step is not None
    assert (rollout.state.step.name, rollout.state.step.share) == ("all", 100)
    assert rollout.see(acknowledged=True).place == (R2.name, "", Phase.IDLE)


def test_a_candidate_that_is_not_warm_gets_nobody() -> None:
    assert stepped().see(acknowledged=True).place == (R1.name, R2.name, Phase.PREPARING)


def test_exposure_only_grows() -> None:
    shrinking = (Step(name="many", percent=50), Step(name="few", percent=10))
    rollout = serving(has_policy=True, steps=shrinking).ask(R2).warm(R1, R2)
    rollout.state = advance(rollout.state, replace(rollout.facts, acknowledged=True), START).state

    assert rollout.state.step is not None
    assert (rollout.state.step.name, rollout.state.step.share) == ("few", 50)


def test_a_removed_step_pauses_and_promote_goes_on_with_the_next_larger_share() -> None:
    rollout = stepped().warm(R1, R2)
    rollout.see(steps=(Step(name="three", percent=3), Step(name="half", percent=50)))
    assert rollout.state.phase == Phase.PAUSED

    rollout.request("promote")
    assert rollout.state.step is not None
    assert (rollout.state.step.name, rollout.state.step.share) == ("half", 50)


def test_an_index_change_queues_behind_a_candidate_under_trial_and_a_pipeline_edit_replaces_it() -> None:
    rollout = stepped().warm(R1, R2).ask(R3)
    assert (rollout.state.candidate, rollout.state.queued) == (R2.name, R3.name)

    assert rollout.ask(P2).place == (R1.name, P2.name, Phase.PREPARING)
    assert rollout.state.queued == ""


def test_the_queue_keeps_the_newest_and_moves_up_after_a_promotion() -> None:
    rollout = stepped().warm(R1, R2).ask(R3)
    rollout.see(acknowledged=True).request("promote")
    rollout.settle()

    assert rollout.place == (R2.name, R3.name, Phase.PREPARING)


def test_asking_for_the_candidate_again_empties_the_queue() -> None:
    rollout = stepped().warm(R1, R2).ask(R3).ask(R2)

    assert (rollout.state.candidate, rollout.state.queued) == (R2.name, "")


def test_three_wishes_in_a_row_end_where_they_began() -> None:
    """A new revision at 20 %, another one at once, then stable again: nothing of the trials is left."""
    rollout = stepped().warm(R1, R2).ask(R3).ask(R1)

    assert rollout.place == (R1.name, "", Phase.IDLE)
    assert (rollout.state.queued, rollout.state.step) == ("", None)


def rolled_back() -> Rollout:
    rollout = serving().ask(R2).warm(R1, R2)
    assert rollout.request("rollback") == "done"
    return rollout


def test_a_rollback_to_a_warm_release_is_one_transition_and_the_same_wish_does_not_return() -> None:
    rollout = rolled_back()

    assert rollout.place == (R1.name, "", Phase.FAILED)
    assert [(entry.release, entry.how, entry.by) for entry in rollout.state.history] == [
        (R1.name, "", ""),
        (R2.name, "rolledBack", "ann"),
        (R1.name, "promoted", ""),
    ]
    for _ in range(10):
        assert rollout.ask(R2).place == (R1.name, "", Phase.FAILED)


def test_a_rejected_change_cannot_be_smuggled_back_inside_another_one() -> None:
    assert rolled_back().ask(P2R2).place == (R1.name, "", Phase.FAILED)
    assert rolled_back().ask(R3).place == (R1.name, R3.name, Phase.PREPARING)


def test_retry_clears_the_rejection() -> None:
    rollout = rolled_back()

    assert rollout.request("retry") == "done"
    assert rollout.place == (R2.name, "", Phase.IDLE)
    assert rollout.request("retry") == "refused"


def test_a_rollback_is_decided_in_one_step_although_the_spec_still_asks_for_what_was_bad() -> None:
    rollout = serving().ask(R2).warm(R1, R2)
    answered = answer(Request(id="1", verb="rollback"), rollout.state, rollout.facts, START)
    assert answered.state.phase == Phase.FAILED
    assert advance(answered.state, rollout.facts, START).state == answered.state


def test_what_was_rolled_back_goes_through_the_steps_again_when_it_is_retried() -> None:
    rollout = rolled_back().see(has_policy=True, steps=FIVE_THEN_PAUSE)

    assert rollout.request("retry") == "done"
    assert rollout.place == (R1.name, R2.name, Phase.PROGRESSING)
    assert rollout.state.step is not None
    assert rollout.state.step.share == 5


def test_asking_for_the_good_release_after_a_rollback_settles() -> None:
    assert rolled_back().ask(R1).place == (R1.name, "", Phase.IDLE)


def test_a_rollback_in_mid_rollout_gives_up_the_candidate() -> None:
    rollout = stepped().warm(R1, R2)

    assert rollout.request("rollback") == "done"
    assert rollout.place == (R1.name, "", Phase.FAILED)
    assert [entry.release for entry in rollout.state.rejected] == [R2.name]


def test_a_rollback_to_a_cold_release_switches_when_it_is_warm_and_says_so() -> None:
    rollout = serving().ask(R2).warm(R1, R2).warm(R2)

    answered = answer(Request(id="1", verb="rollback"), rollout.state, rollout.facts, START)
    assert "cold" in answered.outcome.message
    rollout.state = answered.state
    assert rollout.settle().place == (R2.name, R1.name, Phase.ROLLING_BACK)

    assert rollout.warm(R1, R2).place == (R1.name, "", Phase.FAILED)


def test_a_rollback_may_name_its_target() -> None:
    rollout = serving().ask(R2).warm(R1, R2).ask(R3).warm(R1, R2, R3)

    assert rollout.request("rollback", to=R1.name) == "done"
    assert rollout.state.stable == R1.name


@pytest.mark.parametrize("to", ["rel-0000000000", R1.name])
def test_a_rollback_to_something_impossible_is_refused(to: str) -> None:
    rollout = serving()

    assert rollout.request("rollback", to=to) == "refused"
    assert rollout.place == (R1.name, "", Phase.IDLE)


def test_a_rollback_before_anything_has_served_is_refused() -> None:
    rollout = Rollout().ask(R1)

    assert rollout.request("rollback", to=R2.name) == "refused"
    assert rollout.place == ("", R1.name, Phase.PREPARING)


def test_the_earlier_spec_put_back_serves_at_once_while_it_is_warm() -> None:
    rollout = serving().ask(R2).warm(R1, R2)
    rollout.see(has_policy=True, steps=FIVE_THEN_PAUSE)

    assert rollout.ask(R1).place == (R1.name, "", Phase.IDLE)


def test_the_earlier_spec_put_back_after_the_window_is_a_rollout_like_any_other() -> None:
    rollout = serving().ask(R2).warm(R1, R2)
    rollout.see(has_policy=True, steps=FIVE_THEN_PAUSE)
    rollout.now = START + timedelta(hours=3)

    assert rollout.ask(R1).state.candidate == R1.name
    assert rollout.state.step is not None


def test_a_policy_deleted_in_mid_rollout_aborts_to_stable() -> None:
    rollout = stepped().warm(R1, R2).see(has_policy=False, steps=())

    assert rollout.place == (R1.name, "", Phase.FAILED)
    assert [note.reason for note in rollout.notes if note.type == "Warning"] == ["RolloutAborted"]


def test_abort_needs_a_rollout() -> None:
    assert serving().request("abort") == "refused"
    rollout = stepped().warm(R1, R2)
    assert rollout.request("abort") == "done"
    assert rollout.place == (R1.name, "", Phase.FAILED)


def test_promote_needs_something_that_waits_and_is_warm() -> None:
    assert serving().request("promote") == "refused"
    rollout = stepped().warm(R1, R2).see(acknowledged=True).warm(R1)
    assert rollout.state.phase == Phase.PAUSED
    assert rollout.request("promote") == "refused"


def test_while_the_spec_asks_for_nothing_a_candidate_goes_on() -> None:
    rollout = serving().ask(R2).see(desired="").warm(R1, R2)

    assert rollout.place == (R2.name, "", Phase.IDLE)


def test_the_window_keeps_as_many_as_it_says_and_for_as_long() -> None:
    rollout = serving().ask(R2).warm(R1, R2).ask(R3).warm(R2, R3)

    assert in_window(rollout.state, rollout.facts, START) == (R2.name,)
    assert in_window(rollout.state, replace(rollout.facts, window_releases=2), START) == (R2.name, R1.name)
    assert in_window(rollout.state, replace(rollout.facts, window_releases=0), START) == ()
    assert in_window(rollout.state, rollout.facts, START + timedelta(hours=3)) == ()
    assert rollback_target(rollout.state, rollout.facts) == R2.name


def test_history_and_rejections_stay_bounded() -> None:
    rollout = serving()
    for _ in range(30):
        rollout.ask(R2).warm(R1, R2)
        rollout.ask(R1).settle()

    assert len(rollout.state.history) == 20
