"""The one writer of a knowledge base's revisions: one pod, never two at a time.

`Recreate`, because the volume and the revisions have one writer. Sources are mounted whole, never by
subPath, which would stay at an old state; a ConfigMap that is missing does not keep the pod from
starting, since the indexer says what it misses and the other sources go on.
"""

from dataclasses import dataclass

from tidegate_api.config import INDEXER_CONFIG_KEY
from tidegate_api.v1alpha1.common import Resources
from tidegate_api.v1alpha1.knowledgebase import Build, EmbeddedStore, KnowledgeBaseSpec
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Annotation, Component, indexer_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.platform import Platform
from tidegate_operator.core.render.indexer_config import claim_path, config_map_path
from tidegate_operator.core.render.indexer_secret import TOKEN_KEY
from tidegate_operator.core.render.meta import child, labels_of
from tidegate_operator.core.render.pod import (
    POD_SECURITY_CONTEXT,
    SECURITY_CONTEXT,
    SERVICE_ACCOUNT_PATH,
    http_probe,
    mount,
    pull_secrets,
    resources,
    service_account_volume,
    volume_name,
)
from tidegate_operator.core.render.service import Port

# Raise it when a change of this module makes other pods from equal inputs.
TEMPLATE_VERSION = "1"
INDEXER_PORT = Port("indexer", 8083)
DEFAULT_RESOURCES = Resources(requests={"cpu": "250m", "memory": "512Mi"}, limits={"cpu": "2", "memory": "1Gi"})
_CONFIG_PATH = "/etc/tidegate/config"
_TOKEN_PATH = "/etc/tidegate/token"  # noqa: S105 - a folder


@dataclass(frozen=True, slots=True)
class IndexerPod:
    """What an indexer's pod is made from; nothing else makes another pod."""

    image: str
    pull_policy: str
    store_claim: str
    config_maps: tuple[tuple[str, str], ...]  # (source, ConfigMap)
    claims: tuple[str, ...]
    build: Build
    pull_secrets: tuple[str, ...] = ()

    @staticmethod
    def of(spec: KnowledgeBaseSpec, owner: Owner, *, image: str, platform: Platform) -> "IndexerPod":
        """Return the pod that `spec` asks for."""
        mounted = [(source.name, source.from_.config_map.name) for source in spec.sources if source.from_.config_map]
        claims = {source.from_.volume.claim_name for source in spec.sources if source.from_.volume}
        return IndexerPod(
            image=image,
            pull_policy=platform.pull_policy,
            store_claim=store_of(spec).claim_name or indexer_name(owner.ref.name),
            config_maps=tuple(sorted(mounted)),
            claims=tuple(sorted(claims)),
            build=spec.build,
            pull_secrets=platform.pull_secrets,
        )

    def inputs(self) -> Manifest:
        """Return what the pod depends on, for its hash."""
        return {
            "image": self.image,
            "pullPolicy": self.pull_policy,
            "storeClaim": self.store_claim,
            "configMaps": [list(each) for each in self.config_maps],
            "claims": list(self.claims),
            "build": self.build.to_document(),
            # Absent where there are none: a new setting of the operator must not roll pods that do not use it.
            **pull_secrets(self.pull_secrets),
        }


def store_of(spec: KnowledgeBaseSpec) -> EmbeddedStore:
    """Return the settings of the embedded store, which is also what an absent store means."""
    return (spec.store.index.embedded if spec.store.index is not None else None) or EmbeddedStore()


def indexer_deployment(pod: IndexerPod, owner: Owner) -> Manifest:
    """Return the Deployment of a knowledge base's indexer."""
    labels = labels_of(owner, Component.INDEXER)
    manifest = child(
        Kind.DEPLOYMENT,
        indexer_name(owner.ref.name),
        owner,
        Component.INDEXER,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(pod, owner)},
        },
    )
    manifest["metadata"]["annotations"] = {Annotation.TEMPLATE.value: TEMPLATE_VERSION}
    return manifest


def _pod_spec(pod: IndexerPod, owner: Owner) -> Manifest:
    volumes, mounts = _volumes(pod, owner)
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "containers": [_container(pod, owner, mounts)],
        **pull_secrets(pod.pull_secrets),
        "securityContext": POD_SECURITY_CONTEXT,
        "serviceAccountName": indexer_name(owner.ref.name),
        "terminationGracePeriodSeconds": 30,
        "volumes": volumes,
    }
    if pod.build.node_selector:
        spec["nodeSelector"] = dict(pod.build.node_selector)
    if pod.build.tolerations:
        spec["tolerations"] = list(pod.build.tolerations)
    return spec


def _container(pod: IndexerPod, owner: Owner, mounts: list[Manifest]) -> Manifest:
    port = INDEXER_PORT
    return {
        "name": "indexer",
        "image": pod.image,
        "imagePullPolicy": pod.pull_policy,
        "command": ["python", "-m", "tidegate_runtime.indexer"],
        "args": [
            f"--config={_CONFIG_PATH}/{INDEXER_CONFIG_KEY}",
            f"--configmap={owner.ref.namespace}/{indexer_name(owner.ref.name)}",
            "--root=/data",
            f"--listen=0.0.0.0:{port.number}",
            f"--token-file={_TOKEN_PATH}/{TOKEN_KEY}",
        ],
        "ports": [{"name": port.name, "containerPort": port.number}],
        "resources": resources(pod.build.resources, defaults=DEFAULT_RESOURCES),
        "securityContext": SECURITY_CONTEXT,
        "startupProbe": http_probe("/healthz", port.number, period_seconds=1, failures=120),
        "readinessProbe": http_probe("/healthz", port.number, period_seconds=5, failures=3),
        "livenessProbe": http_probe("/healthz", port.number, period_seconds=10, failures=6),
        "volumeMounts": mounts,
    }


def _volumes(pod: IndexerPod, owner: Owner) -> tuple[list[Manifest], list[Manifest]]:
    name = indexer_name(owner.ref.name)
    volumes: list[Manifest] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": pod.store_claim}},
        {
            "name": "config",
            "configMap": {"name": name, "items": [{"key": INDEXER_CONFIG_KEY, "path": INDEXER_CONFIG_KEY}]},
        },
        {"name": "token", "secret": {"secretName": name, "defaultMode": 0o440}},
        {"name": "tmp", "emptyDir": {}},
        service_account_volume("api-access"),
    ]
    mounts = [
        mount("data", "/data", read_only=False),
        mount("config", _CONFIG_PATH),
        mount("token", _TOKEN_PATH),
        mount("tmp", "/tmp", read_only=False),  # noqa: S108 - inside the pod
        mount("api-access", SERVICE_ACCOUNT_PATH),
    ]
    for source, config_map in pod.config_maps:
        volume = volume_name("source", source)
        volumes.append({"name": volume, "configMap": {"name": config_map, "optional": True}})
        mounts.append(mount(volume, str(config_map_path(source))))
    for claim in pod.claims:
        volume = volume_name("claim", claim)
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
        mounts.append(mount(volume, str(claim_path(claim))))
    return volumes, mounts
