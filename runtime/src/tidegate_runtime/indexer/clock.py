"""The time, as a port: pauses are measured with one clock, dates are written down by another."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def now(self) -> str:
        """Return the date and time in UTC as ISO 8601."""


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
