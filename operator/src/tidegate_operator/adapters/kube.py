"""The API server behind our ports; the only module that knows the Kubernetes client.

Bodies stay plain JSON: typed client models would drop members they do not know. Server-side apply is
`PATCH` with `application/apply-patch+yaml`. A request has one deadline and is not repeated here: the
queue decides when a key is looked at again. Error texts come from the API server's own message and
never hold a request body.
"""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio import client, config

from tidegate_api.hashing import content_hash
from tidegate_operator.core.kinds import FIELD_MANAGER, Kind, Manifest, Ref, api_version, plural, ref_of, with_metadata
from tidegate_operator.core.ownership import labels_kept, same_controller
from tidegate_operator.core.plan import Note
from tidegate_operator.errors import NameConflictError, OperatorError, RefusedError, StaleError, UnavailableError

logger = logging.getLogger(__name__)

# The client is annotated in part only.
_config: Any = config

REQUEST_SECONDS = 15.0
CONNECTIONS_MAX = 32
LIST_PAGE = 500
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
# An apply that names a version is refused where another one is live, and makes the object where there is none. This
# version is etcd's before anything was stored, so no object has it.
_OF_NO_OBJECT = "1"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class KubeCluster:
    """Implements `ClusterReader`, `ClusterWriter` and `Rights`. Open it with `async with`."""

    def __init__(self, configuration: Any) -> None:
        # Few connections, kept: handshakes cost more than waiting. The environment and ~/.netrc are not looked at
        # for every request, which would be two hops to a thread each; a proxy is read from the configuration.
        configuration.connection_pool_maxsize = CONNECTIONS_MAX
        configuration.client_session_kwargs = {"trust_env": False}
        self._client: Any = client.ApiClient(configuration)

    @classmethod
    async def from_environment(cls, kubeconfig: str | None = None) -> Self:
        """Return a cluster by the pod's own identity, or by a kubeconfig where one is given or found."""
        configuration = client.Configuration()
        if kubeconfig is not None:
            await _config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        else:
            try:
                _config.load_incluster_config(client_configuration=configuration)
            except config.ConfigException:
                await _config.load_kube_config(client_configuration=configuration)
        return cls(configuration)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()

    async def get(self, ref: Ref) -> Manifest | None:
        """Return the object, or None when there is none."""
        status, body = await self._call("GET", _path(ref.kind, ref.namespace, ref.name))
        if status == HTTPStatus.NOT_FOUND:
            return None
        return _checked(status, body)

    async def get_metadata(self, ref: Ref) -> Manifest | None:
        """Return the object without its content, or None: a Secret stays where it is."""
        status, body = await self._call("GET", _path(ref.kind, ref.namespace, ref.name), accept=_METADATA)
        if status == HTTPStatus.NOT_FOUND:
            return None
        return {**_checked(status, body), "kind": str(ref.kind), "apiVersion": api_version(ref.kind)}

    async def find(self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Manifest]:
        """Return the objects that the selectors accept, page by page."""
        items: list[Manifest] = []
        query = {"limit": str(LIST_PAGE)}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        while True:
            status, body = await self._call("GET", _path(kind, namespace), query=query)
            page = _checked(status, body)
            # Items of a typed list carry neither kind nor apiVersion.
            items += [{**item, "kind": str(kind), "apiVersion": api_version(kind)} for item in page.get("items") or []]
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return items
            query["continue"] = following

    async def create(self, manifest: Manifest) -> Manifest:
        """Make an object by an apply that only a name without an object accepts: what is there is not written to.

        Never by POST: a later apply would own only part of the fields, and a ControllerRevision made so
        cannot be labelled afterwards, because its raw bytes are compared.
        """
        ref = ref_of(manifest)
        status, body = await self._apply(with_metadata(manifest, resourceVersion=_OF_NO_OBJECT), force=False)
        if status == HTTPStatus.CREATED:
            return body
        if status != HTTPStatus.CONFLICT:
            return _checked(status, body)
        found = await self.get_metadata(ref)
        if found is None:
            raise UnavailableError(f"{ref} is not made: {body.get('message')}")
        if not same_controller(found, manifest):
            raise NameConflictError(f"{ref} exists and belongs to somebody else")
        if labels_kept(found, manifest):
            raise StaleError(f"{ref} has been made by another operator a moment ago")
        return await self.apply(with_metadata(manifest, uid=found["metadata"]["uid"]))

    async def apply(self, manifest: Manifest) -> Manifest:
        """Bring our own object to `manifest`; one that names a uid is applied to that very object or to none."""
        status, body = await self._apply(manifest, force=True)
        if status == HTTPStatus.CONFLICT or _is_of_another_uid(status, body):
            raise StaleError(f"{ref_of(manifest)} is not the object that was read")
        return _checked(status, body)

    async def delete(self, ref: Ref, *, uid: str) -> None:
        """Delete that very object."""
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        status, answer = await self._call("DELETE", _path(ref.kind, ref.namespace, ref.name), body=body)
        if status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            _checked(status, answer)

    async def replace_status(self, ref: Ref, status: Manifest, *, resource_version: str) -> None:
        """Replace the whole status; the API server refuses when the version is not the one that was read."""
        operations = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
            {"op": "add", "path": "/status", "value": status},
        ]
        code, body = await self._call(
            "PATCH",
            _path(ref.kind, ref.namespace, ref.name) + "/status",
            query={"fieldManager": FIELD_MANAGER},
            body=operations,
            content_type=_JSON_PATCH,
        )
        if code in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
            raise StaleError(f"{ref} has changed since it was read")
        _checked(code, body)

    async def record_event(self, regarding: Ref, uid: str, note: Note, *, identity: str) -> None:
        """Write an Event under a name made from `identity`; status says the same, so a lost one is only logged."""
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{regarding.name}.{content_hash([uid, identity])}", "namespace": regarding.namespace},
            "involvedObject": {
                "apiVersion": api_version(regarding.kind),
                "kind": str(regarding.kind),
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": uid,
            },
            "type": note.type,
            "reason": note.reason,
            "message": note.message,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
        }
        try:
            status, body = await self._call("POST", f"/api/v1/namespaces/{regarding.namespace}/events", body=event)
            if status != HTTPStatus.CONFLICT:
                _checked(status, body)
        except OperatorError as error:
            logger.warning("event not written", extra={"object": str(regarding), "reason": error.reason})

    async def served(self, kind: Kind) -> bool:
        """Return whether the API server knows the kind."""
        status, body = await self._call("GET", f"/apis/{api_version(kind)}")
        if status == HTTPStatus.NOT_FOUND:
            return False
        return any(each["name"] == plural(kind) for each in _checked(status, body).get("resources") or [])

    async def allowed(self, verb: str, kind: Kind, namespace: str | None, *, subresource: str = "") -> bool:
        """Return whether we may do `verb` on `kind`; the question changes nothing in the cluster."""
        attributes = {
            "verb": verb,
            "group": api_version(kind).rpartition("/")[0],
            "resource": plural(kind),
            "subresource": subresource,
            "namespace": namespace or "",
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = _checked(*await self._call("POST", path, body=review))
        return bool(answer["status"].get("allowed"))

    async def _apply(self, manifest: Manifest, *, force: bool) -> tuple[int, Manifest]:
        ref = ref_of(manifest)
        query = {"fieldManager": FIELD_MANAGER} | ({"force": "true"} if force else {})
        path = _path(ref.kind, ref.namespace, ref.name)
        return await self._call("PATCH", path, query=query, body=manifest, content_type=_APPLY)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, Manifest]:
        headers = {"Accept": accept, "Content-Type": content_type}
        headers.update(self._client.default_headers)
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = self._client.configuration.host + path + (f"?{urlencode(query)}" if query else "")
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            answer = await self._client.rest_client.request(
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
            text = await answer.read()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UnavailableError(f"the API server cannot be reached: {type(error).__name__}") from error
        document = _parsed(answer.status, text)
        if _is_our_fault(answer.status, document):
            return HTTPStatus.UNPROCESSABLE_ENTITY, document
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            wait = answer.getheader("Retry-After", "")
            seconds = float(wait) if wait.isdigit() else 1.0
            raise UnavailableError(f"the API server answered {answer.status}", retry_after_seconds=seconds)
        return answer.status, document


def _parsed(status: int, text: bytes) -> Manifest:
    """Return the document; an error may also come as plain text, from the API server or something in front of it."""
    try:
        document: Manifest = json.loads(text) if text else {}
    except ValueError as error:
        if status < HTTPStatus.BAD_REQUEST:
            raise UnavailableError("the API server answered with something that is not JSON") from error
        return {"message": text.decode(errors="replace").strip()[:200]}
    return document


def _is_our_fault(status: int, body: Manifest) -> bool:
    """A member that the schema does not know makes server-side apply answer 500: it is a refusal all the same."""
    return status == HTTPStatus.INTERNAL_SERVER_ERROR and "failed to create typed patch object" in str(
        body.get("message")
    )


def _is_of_another_uid(status: int, body: Manifest) -> bool:
    """The uid that an apply names is a precondition, but where another object has the name it is refused as an edit."""
    causes = (body.get("details") or {}).get("causes") or []
    return status == HTTPStatus.UNPROCESSABLE_ENTITY and any(each.get("field") == "metadata.uid" for each in causes)


def _checked(status: int, body: Manifest) -> Manifest:
    if status < HTTPStatus.BAD_REQUEST:
        return body
    if status == HTTPStatus.UNAUTHORIZED:
        raise UnavailableError("the API server does not accept our credentials")
    raise RefusedError(
        str(body.get("message") or f"the API server answered {status}"), reason=str(body.get("reason") or "Refused")
    )


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    version = api_version(kind)
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{plural(kind)}" + (f"/{name}" if name else "")
