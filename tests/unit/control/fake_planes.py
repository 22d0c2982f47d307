"""Indexers, pods and Kubernetes' own controllers in memory: they do at once what the documents ask for.

`FakePlanes` answers for the pods from what the cluster holds, as a real indexer and real sidecars
would; `run_controllers` is the Deployment controller and the kubelet. Tests hold things back to see
what happens in between.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tidegate_api.config import (
    Census,
    DocumentFailure,
    IndexerConfig,
    IndexerState,
    ReleaseState,
    RevisionState,
    RoutingTable,
    SidecarConfig,
    SidecarState,
    SyncState,
)
from tidegate_api.shape import Language
from tidegate_operator.core.kinds import Kind, Ref

from .fake_cluster import FakeCluster


@dataclass
class ManualClock:
    """Tells the time that a test sets."""

    moment: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@dataclass
class FakePlanes:
    """Answers of indexers and sidecars. Members are what a test may hold back or spoil."""

    cluster: FakeCluster
    language: Language = "en"
    building: set[str] = field(default_factory=set)  # revisions that are not ready yet
    failed: dict[str, str] = field(default_factory=dict)  # revisions that could not be built
    foreign: set[str] = field(default_factory=set)  # revisions whose encoder does not know the documents' language
    full: set[str] = field(default_factory=set)  # revisions whose edits find no room on the volume
    full_but: set[str] | None = None  # the revisions that were built when the volume became full; None = it is not
    silent: bool = False  # nobody answers
    stale: set[str] = field(default_factory=set)  # pods that have not seen the newest table
    warm: set[str] | None = None  # the releases that are loaded; None = all
    broken: str = ""  # why the others cannot be opened; empty = they are being loaded
    unready: tuple[str, str] | None = None  # reason and message of sidecars that are not ready; None = they are
    failing: tuple[str, ...] = ()  # documents that could not be indexed at the last look
    load_bytes: int = 0  # of every revision that is ready
    polls: int = 0
    _obeyed: dict[Ref, dict[str, str]] = field(default_factory=dict)  # what pods go on with when it is gone

    async def indexer(self, namespace: str, knowledge_base: str) -> IndexerState | None:
        self.polls += 1
        found = self.cluster.objects.get(Ref(Kind.CONFIG_MAP, namespace, f"{knowledge_base}-indexer"))
        if self.silent or found is None:
            return None
        config = IndexerConfig.model_validate_json(found["data"]["config.json"])
        return IndexerState(
            process="p1",
            config_hash=config.config_hash(),
            census=Census(language=self.language, documents=3),
            revisions=[self._revision(revision.name) for revision in config.revisions],
            sync=SyncState(
                last_at="2026-01-01T12:00:00Z",
                last_handled=config.sync,
                failed=len(self.failing),
                failures=[DocumentFailure(document=name, reason=f"{name} is broken") for name in self.failing],
            ),
        )

    async def sidecars(self, addresses: Mapping[str, str]) -> Mapping[str, SidecarState]:
        self.polls += 1
        return {} if self.silent else {pod: self._sidecar(pod) for pod in addresses}

    def _revision(self, name: str) -> RevisionState:
        if name in self.failed:
            return RevisionState(name=name, phase="Failed", message=self.failed[name], language=self.language)
        if name in self.building:
            return RevisionState(
                name=name, phase="Building", documents_done=1, documents_total=3, language=self.language
            )
        if self.full_but is not None and name not in self.full_but:
            return RevisionState(
                name=name,
                phase="Building",
                message="full",
                reason="StoreFull",
                documents_total=3,
                language=self.language,
            )
        return RevisionState(
            name=name,
            phase="Ready",
            reason="StoreFull" if name in self.full else "",
            documents=3,
            chunks=9,
            load_bytes=self.load_bytes,
            language=self.language,
            provides=["bm25"] if name in self.foreign else ["bm25", "dense"],
            ready_at="2026-01-01T12:00:00Z",
        )

    def _sidecar(self, pod: str) -> SidecarState:
        manifest = next(item for item in self.cluster.of_kind(Kind.POD) if item["metadata"]["name"] == pod)
        labels, namespace = manifest["metadata"]["labels"], manifest["metadata"]["namespace"]
        ref = Ref(Kind.CONFIG_MAP, namespace, f"{labels['tidegate.dev/pipeline']}-routing")
        if ref in self.cluster.objects:
            self._obeyed[ref] = self.cluster.objects[ref]["data"]
        data = self._obeyed[ref]
        if "routing.json" not in data:
            return SidecarState(process="p1", message="no table")
        table = RoutingTable.model_validate_json(data["routing.json"])
        here = labels["tidegate.dev/deployment"]
        behind = pod in self.stale
        return SidecarState(
            process="p1",
            table_version=table.version - behind,
            table_hash="" if behind else table.table_hash(),
            config_hash=SidecarConfig.model_validate_json(data["sidecar.json"]).config_hash(),
            releases=[self._release(each.name) for each in table.releases if each.deployment == here and not behind],
            ready=self.unready is None,
            reason=self.unready[0] if self.unready is not None else "",
            message=self.unready[1] if self.unready is not None else "",
        )

    def _release(self, name: str) -> ReleaseState:
        if self.warm is None or name in self.warm:
            return ReleaseState(name=name, phase="Warm")
        return ReleaseState(name=name, phase="Failed" if self.broken else "Loading", message=self.broken)


@dataclass
class Controllers:
    """Makes pods for Deployments and reports them ready."""

    cluster: FakeCluster
    held: set[str] = field(default_factory=set)  # Deployments whose pods do not start
    unprobed: set[str] = field(default_factory=set)  # Deployments whose pods run and are not counted as ready yet
    failures: dict[str, str] = field(default_factory=dict)  # Deployments that make no pods, and why
    pending: dict[str, str] = field(default_factory=dict)  # Deployments whose pods find no node, and why

    def run(self) -> None:
        """Bring every Deployment's pods and status to what its spec says."""
        wanted: set[Ref] = set()
        for deployment in self.cluster.of_kind(Kind.DEPLOYMENT):
            wanted |= self._run(deployment)
        for pod in self.cluster.of_kind(Kind.POD):
            ref = Ref(Kind.POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
            if ref not in wanted:
                self.cluster.remove(ref)

    def _run(self, deployment: dict[str, object]) -> set[Ref]:
        metadata, spec = deployment["metadata"], deployment["spec"]
        assert isinstance(metadata, dict)
        assert isinstance(spec, dict)
        name, namespace, replicas = metadata["name"], metadata["namespace"], spec.get("replicas", 1)
        ref = Ref(Kind.DEPLOYMENT, namespace, name)
        if name in self.failures:
            condition = {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": self.failures[name],
            }
            self._report(ref, metadata["generation"], replicas=0, ready=0, conditions=[condition])
            return set()
        starts = name not in self.held and name not in self.pending
        ready = starts and name not in self.unprobed
        pods = {Ref(Kind.POD, namespace, f"{name}-{index}") for index in range(replicas)}
        for index, pod in enumerate(sorted(pods)):
            self._start(
                pod,
                spec["template"]["metadata"]["labels"],
                f"10.0.0.{index}",
                starts=starts,
                ready=ready,
                why=self.pending.get(name),
            )
        self._report(ref, metadata["generation"], replicas=replicas, ready=replicas if ready else 0, conditions=[])
        return pods

    def _start(
        self, ref: Ref, labels: dict[str, str], address: str, *, starts: bool, ready: bool, why: str | None
    ) -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        if why is not None:
            conditions.append({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why})
        if ref not in self.cluster.objects:
            manifest = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": ref.name, "namespace": ref.namespace, "labels": labels},
            }
            self.cluster.put(manifest, manager="kubelet")
        status = {"podIP": address if starts else "", "conditions": conditions}
        if self.cluster.objects[ref].get("status") != status:
            self.cluster.set_status(ref, status)

    def _report(
        self, ref: Ref, generation: int, *, replicas: int, ready: int, conditions: list[dict[str, str]]
    ) -> None:
        status = {
            "observedGeneration": generation,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": ready,
            "conditions": conditions,
        }
        if self.cluster.objects[ref].get("status") != status:
            self.cluster.set_status(ref, status)


def document_of(manifest: dict[str, object]) -> str:
    """Return a manifest as text, for comparing worlds."""
    return json.dumps(manifest, sort_keys=True)
