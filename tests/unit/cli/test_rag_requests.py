"""What an order waits for: its outcome, and every pod."""

from collections.abc import Callable

import pytest

from tidegate_api.v1alpha1.common import RoutingStatus
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipeline, RetrievalPipelineStatus, RolloutStatus
from tidegate_cli import rag_requests
from tidegate_cli.rag_requests import RequestTimeoutError, await_everywhere


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag_requests, "POLL_SECONDS", 0.0)


def pipeline(*, version: int, pending: tuple[str, ...] = (), phase: str = "Failed") -> RetrievalPipeline:
    status = RetrievalPipelineStatus(
        serving_release="rel-good",
        rollout=RolloutStatus(phase=phase),
        routing=RoutingStatus(version=version, pending=list(pending), summary="2/2"),
    )
    return RetrievalPipeline.model_validate(
        {
            "metadata": {"name": "docs"},
            "spec": {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}},
            "status": status.model_dump(by_alias=True, mode="json", exclude_none=True),
        }
    )


def told(*seen: RetrievalPipeline) -> Callable[[], RetrievalPipeline]:
    waiting = list(seen)
    return lambda: waiting.pop(0) if len(waiting) > 1 else waiting[0]


def test_it_waits_for_the_new_table_for_a_cold_release_and_for_every_pod() -> None:
    seen = told(
        pipeline(version=7),
        pipeline(version=8, phase="RollingBack"),
        pipeline(version=9, pending=("docs-1",)),
        pipeline(version=9),
    )
    assert await_everywhere(seen, beyond=7, seconds=5) == "rel-good serves on 2/2 pods, by table 9"


@pytest.mark.parametrize(
    ("last", "waits"),
    [
        (pipeline(version=7), "a new table"),
        (pipeline(version=8, phase="RollingBack"), "a warm release"),
        (pipeline(version=8, pending=("docs-1", "docs-2")), "docs-1, docs-2"),
    ],
)
def test_when_time_is_up_it_says_what_it_waits_for(last: RetrievalPipeline, waits: str) -> None:
    with pytest.raises(RequestTimeoutError, match=f"still waits for {waits}"):
        await_everywhere(told(last), beyond=7, seconds=0.01)
