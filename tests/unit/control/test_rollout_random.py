"""Whatever is asked of a rollout in whatever order: what must hold after every transition (B05's property)."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegate_api.v1alpha1.retrievalpipeline import RolloutStatus
from tidegate_operator.core.rejection import rejection_of
from tidegate_operator.core.requests import Request
from tidegate_operator.core.rollout import Phase, RolloutFacts, advance
from tidegate_operator.core.rollout_requests import answer

from .test_rollout import ALL, FIVE_THEN_PAUSE, START

VERBS = ("rollback", "promote", "abort", "retry", "nonsense")
RELEASES = st.sampled_from(sorted(ALL))


class AnyRollout(RuleBasedStateMachine):
    """Asks, warms, acknowledges, orders and lets time pass; every single transition is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = RolloutFacts(desired="", releases=ALL, has_policy=True, steps=FIVE_THEN_PAUSE)
        self.state = self.before = RolloutStatus()
        self.now = START
        self.ordered = False

    @rule(desired=RELEASES | st.just(""))
    def ask(self, desired: str) -> None:
        """The spec asks for another release, or for nothing that could be made."""
        self.facts = replace(self.facts, desired=desired)

    @rule(warm=st.frozensets(RELEASES))
    def warm_up(self, warm: frozenset[str]) -> None:
        """Pods hold other releases; what serves is held for ever."""
        self.facts = replace(self.facts, warm=warm | {self.state.stable} - {""})

    @rule(acknowledged=st.booleans())
    def acknowledge(self, acknowledged: bool) -> None:
        """Pods obey the table, or do not yet."""
        self.facts = replace(self.facts, acknowledged=acknowledged)

    @rule(has_policy=st.booleans(), may_start=st.booleans())
    def rule_by_policy(self, has_policy: bool, may_start: bool) -> None:
        """A policy comes or goes."""
        steps = FIVE_THEN_PAUSE if has_policy else ()
        self.facts = replace(self.facts, has_policy=has_policy, steps=steps, may_start=may_start)

    @rule(hours=st.integers(0, 3))
    def wait(self, hours: int) -> None:
        """Time passes."""
        self.now += timedelta(hours=hours)

    @rule(verb=st.sampled_from(VERBS), to=RELEASES | st.sampled_from(["", "rel-0000000000"]))
    def order(self, verb: str, to: str) -> None:
        """A person asks for something."""
        self.before, self.ordered = self.state, True
        self.state = answer(Request(id="1", verb=verb, to=to), self.state, self.facts, self.now).state

    @rule()
    def move(self) -> None:
        """The operator makes at most one transition."""
        self.before, self.ordered = self.state, False
        self.state = advance(self.state, self.facts, self.now).state

    @rule()
    def settle(self) -> None:
        """The operator goes on until nothing moves, which must come."""
        for _ in range(20):
            self.move()
            if self.state == self.before:
                return
            self.holds()
        raise AssertionError(f"never at rest: {self.state}")

    @invariant()
    def holds(self) -> None:
        """Look at the state, and at what the last transition made of it."""
        state, before = self.state, self.before
        assert state.phase in ("", *Phase)
        assert not state.candidate or state.candidate != state.stable
        assert not state.queued or (state.candidate and state.queued not in (state.candidate, state.stable))
        share = state.step.share if state.step is not None else 0
        assert 0 <= share <= 100
        assert not share or (state.candidate and state.stable)
        assert len(state.history) <= 20
        assert sum(entry.until is None for entry in state.history) == (1 if state.stable else 0)
        if state.candidate and state.phase != Phase.ROLLING_BACK:
            assert rejection_of(ALL[state.candidate], state.rejected) is None
        self._moved_well(share)
        assert before is not None

    def _moved_well(self, share: float) -> None:
        state, before = self.state, self.before
        shared = before.step.share if before.step is not None else 0
        if state.stable != before.stable:
            # Nobody is ever switched to what no pod could answer from, nor back to nothing.
            assert state.stable in self.facts.warm
            assert state.stable
        if state.candidate == before.candidate and state.stable == before.stable:
            assert share >= shared or not share  # exposure only grows, or ends
        if share and not shared:
            assert state.candidate in self.facts.warm  # nobody is sent to a candidate that is cold


AnyRollout.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestAnyRollout = AnyRollout.TestCase
