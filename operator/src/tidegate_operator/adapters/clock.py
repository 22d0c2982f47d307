"""The clock of the machine. Times are stored in seconds, so they are read in seconds."""

from datetime import UTC, datetime


class SystemClock:
    """Implements `Clock`."""

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.now(UTC)
