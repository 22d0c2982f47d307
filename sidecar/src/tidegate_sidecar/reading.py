"""Reads the body of `POST /v1/retrieve`: a request that is well formed and within the pipeline's limits.

Every refusal names the member, its value (cut short) and what to do; a query is cut like any other value.
"""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidegate_api.config import LimitsConfig
from tidegate_api.wire import ErrorCode, RetrieveRequest
from tidegate_sidecar.errors import RequestError, shown

MEMBERS = ", ".join(RetrieveRequest.model_fields)


def read_retrieve(body: bytes, limits: LimitsConfig) -> RetrieveRequest:
    """Return the request.

    Raises:
        RequestError: the body is not JSON, a member is unknown or malformed, or a limit is exceeded.
    """
    try:
        asked = RetrieveRequest.model_validate_json(body)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)[0]
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
    member = ".".join(str(part) for part in details["loc"])
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
        case _:
            return _wrong(member, details)


def _wrong(member: str, details: ErrorDetails) -> str:
    return f"member {member}: {shown(details['input'])}: {details['msg'][0].lower()}{details['msg'][1:]}; correct it"
