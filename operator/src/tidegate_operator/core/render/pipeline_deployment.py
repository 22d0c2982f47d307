"""The pods that answer: a runtime as native sidecar, and the front door as main container.

So the front door starts last and stops first. The runtime listens only on a socket in a shared
folder; its startup probe means "the process answers", because the front door must be able to say why
it is not ready. Only the front door has a service-account token.
"""

from dataclasses import dataclass

from tidegate_api.config import SIDECAR_CONFIG_KEY, TABLE_KEY
from tidegate_api.v1alpha1.common import Resources, duration_seconds
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Annotation, Component, Label, deployment_name, indexer_name, routing_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.platform import Images
from tidegate_operator.core.render.custom_pod import customised
from tidegate_operator.core.render.indexer_deployment import INDEXER_PORT
from tidegate_operator.core.render.indexer_secret import TOKEN_KEY
from tidegate_operator.core.render.meta import child, labels_of
from tidegate_operator.core.render.networkpolicy import PEER_PORT, PUBLIC_PORT, STATE_PORT
from tidegate_operator.core.render.pod import (
    POD_SECURITY_CONTEXT,
    SECURITY_CONTEXT,
    SERVICE_ACCOUNT_PATH,
    exec_probe,
    http_probe,
    mount,
    pull_secrets,
    resources,
    service_account_volume,
    volume_name,
)

# Raise it when a change of this module makes other pods from equal inputs.
TEMPLATE_VERSION = "1"
RUNTIME_RESOURCES = Resources(requests={"cpu": "500m", "memory": "512Mi"}, limits={"cpu": "2", "memory": "1Gi"})
SIDECAR_RESOURCES = Resources(requests={"cpu": "100m", "memory": "96Mi"}, limits={"cpu": "1", "memory": "256Mi"})
AUTH_PATHS = {"api_keys": "/etc/tidegate/auth/api-keys", "trusted_headers": "/etc/tidegate/auth/trusted-headers"}
# Endpoints need this long to stop naming a pod that is going away.
PRE_STOP_SECONDS = 5
_GRACE_MIN_SECONDS = 60
_SOCKET = "/run/tidegate/runtime.sock"
_CONFIG_PATH = "/etc/tidegate/config"
_HOP_KEYS_PATH = "/etc/tidegate/hop-keys"
_REVISIONS_PATH = "/var/lib/tidegate"
_ANSWERS = (
    "import http.client as h,socket as s;c=h.HTTPConnection('runtime',timeout=3);"
    f"c.sock=s.socket(s.AF_UNIX);c.sock.settimeout(3);c.sock.connect('{_SOCKET}');"
    "c.request('GET','/healthz');exit(c.getresponse().status!=200)"
)


@dataclass(frozen=True, slots=True)
class PipelinePod:
    """What the pods of one Deployment are made from; nothing else makes other pods."""

    deployment: str
    images: Images
    pull_policy: str
    knowledge_bases: tuple[str, ...]
    spec: RetrievalPipelineSpec
    pull_secrets: tuple[str, ...] = ()

    def inputs(self) -> Manifest:
        """Return what the pods depend on, for their hash. What a process can reload is left out."""
        spec = self.spec
        return {
            "deployment": self.deployment,
            "images": [self.images.runtime, self.images.sidecar],
            "pullPolicy": self.pull_policy,
            "knowledgeBases": list(self.knowledge_bases),
            "auth": spec.auth.to_document(),
            "runtime": spec.runtime.model_copy(update={"version": ""}).to_document(),
            "sidecar": spec.sidecar.to_document(),
            "graceSeconds": _grace_seconds(spec),
            # Absent where there are none: a new setting of the operator must not roll pods that do not use it.
            **pull_secrets(self.pull_secrets),
        }


def account_of(spec: RetrievalPipelineSpec, owner: Owner) -> str:
    """Return the service account of the pods: the user's, or ours."""
    return str(spec.runtime.pod.get("serviceAccountName") or routing_name(owner.ref.name))


def pipeline_deployment(pod: PipelinePod, owner: Owner) -> Manifest:
    """Return the Deployment that serves the releases with this need."""
    labels = {**labels_of(owner, Component.RETRIEVAL), Label.DEPLOYMENT.value: pod.deployment}
    replaces = pod.spec.runtime.update == "Replace"
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(pod, owner)}
    manifest = child(
        Kind.DEPLOYMENT,
        deployment_name(owner.ref.name, pod.deployment),
        owner,
        Component.RETRIEVAL,
        spec={
            "replicas": 1 if pod.spec.runtime.replicas is None else pod.spec.runtime.replicas,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "Recreate"}
            if replaces
            else {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": customised(template, pod.spec.runtime.pod, container="runtime"),
        },
    )
    manifest["metadata"]["labels"] = labels
    manifest["metadata"]["annotations"] = {Annotation.TEMPLATE.value: TEMPLATE_VERSION}
    return manifest


def _grace_seconds(spec: RetrievalPipelineSpec) -> int:
    """Return how long a pod may take to end: longer than any request, and the same for all common timeouts."""
    return max(_GRACE_MIN_SECONDS, PRE_STOP_SECONDS + 15 + int(duration_seconds(spec.limits.request_timeout)))


