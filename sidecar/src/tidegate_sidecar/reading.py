"""Reads the body of `POST /v1/retrieve`: a request that is well formed and within the pipeline's limits.

Every refusal names the member, its value (cut short) and what to do; a query is cut like any other value.
Members are named as the caller wrote them: what pydantic calls the members of a union is none of theirs.
"""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidegate_api.config import LimitsConfig
from tidegate_api.wire import ErrorCode, RetrieveRequest
from tidegate_sidecar.errors import RequestError, shown

MEMBERS = ", ".join(RetrieveRequest.model_fields)
# The members that may be one of several things. After them, and after an item of a list, pydantic's location of an
# error goes on with the name of the thing it tried.
UNIONS = frozenset({"filters", "value"})


def read_retrieve(body: bytes, limits: LimitsConfig) -> RetrieveRequest:
    """Return the request.

    Raises:
        RequestError: the body is not JSON, a member is unknown or malformed, or a limit is exceeded.
    """
    try:
        asked = RetrieveRequest.model_validate_json(body)
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
        raise RequestError(ErrorCode.INVALID_REQUEST, _explained(details)) from None
    query_bytes = len(asked.query.encode())
    if query_bytes > limits.max_query_bytes:
        message = (
            f"query has {query_bytes} bytes, more than {limits.max_query_bytes} (limits.maxQueryBytes); shorten it"
        )
        raise RequestError(ErrorCode.TOO_LARGE, message)
    if not asked.query.strip():
        raise RequestError(ErrorCode.INVALID_REQUEST, f"query {shown(asked.query)} is empty; ask something")
    if asked.top_k is not None and asked.top_k > limits.max_top_k:
        message = f"top_k {asked.top_k} is more than {limits.max_top_k} (limits.maxTopK); ask for fewer"
        raise RequestError(ErrorCode.INVALID_REQUEST, message)
    return asked


def _explained(details: ErrorDetails) -> str:
    member = _as_written(details["loc"])
    match details["type"]:
        case "json_invalid":
            return (
                f"the body is not JSON ({details['msg'].removeprefix('Invalid JSON: ')}); send an object with `query`"
            )
        case "model_type":
            return 'the body must be a JSON object; send {"query": "…"}'
        case "extra_forbidden":
            return f"unknown member {shown(member)}; " + ("leave it out" if "." in member else f"allowed are {MEMBERS}")
        case "missing":
            return f"member {member} is missing; add it"
        case "union_tag_not_found":
            return f"member {member}.type is missing; add it"
        case "union_tag_invalid":
            kind, allowed = shown(details["input"]["type"]), details["ctx"]["expected_tags"]
            return f"member {member}.type: {kind}: must be one of {allowed}; correct it"
        case _:
            return f"member {member}: {shown(details['input'])}: {_wrong(details)}"


def _wrong(details: ErrorDetails) -> str:
    loc, message = details["loc"], details["msg"]
    if not _is_tried(loc, len(loc) - 1):
        return f"{message[0].lower()}{message[1:]}; correct it"
    several = loc[-2] == "value" and isinstance(details["input"], list)
    return "must be a text, a number, true or false; " + ("for several use `in`" if several else "correct it")


def _as_written(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for position, part in enumerate(loc) if not _is_tried(loc, position))


def _is_tried(loc: tuple[int | str, ...], position: int) -> bool:
    """Tell whether pydantic added this part: the name of what it took the part before for."""
    before = loc[position - 1] if position > 0 else None
    return isinstance(loc[position], str) and (isinstance(before, int) or before in UNIONS)
