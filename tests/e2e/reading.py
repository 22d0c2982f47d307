"""Reads of a cluster through one `kubectl proxy`, as long as the process lasts.

A kubectl for every look costs the machine more than most of what is waited for: with three tests side by side it
took a quarter of all CPU. The proxy uses the same credentials, and nothing of the operator's own client.
"""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

TIMEOUT_SECONDS = 60
# Ends the proxy with whoever holds the other end of its standard input, however that ends.
_AS_LONG_AS_WE_LIVE = '"$@" & read -r _; kill $!'

Manifest = dict[str, Any]


class ReadError(AssertionError):
    """The API server could not be read, or refused; the text holds what it said."""


class Watch:
    """What happens to one object from now on, its present state first. Opened by one thread, closed by any."""

    def __init__(self, address: str, path: str) -> None:
        self._connection = http.client.HTTPConnection(address)
        self._path = path
        self._socket: socket.socket | None = None
        self._closed = False

    def events(self) -> Iterator[Manifest]:
        """Yield events until the API server ends the watch, or cannot be reached, or somebody closes it."""
        with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(self._connection):
            self._connection.connect()
            self._socket = self._connection.sock
            self._connection.request("GET", self._path)
            answer = self._connection.getresponse()
            while answer.status == 200 and not self._closed and (line := answer.readline()).endswith(b"\n"):
                event = json.loads(line)
                if event["type"] == "ERROR":  # too old, say: the next watch begins anew
                    return
                yield event

    def close(self) -> None:
        """End it."""
        self._closed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                self._socket.shutdown(socket.SHUT_RDWR)


class Reader:
    """Objects and logs of one cluster. Kinds are named as for kubectl: plural, singular or short, in any case."""

    def __init__(self, kubectl: Sequence[str], environment: Mapping[str, str]) -> None:
        command = ("sh", "-c", _AS_LONG_AS_WE_LIVE, "sh", *kubectl, "proxy", "--port=0")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(environment)
        )
        line = self._process.stdout.readline() if self._process.stdout else ""
        found = re.search(r"127\.0\.0\.1:\d+", line)
        if found is None:
            raise ReadError(f"kubectl proxy did not start: {line!r}")
        self._address = found[0]
        self._collections: dict[str, tuple[str, str, bool]] = {}
        self._lock = threading.Lock()

    def get(self, resource: str, *, namespace: str) -> Manifest | None:
        """Return the object named as `kind/name`, None when there is none."""
        kind, _, name = resource.partition("/")
        text = self._text(f"{self._path(kind, namespace)}/{quote(name)}")
        return json.loads(text) if text is not None else None

    def items(self, kind: str, *, namespace: str, labels: str = "") -> list[Manifest]:
        """Return the objects of a kind that the label selector accepts."""
        text = self._text(f"{self._path(kind, namespace)}?{urlencode({'labelSelector': labels})}")
        listed = json.loads(text) if text is not None else {"items": []}
        # A list names the kind once, for all of its items.
        of_kind = {"apiVersion": listed.get("apiVersion"), "kind": str(listed.get("kind")).removesuffix("List")}
        return [{**of_kind, **item} for item in listed["items"]]

    def watch(self, resource: str, *, namespace: str) -> Watch:
        """Follow the object named as `kind/name`, which need not exist yet."""
        kind, _, name = resource.partition("/")
        wanted = urlencode({"watch": "1", "fieldSelector": f"metadata.name={name}"})
        return Watch(self._address, f"{self._path(kind, namespace)}?{wanted}")

    def logs(self, pod: str, *, namespace: str) -> str:
        """Return all that the only container of a pod has written."""
        text = self._text(f"/api/v1/namespaces/{namespace}/pods/{pod}/log")
        if text is None:
            raise ReadError(f"there is no pod {namespace}/{pod}")
        return text

    def _text(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://{self._address}{path}", timeout=TIMEOUT_SECONDS) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise ReadError(f"{path}: {error.code} {error.read()[:2000].decode(errors='replace')}") from error
        except OSError as error:
            raise ReadError(f"{path}: {error}") from error

    def _path(self, kind: str, namespace: str) -> str:
        kind = kind.lower()
        with self._lock:
            if kind not in self._collections:  # the first one, or a definition that came since
                self._collections = {}
                for name, collection in self._discovered():
                    self._collections.setdefault(name, collection)
            if kind not in self._collections:
                raise ReadError(f"the API server knows no {kind}")
            root, plural, namespaced = self._collections[kind]
        return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"

    def _discovered(self) -> Iterator[tuple[str, tuple[str, str, bool]]]:
        groups = json.loads(self._text("/apis") or "{}").get("groups", [])
        for root in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
            for resource in json.loads(self._text(root) or "{}").get("resources", []):
                plural = resource["name"]
                if "/" not in plural:
                    for name in (plural, resource["singularName"], *resource.get("shortNames", [])):
                        yield name, (root, plural, resource["namespaced"])
