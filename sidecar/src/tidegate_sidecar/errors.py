"""The one error that ends a request, raised wherever a rule is broken and answered in one place.

A message names the field, the value (cut short) and the next step. It never holds a key, a document's
text, a store address or anything about another tenant.
"""

import json

from tidegate_api.wire import ErrorCode

SHOWN_VALUE_CHARACTERS = 64


class RequestError(Exception):
    """A request that is answered with one of the closed codes. `detail` is for the log alone.

    `retry_after_seconds` None promises nothing. `taken` = a runtime ended with this request in its hands, so it may
    be what ended it.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        detail: str = "",
        retry_after_seconds: float | None = None,
        taken: bool = False,
    ) -> None:
        super().__init__(message)
        self.detail = detail
        self.code = code
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.taken = taken


def shown(value: object) -> str:
    """Return `value` as it may stand in a message: cut to 64 characters, strings quoted, the rest as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) > SHOWN_VALUE_CHARACTERS:
        text = f"{text[: SHOWN_VALUE_CHARACTERS - 1]}…"
    return repr(text) if isinstance(value, str) else text
