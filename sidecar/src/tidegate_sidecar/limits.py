"""Bounds on load: requests under way in this pod, and a rate for each tenant.

Counts are by release, so that one that left the table is closed only after its last request. Rates are
token buckets that hold one second's worth; a bucket that is full again is forgotten, so memory is
bounded by recent tenants, not by all there ever were.
"""

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError

MAX_REMEMBERED_TENANTS = 10_000


class InFlight:
    """Requests that wait for the runtime, by release."""

    def __init__(self) -> None:
        self._by_release: dict[str, int] = {}
        self._total = 0

    def enter(self, release: str, maximum: int) -> None:
        """Count a request.

        Raises:
            RequestError: `maximum` requests are under way already.
        """
        if self._total >= maximum:
            message = f"{self._total} requests are under way, the limit of this pod (limits.maxConcurrent); try again"
            raise RequestError(ErrorCode.OVERLOADED, message, retry_after_seconds=1)
        self._total += 1
        self._by_release[release] = self._by_release.get(release, 0) + 1

    def leave(self, release: str) -> None:
        """Uncount a request."""
        self._total -= 1
        self._by_release[release] -= 1
        if not self._by_release[release]:
            del self._by_release[release]

    def of(self, release: str) -> int:
        """Return how many requests wait for `release`."""
        return self._by_release.get(release, 0)


class TenantRates:
    """One token bucket for each tenant; callers without a tenant share one."""

    def __init__(self) -> None:
        self._buckets: dict[str | None, tuple[float, float]] = {}

    def take(self, tenant: str | None, per_second: float, now: float) -> None:
        """Spend one request of `tenant`; `per_second` 0 = no limit.

        Raises:
            RequestError: the rate is used up.
        """
        if per_second <= 0:
            return
        burst = max(1.0, per_second)
        tokens, since = self._buckets.get(tenant, (burst, now))
        tokens = min(burst, tokens + (now - since) * per_second)
        if tokens < 1:
            message = f"more than {per_second:g} requests a second for this tenant; slow down"
            raise RequestError(ErrorCode.RATE_LIMITED, message, retry_after_seconds=(1 - tokens) / per_second)
        if tenant not in self._buckets and len(self._buckets) >= MAX_REMEMBERED_TENANTS:
            self._forget_full(burst, per_second, now)
        self._buckets[tenant] = (tokens - 1, now)

    def _forget_full(self, burst: float, per_second: float, now: float) -> None:
        self._buckets = {
            tenant: (tokens, since)
            for tenant, (tokens, since) in self._buckets.items()
            if tokens + (now - since) * per_second < burst
        }
