"""What is worth waking the operator for: what a reader would do or show otherwise; never progress or the time."""

from typing import Any

import pytest

from tidegate_api.config import Census, DocumentFailure, IndexerState, RevisionState, SyncState
from tidegate_runtime.indexer.telling import news


def revision(**members: Any) -> RevisionState:
    return RevisionState(**{"name": "docs-1", "phase": "Ready", "language": "en", **members})


def state(*revisions: RevisionState, **members: Any) -> IndexerState:
    return IndexerState(process="p", revisions=list(revisions) or [revision()], **members)


@pytest.mark.parametrize(
    "changed",
    [
        state(revision(phase="Building")),
        state(revision(documents=2)),
        state(revision(content_generation=7)),
        state(revision(message="full", reason="StoreFull")),
        state(message="source 'docs' is gone"),
        state(census=Census(language="zh")),
        state(sync=SyncState(last_handled="token")),
        state(sync=SyncState(failed=1, failures=[DocumentFailure(document="a.md", reason="binary")])),
        state(revision(), revision(name="docs-2")),
    ],
)
def test_what_a_reader_would_show_or_do_is_news(changed: IndexerState) -> None:
    assert news(changed) != news(state())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (state(), state(sync=SyncState(last_at="2026-01-01T12:00:00Z"))),
        (
            state(revision(phase="Building", documents_done=1, documents=1)),
            state(revision(phase="Building", documents_done=9, documents=9, content_generation=3)),
        ),
    ],
)
def test_progress_and_the_time_of_a_look_are_not(before: IndexerState, after: IndexerState) -> None:
    assert news(before) == news(after)
