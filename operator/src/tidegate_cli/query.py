"""`tidegate query`: asks a pipeline and shows the answer as a person reads it.

Plain urllib: one request does not justify a client, and the command must start quickly.
"""

import http.client
import json
import textwrap
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_api.violation import shown

TIMEOUT_SECONDS = 30
EXCERPT_CHARACTERS = 320


class QueryError(Exception):
    """The pipeline refused or could not be reached; the text says why. `code` is the refusal's, if it was one."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Question:
    """A question and who asks it."""

    query: str
    url: str = "http://127.0.0.1:8080"
    top_k: int = 3
    key: str = ""
    tenant: str = ""
    user: str = ""
    session: str = ""
    release: str = ""
    explain: bool = False
    headers: tuple[tuple[str, str], ...] = ()


def ask(question: Question) -> dict[str, object]:
    """Return the pipeline's answer.

    Raises:
        QueryError: refused (with the server's own message), unreachable, or not answered by Tidegate.
    """
    request = _request(question)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - see _is_address
            content = response.read()
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error) from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise QueryError(f"{question.url} cannot be reached ({reason}); is it running?") from error
    except http.client.InvalidURL as error:
        raise QueryError(f"{question.url!r} is no address ({error}); correct it") from error
    except http.client.HTTPException as error:
        said = shown(str(error).strip())
        raise QueryError(f"{question.url} does not speak HTTP as it should ({said}); check the address") from error
    return _answer(question.url, content)


def render(answer: Mapping[str, object]) -> str:
    """Return the answer as text: each chunk with its source, then which release answered and how long it took."""
    lines: list[str] = []
    results = answer.get("results")
    for rank, result in enumerate(results if isinstance(results, list) else [], start=1):
        location = result.get("location") or {}
        where = f"{result['document_id']}:{location.get('start')}-{location.get('end')}"
        lines.append(f"{rank}. {result['title']}  [{where}]  {result['score_kind']} {result['score']:.3f}")
        if result.get("scores"):
            lines.append("   " + "  ".join(f"{leg} {score:.4f}" for leg, score in sorted(result["scores"].items())))
        excerpt = textwrap.shorten(" ".join(str(result["content"]).split()), EXCERPT_CHARACTERS, placeholder=" …")
        lines.append(textwrap.indent(textwrap.fill(excerpt, 100), "   "))
    if not lines:
        lines.append("nothing found")
    degraded = answer.get("degraded")
    lines.extend(
        f"degraded: {entry['node']} ({entry['reason']} after {entry['after_ms']:.0f} ms)"
        for entry in (degraded if isinstance(degraded, list) else [])
    )
    timings, route = answer.get("timings_ms"), answer.get("route")
    total = f", {timings['total']:.1f} ms" if isinstance(timings, dict) and "total" in timings else ""
    rule = f" by rule {route['rule']}" if isinstance(route, dict) else ""
    lines.append(f"-- {answer.get('release')} ({answer.get('arm')}{rule}){total}")
    return "\n".join(lines)


def _request(question: Question) -> urllib.request.Request:
    if not _is_address(question.url):
        raise QueryError(
            f"{question.url!r} is no address: it must begin with http:// or https:// and go on with a host, "
            "such as http://127.0.0.1:8080"
        )
    body: dict[str, object] = {"query": question.query, "top_k": question.top_k}
    if question.session:
        body["session_id"] = question.session
    if question.explain:
        body["explain"] = True
    return urllib.request.Request(  # noqa: S310 - see _is_address
        f"{question.url}/v1/retrieve", data=json.dumps(body).encode(), headers=_headers(question), method="POST"
    )


def _is_address(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname or "", parts.port  # ValueError: no such port
        host.encode("idna")  # UnicodeError, which is a ValueError: no host can have this name
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and host != "" and url.isascii()


def _headers(question: Question) -> dict[str, str]:
    headers = {**dict(question.headers), "content-type": "application/json"}
    if question.key:
        headers["authorization"] = f"Bearer {question.key}"
    for name in ("tenant", "user", "release"):
        value = getattr(question, name)
        if value:
            headers[f"x-tidegate-{name}"] = value
    for name, value in headers.items():
        if "\n" in value or "\r" in value:  # not shown: it may be the key
            raise QueryError(f"the value for header {name} holds a line break; remove it")
    # http.client writes text as Latin-1, and UTF-8 is what is read.
    return {name: value.encode(errors="surrogateescape").decode("latin-1") for name, value in headers.items()}


def _answer(url: str, content: bytes) -> dict[str, object]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("results"), list) or "release" not in answer:
        raise QueryError(f"{url} did not answer as Tidegate does; check the address")
    return answer


def _refusal(error: urllib.error.HTTPError) -> QueryError:
    try:
        body = json.load(error)["error"]
        return QueryError(f"{body['code']} ({error.code}): {body['message']}", code=body["code"])
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return QueryError(f"HTTP {error.code} from {error.url}; check the address")
