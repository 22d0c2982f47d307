"""Errors of the control plane: adapters translate once, the shell decides what each means.

`retry_after_seconds` None means that trying again the same way is of no use.
"""


class OperatorError(Exception):
    """Base: a reason for conditions and metrics, and whether time alone may cure it."""

    def __init__(self, message: str, *, reason: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class UnavailableError(OperatorError):
    """The API server cannot be reached, is overloaded or failed; the same request may succeed later."""

    def __init__(self, message: str, *, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message, reason="Unavailable", retry_after_seconds=retry_after_seconds)


class StaleError(OperatorError):
    """The object has changed since it was read: look again before deciding."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="Stale", retry_after_seconds=0.0)


class RefusedError(OperatorError):
    """The API server refused the content: schema, admission, quota or rights."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message, reason=reason)


class NameConflictError(OperatorError):
    """An object of this name belongs to somebody else; it was not taken over."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="NameConflict")


class StartupError(OperatorError):
    """The operator cannot work here: a resource definition or a right is missing."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="Startup")


class WatchEndedError(OperatorError):
    """The API server has ended a watch for good; only a new process sees everything again."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the API server has ended a watch ({message}); where a resource definition was deleted, install it "
            "again (`tidegate crds | kubectl apply --server-side -f -`): a new process looks at everything anew",
            reason="WatchEnded",
        )