def _pod_spec(pod: PipelinePod, owner: Owner) -> Manifest:
    return {
        "automountServiceAccountToken": False,
        "initContainers": [_runtime(pod, owner)],
        "containers": [_front_door(pod, owner)],
        **pull_secrets(pod.pull_secrets),
        "securityContext": POD_SECURITY_CONTEXT,
        "serviceAccountName": account_of(pod.spec, owner),
        "terminationGracePeriodSeconds": _grace_seconds(pod.spec),
        "volumes": _volumes(pod, owner),
    }


def _runtime(pod: PipelinePod, owner: Owner) -> Manifest:
    pulls = [
        f"--pull={name}=http://{indexer_name(name)}.{owner.ref.namespace}.svc:{INDEXER_PORT.number},"
        f"{_token_path(name)}/{TOKEN_KEY}"
        for name in pod.knowledge_bases
    ]
    asked = pod.spec.runtime
    compute = resources(asked.resources, defaults=RUNTIME_RESOURCES)
    if asked.gpu.count:
        compute["limits"][asked.gpu.resource] = str(asked.gpu.count)
        compute["requests"][asked.gpu.resource] = str(asked.gpu.count)
    return {
        "name": "runtime",
        "image": pod.images.runtime,
        "imagePullPolicy": pod.pull_policy,
        "restartPolicy": "Always",
        "command": ["python", "-m", "tidegate_runtime"],
        "args": [f"--socket={_SOCKET}", f"--revisions-root={_REVISIONS_PATH}", *pulls],
        "resources": compute,
        "securityContext": SECURITY_CONTEXT,
        "startupProbe": exec_probe("python", "-c", _ANSWERS, period_seconds=1, failures=120),
        "livenessProbe": exec_probe("python", "-c", _ANSWERS, period_seconds=20, failures=6),
        "volumeMounts": [
            mount("run", "/run/tidegate", read_only=False),
            mount("revisions", _REVISIONS_PATH, read_only=False),
            mount("runtime-tmp", "/tmp", read_only=False),  # noqa: S108 - inside the pod
            *(mount(volume_name("token", name), _token_path(name)) for name in pod.knowledge_bases),
        ],
    }


def _front_door(pod: PipelinePod, owner: Owner) -> Manifest:
    return {
        "name": "sidecar",
        "image": pod.images.sidecar,
        "imagePullPolicy": pod.pull_policy,
        "command": ["python", "-m", "tidegate_sidecar"],
        "args": [
            f"--config={_CONFIG_PATH}/{SIDECAR_CONFIG_KEY}",
            f"--table={_CONFIG_PATH}/{TABLE_KEY}",
            f"--configmap={owner.ref.namespace}/{routing_name(owner.ref.name)}",
            f"--deployment={pod.deployment}",
            f"--runtime-socket={_SOCKET}",
            f"--listen=0.0.0.0:{PUBLIC_PORT.number}",
            f"--state-listen=0.0.0.0:{STATE_PORT.number}",
            f"--peer-listen=0.0.0.0:{PEER_PORT.number}",
            f"--hop-keys={_HOP_KEYS_PATH}",
        ],
        "ports": [{"name": port.name, "containerPort": port.number} for port in (PUBLIC_PORT, STATE_PORT, PEER_PORT)],
        "resources": resources(pod.spec.sidecar.resources, defaults=SIDECAR_RESOURCES),
        "securityContext": SECURITY_CONTEXT,
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_SECONDS}}},
        "readinessProbe": http_probe("/readyz", PUBLIC_PORT.number, period_seconds=2, failures=2),
        "livenessProbe": http_probe("/healthz", PUBLIC_PORT.number, period_seconds=10, failures=6),
        "volumeMounts": [
            mount("run", "/run/tidegate", read_only=False),
            mount("config", _CONFIG_PATH),
            mount("hop-keys", _HOP_KEYS_PATH),
            mount("api-access", SERVICE_ACCOUNT_PATH),
            mount("sidecar-tmp", "/tmp", read_only=False),  # noqa: S108 - inside the pod
            *(mount(use, AUTH_PATHS[member]) for use, member, _ in _auth(pod.spec)),
        ],
    }


def _auth(spec: RetrievalPipelineSpec) -> list[tuple[str, str, str]]:
    """Return the Secrets of callers as (volume, member of the config, Secret)."""
    sources = (("api-keys", "api_keys", spec.auth.api_keys), ("proxy", "trusted_headers", spec.auth.trusted_headers))
    return [(use, member, source.secret_ref.name) for use, member, source in sources if source is not None]


def _token_path(knowledge_base: str) -> str:
    return f"/etc/tidegate/tokens/{knowledge_base}"


def _volumes(pod: PipelinePod, owner: Owner) -> list[Manifest]:
    documents = [{"key": key, "path": key} for key in (SIDECAR_CONFIG_KEY, TABLE_KEY)]
    return [
        {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "revisions", "emptyDir": {}},
        {"name": "runtime-tmp", "emptyDir": {}},
        {"name": "sidecar-tmp", "emptyDir": {}},
        {"name": "config", "configMap": {"name": routing_name(owner.ref.name), "items": documents}},
        {"name": "hop-keys", "secret": {"secretName": routing_name(owner.ref.name), "defaultMode": 0o440}},
        service_account_volume("api-access"),
        *(
            {"name": volume_name("token", name), "secret": {"secretName": indexer_name(name), "defaultMode": 0o440}}
            for name in pod.knowledge_bases
        ),
        *({"name": use, "secret": {"secretName": secret, "defaultMode": 0o440}} for use, _, secret in _auth(pod.spec)),
    ]
