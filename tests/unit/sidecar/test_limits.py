"""Bounds on load: concurrency and tenants' rates."""

import pytest

from tidegate_api.wire import ErrorCode
from tidegate_sidecar import limits
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.limits import InFlight, TenantRates


def test_requests_beyond_the_maximum_are_refused_until_one_leaves():
    in_flight = InFlight()
    in_flight.enter("rel-a", 2)
    in_flight.enter("rel-b", 2)
    with pytest.raises(RequestError, match="2 requests are under way") as refused:
        in_flight.enter("rel-a", 2)
    assert refused.value.code is ErrorCode.OVERLOADED
    assert refused.value.retry_after_seconds == 1
    in_flight.leave("rel-b")
    in_flight.enter("rel-a", 2)
    assert (in_flight.of("rel-a"), in_flight.of("rel-b")) == (2, 0)


def test_a_tenant_has_one_seconds_worth_and_gets_more_as_time_goes_on():
    rates = TenantRates()
    for _ in range(3):
        rates.take("acme", 3, now=10)
    with pytest.raises(RequestError, match="more than 3 requests a second") as refused:
        rates.take("acme", 3, now=10)
    assert refused.value.code is ErrorCode.RATE_LIMITED
    assert refused.value.retry_after_seconds == pytest.approx(1 / 3)
    rates.take("acme", 3, now=10.34)


def test_tenants_do_not_spend_each_others_requests_and_callers_without_one_share():
    rates = TenantRates()
    for tenant in ("acme", "bank", None):
        rates.take(tenant, 1, now=0)
    with pytest.raises(RequestError):
        rates.take(None, 1, now=0)


def test_a_slow_rate_still_lets_one_request_through():
    rates = TenantRates()
    rates.take("acme", 0.1, now=0)
    with pytest.raises(RequestError) as refused:
        rates.take("acme", 0.1, now=1)
    assert refused.value.retry_after_seconds == pytest.approx(9)


def test_no_rate_means_no_limit():
    rates = TenantRates()
    for _ in range(1_000):
        rates.take("acme", 0, now=0)


def test_tenants_whose_bucket_is_full_again_are_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "MAX_REMEMBERED_TENANTS", 10)
    rates = TenantRates()
    for number in range(100):
        rates.take(f"tenant-{number}", 1, now=number)
    assert len(rates._buckets) <= 10
    with pytest.raises(RequestError):
        rates.take("tenant-99", 1, now=99)
