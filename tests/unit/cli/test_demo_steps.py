"""The demo's frame: commands are shown with what they say, silence is filled, failures say what was waited for."""

import os

import pytest

from tidegate_cli import demo_steps
from tidegate_cli.demo_crowd import Asked, Crowd, failed, named
from tidegate_cli.demo_steps import DemoError, Steps, run_shown, wait_shown
from tidegate_cli.query import QueryError, Question


def test_a_command_is_shown_with_everything_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    said = run_shown("make it", ["sh", "-c", "echo one; echo two >&2"], environment=dict(os.environ))
    assert said == "one\ntwo"
    assert capsys.readouterr().out.splitlines() == ["$ make it", "   one", "   two"]


def test_a_command_that_fails_ends_the_demo_with_its_last_words() -> None:
    with pytest.raises(DemoError, match="make it: exit 3\nno disk"):
        run_shown("make it", ["sh", "-c", "echo no disk; exit 3"], environment=dict(os.environ))


def test_a_silent_command_shows_that_time_passes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_steps, "SILENCE_SECONDS", 0.01)
    run_shown("wait", ["sh", "-c", "sleep 0.2"], environment=dict(os.environ))
    assert "   … 0 s" in capsys.readouterr().out


def test_progress_is_shown_once_each_and_the_result_ends_the_wait(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_steps, "POLL_SECONDS", 0.0)
    told, results = iter(["10%", "10%", "90%"]), iter([None, None, "done"])
    assert wait_shown(lambda: next(results), progress=lambda: next(told), what="it is there", seconds=60) == "done"
    assert capsys.readouterr().out.splitlines() == ["   10%", "   90%"]


def test_what_does_not_come_in_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_steps, "POLL_SECONDS", 0.0)
    with pytest.raises(DemoError, match="after 0 s it is still not true that it is there"):
        wait_shown(lambda: None, progress=lambda: "", what="it is there", seconds=0.0)


def test_every_step_is_listed_with_its_time_and_a_failed_one_is_not() -> None:
    steps = Steps()
    steps.add("make .venv", 61.25)
    with steps.step("a cluster"):
        pass
    with pytest.raises(DemoError), steps.step("images"):
        raise DemoError("no disk")
    lines = steps.times().splitlines()
    assert [line.split()[0] for line in lines] == ["#", "1", "2", "-"]
    assert lines[1].split()[1:] == ["make", ".venv", "61.2", "s"]
    assert lines[-1].split()[1:3] == ["all", "61.3"]


def test_a_crowd_knows_who_is_where_once_everybody_has_asked() -> None:
    def answer(question: Question) -> dict[str, object]:
        if question.session == "user-2":
            raise QueryError("internal (500)")
        return {"release": "rel-a", "results": [{"revision": "docs-1"}, {"revision": "docs-1"}]}

    crowd = Crowd(Question("q"), users=2, ask=answer)
    with crowd:
        while len(crowd.asked) < 4:
            pass
    assert crowd.where(0.0) is None
    crowd.asked.append(Asked(crowd.asked[-1].at + 1, "user-2", "rel-b", frozenset({"docs-2"})))
    assert crowd.where(0.0) == {"rel-a": ["user-1"], "rel-b": ["user-2"]}
    assert {each.session for each in failed(crowd.asked)} == {"user-2"}
    assert crowd.since(crowd.asked[-1].at) == []


def test_a_mixed_answer_counts_as_failed_and_long_lists_are_cut() -> None:
    assert failed([Asked(0.0, "a", "rel-a", frozenset({"docs-1", "docs-2"}))])
    assert named([f"u{n}" for n in range(10)]) == "u0, u1, u2, u3, u4, u5, u6, u7 and 2 more"
    assert named(["u0"]) == "u0"
