"""When a source is looked at."""

from tidegate_api.config import ConfigMapFrom, SourceConfig
from tidegate_runtime.indexer.schedule import Backoff, LookSchedule


def source(refresh_seconds: float = 900) -> SourceConfig:
    return SourceConfig(name="docs", refresh_seconds=refresh_seconds)


def due(schedule: LookSchedule, at: float, *, refresh_seconds: float = 900) -> bool:
    return bool(schedule.due([source(refresh_seconds)], now=at))


def test_a_new_source_is_due_at_once_and_then_at_its_refresh() -> None:
    schedule = LookSchedule(watch=False)
    assert due(schedule, 0)

    schedule.looked(source(), now=0, took_seconds=0)

    assert not due(schedule, 899)
    assert due(schedule, 900)


def test_a_refresh_of_zero_waits_for_the_config() -> None:
    schedule = LookSchedule(watch=False)
    schedule.looked(source(0), now=0, took_seconds=0)
    assert not due(schedule, 1e9, refresh_seconds=0)

    schedule.all_due()

    assert due(schedule, 1e9, refresh_seconds=0)


def test_watching_looks_every_second() -> None:
    schedule = LookSchedule(watch=True)
    schedule.looked(source(0), now=0, took_seconds=0.01)

    assert not due(schedule, 0.9, refresh_seconds=0)
    assert due(schedule, 1.0, refresh_seconds=0)


def test_a_config_map_is_watched_unless_it_asks_not_to_be_refreshed() -> None:
    mounted = ConfigMapFrom(name="docs", path="/sources/docs")
    schedule = LookSchedule(watch=False)
    for refresh_seconds, name in ((900.0, "edited"), (0.0, "left alone")):
        looked = SourceConfig(name=name, refresh_seconds=refresh_seconds, config_map=mounted)
        schedule.looked(looked, now=0, took_seconds=0)
    sources = [SourceConfig(name=name, config_map=mounted) for name in ("edited", "left alone")]

    assert [each.name for each in schedule.due(sources, now=1.0)] == ["edited"]


def test_watching_a_source_that_takes_long_leaves_time_for_work() -> None:
    schedule = LookSchedule(watch=True)
    schedule.looked(source(), now=0, took_seconds=2)

    assert not due(schedule, 19)
    assert due(schedule, 20)


def test_a_failed_look_comes_back_sooner_than_the_refresh_with_growing_pauses() -> None:
    schedule = LookSchedule(watch=False)
    schedule.failed(source(), now=0)
    assert due(schedule, 1)

    schedule.failed(source(), now=1)

    assert not due(schedule, 2.9)
    assert due(schedule, 3)


def test_pauses_double_up_to_a_minute_and_begin_again_after_success() -> None:
    backoff = Backoff()
    assert [backoff.failed() for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    backoff.succeeded()

    assert backoff.failed() == 1
