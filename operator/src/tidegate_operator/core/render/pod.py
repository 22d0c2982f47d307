"""What every pod of ours has: the restricted security profile, bounded resources, no needless token.

Any namespace that enforces the `restricted` profile and a quota on limits must accept these pods, so
each container says all of it, init containers included.
"""

from collections.abc import Iterable

from tidegate_api.hashing import content_hash
from tidegate_api.v1alpha1.common import Resources, quantity_value
from tidegate_operator.core.kinds import Manifest

USER_ID = 65532

SECURITY_CONTEXT: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}

POD_SECURITY_CONTEXT: Manifest = {
    "fsGroup": USER_ID,
    "fsGroupChangePolicy": "OnRootMismatch",
    "runAsGroup": USER_ID,
    "runAsNonRoot": True,
    "runAsUser": USER_ID,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def resources(asked: Resources, *, defaults: Resources) -> Manifest:
    """Return requests and limits: as asked, the rest by default, with no request above its limit.

    Where one of the two was asked for, the other default gives way to it; where both were asked for,
    they stay, and the API server says what is wrong with them.
    """
    limits, requests = {**defaults.limits, **asked.limits}, {**defaults.requests, **asked.requests}
    for name in requests.keys() & limits.keys():
        if quantity_value(requests[name]) <= quantity_value(limits[name]):
            continue
        if name not in asked.limits:
            limits[name] = requests[name]
        elif name not in asked.requests:
            requests[name] = limits[name]
    return {
        "limits": {name: str(value) for name, value in sorted(limits.items())},
        "requests": {name: str(value) for name, value in sorted(requests.items())},
    }


def exec_probe(*command: str, period_seconds: int, failures: int) -> Manifest:
    """Return a probe that runs a command."""
    return {
        "exec": {"command": list(command)},
        "periodSeconds": period_seconds,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def http_probe(path: str, port: int, *, period_seconds: int, failures: int) -> Manifest:
    """Return a probe that asks over HTTP."""
    return {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period_seconds,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def service_account_volume(name: str) -> Manifest:
    """Return the volume of a service-account token, for the one container that may speak to the API server."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": name,
        "projected": {
            "defaultMode": 0o440,
            "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ],
        },
    }


def mount(volume: str, path: str, *, read_only: bool = True) -> Manifest:
    """Return a mount; a writable one says nothing, because the API server leaves out what is false."""
    return {"name": volume, "mountPath": path} | ({"readOnly": True} if read_only else {})


def pull_secrets(names: Iterable[str]) -> Manifest:
    """Return the member of a pod's spec that names the registry's credentials; nothing where there are none."""
    listed = [{"name": name} for name in names]
    return {"imagePullSecrets": listed} if listed else {}


def volume_name(use: str, what: str) -> str:
    """Return the name of a volume for something whose own name may be too long, or hold dots."""
    return f"{use}-{content_hash(what)}"
