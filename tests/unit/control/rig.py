"""A whole control plane in memory: cluster, pods, clock and reconciler, driven by hand until all is at rest."""

from dataclasses import dataclass, field, replace

from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.platform import Images, Platform
from tidegate_operator.reconcile import Reconciler

from .fake_cluster import FakeCluster, copied
from .fake_planes import Controllers, FakePlanes, ManualClock

PLATFORM = Platform(version="1.0", images=Images("registry/runtime:1.0", "registry/sidecar:1.0"))
DOCS = Key(Kind.KNOWLEDGE_BASE, "acme", "docs")
DESK = Key(Kind.RETRIEVAL_PIPELINE, "acme", "desk")

# What differs between two runs and means nothing.
_VOLATILE = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


@dataclass
class Rig:
    """Put objects in, settle, look at what came of it."""

    cluster: FakeCluster = field(default_factory=FakeCluster)
    clock: ManualClock = field(default_factory=ManualClock)
    platform: Platform = PLATFORM
    planes: FakePlanes = field(init=False)
    controllers: Controllers = field(init=False)
    reconciler: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        self.planes = FakePlanes(self.cluster)
        self.controllers = Controllers(self.cluster)
        self.restart()

    def restart(self) -> None:
        """Start the operator anew: it remembers nothing."""
        self.reconciler = Reconciler(cluster=self.cluster, planes=self.planes, clock=self.clock, platform=self.platform)

    def clone(self) -> "Rig":
        """Return a rig of its own in the same state, with an operator that remembers nothing."""
        twin = Rig(cluster=self.cluster.clone(), clock=ManualClock(self.clock.moment), platform=self.platform)
        twin.planes = replace(self.planes, cluster=twin.cluster)
        twin.controllers = replace(self.controllers, cluster=twin.cluster)
        twin.restart()
        return twin

    async def settle(self, *keys: Key, rounds: int = 30) -> None:
        """Reconcile and let pods follow until a whole round changes nothing."""
        for _ in range(rounds):
            before = self.activity()
            for key in keys or (DOCS,):
                await self.reconciler(key)
            self.controllers.run()
            if self.activity() == before:
                return
        raise AssertionError(f"never at rest; last writes: {self.cluster.writes[-6:]}")

    def activity(self) -> tuple[int, int, int]:
        """Return figures that differ when anything has happened."""
        return len(self.cluster.writes), self.cluster.version, len(self.cluster.objects)

    def get(self, kind: Kind, name: str) -> Manifest:
        return self.cluster.objects[Ref(kind, "acme", name)]

    def status(self, key: Key = DOCS) -> Manifest:
        found: Manifest = self.cluster.objects[key.ref]["status"]
        return found

    def conditions(self, key: Key = DOCS) -> dict[str, tuple[str, str]]:
        """Return status and reason of each condition, by type."""
        return {each["type"]: (each["status"], each["reason"]) for each in self.status(key)["conditions"]}

    def message(self, condition: str, key: Key = DOCS) -> str:
        return next(str(each["message"]) for each in self.status(key)["conditions"] if each["type"] == condition)

    def picture(self) -> dict[str, Manifest]:
        """Return the world without what differs between two runs that did the same."""
        return {str(ref): _stable(manifest) for ref, manifest in self.cluster.objects.items()}


def _stable(manifest: Manifest) -> Manifest:
    plain: Manifest = copied(manifest)
    for member in _VOLATILE:
        plain["metadata"].pop(member, None)
    for owner in plain["metadata"].get("ownerReferences") or []:
        owner.pop("uid")
    if plain["kind"] == "Secret":
        plain.pop("data")
    return plain


def source_map(name: str = "docs-files") -> Manifest:
    """Return a ConfigMap of documents."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "acme"},
        "data": {"leave.md": "# Leave"},
    }


def knowledge_base(name: str = "docs", *, size_tokens: int = 200, **spec: object) -> Manifest:
    """Return a KnowledgeBase over one ConfigMap."""
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "KnowledgeBase",
        "metadata": {"name": name, "namespace": "acme"},
        "spec": {
            "sources": [{"name": "files", "from": {"configMap": {"name": "docs-files"}}}],
            "chunking": {"sizeTokens": size_tokens},
            **spec,
        },
    }


def pipeline(name: str = "desk", *, top_k: int = 50, **spec: object) -> Manifest:
    """Return a RetrievalPipeline over the knowledge base docs."""
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RetrievalPipeline",
        "metadata": {"name": name, "namespace": "acme"},
        "spec": {
            "knowledgeBases": [{"name": "docs"}],
            "auth": {"anonymous": {}},
            "nodes": [{"name": "lexical", "type": "bm25", "with": {"topK": top_k}}],
            "output": "lexical",
            **spec,
        },
    }


def policy(name: str = "desk", *, steps: list[Manifest] | None = None, **spec: object) -> Manifest:
    """Return a RoutingPolicy for the pipeline desk."""
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": name, "namespace": "acme"},
        "spec": {"pipeline": {"name": "desk"}, "rollout": {"steps": steps or []}, **spec},
    }


def secret(name: str) -> Manifest:
    """Return a Secret."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "acme"}, "data": {}}
