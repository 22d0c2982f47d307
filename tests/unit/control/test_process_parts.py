"""Parts of the process: settings, start-up check, freshness, wake-ups by events, resync."""

import asyncio

import kopf
import pytest
from pydantic import ValidationError

from tidegate_operator import handlers
from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import OWN_KINDS, Kind, Manifest
from tidegate_operator.core.rights import needed_rights
from tidegate_operator.errors import StartupError, UnavailableError
from tidegate_operator.freshness import Freshness
from tidegate_operator.handlers import Bell
from tidegate_operator.reconcile import Reconciler
from tidegate_operator.resync import resync
from tidegate_operator.settings import Settings, read_settings
from tidegate_operator.startup import check_startup

from .fake_cluster import FakeCluster
from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, policy


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_RUNTIME_IMAGE", "r:1")
    monkeypatch.setenv("TIDEGATE_SIDECAR_IMAGE", "s:1")


class FakeRights:
    """Serves and allows all but what is held back."""

    def __init__(self, *, absent: set[Kind] | None = None, denied: set[str] | None = None) -> None:
        self.absent = absent or set()
        self.denied = denied or set()
        self.asked: list[tuple[str, str | None]] = []

    async def served(self, kind: Kind) -> bool:
        return kind not in self.absent

    async def allowed(self, verb: str, kind: Kind, namespace: str | None, *, subresource: str = "") -> bool:
        self.asked.append((f"{verb} {kind}", namespace))
        return f"{verb} {kind}" not in self.denied


async def test_a_cluster_that_has_everything_is_accepted() -> None:
    rights = FakeRights()
    await check_startup(rights, [])
    assert len(rights.asked) == len(list(needed_rights()))
    assert {namespace for _, namespace in rights.asked} == {None}


async def test_every_missing_definition_is_named() -> None:
    with pytest.raises(StartupError, match="no KnowledgeBase, RoutingPolicy of tidegate.dev/v1alpha1; install"):
        await check_startup(FakeRights(absent={Kind.KNOWLEDGE_BASE, Kind.ROUTING_POLICY}), [])


async def test_every_missing_right_is_named_with_its_namespace() -> None:
    with pytest.raises(StartupError, match=r"create deployments\.apps in a; create deployments\.apps in b; grant"):
        await check_startup(FakeRights(denied={"create Deployment"}), ["a", "b"])


def test_settings_come_from_the_environment_and_flags(monkeypatch: pytest.MonkeyPatch, images: None) -> None:
    monkeypatch.setenv("TIDEGATE_OPERATOR_NAMESPACE", "system")
    settings = read_settings(["--namespace=a", "--namespace=b"])

    assert settings.namespaces == ["a", "b"]
    assert settings.platform().images.runtime == "r:1"
    assert settings.platform().operator_namespace == "system"
    assert read_settings([]).namespaces == []


def test_names_of_pull_secrets_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch, images: None) -> None:
    assert read_settings([]).platform().pull_secrets == ()
    monkeypatch.setenv("TIDEGATE_IMAGE_PULL_SECRETS", "registry, mirror")
    assert read_settings([]).platform().pull_secrets == ("registry", "mirror")


def test_a_missing_image_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_RUNTIME_IMAGE", raising=False)
    with pytest.raises(ValidationError, match="runtime_image"):
        Settings(sidecar_image="s:1")  # type: ignore[call-arg]


def test_a_watch_is_blind_when_a_change_that_was_read_does_not_come() -> None:
    now = [0.0]
    freshness = Freshness(clock=lambda: now[0])
    freshness.delivered(DOCS, "1")
    freshness.read(DOCS, "1")
    now[0] = 10_000.0
    assert not freshness.blind()

    freshness.read(DOCS, "2")
    now[0] += 179
    assert not freshness.blind()
    now[0] += 2
    assert freshness.blind()

    freshness.delivered(DOCS, "2")
    assert not freshness.blind()


def test_an_object_that_is_gone_makes_no_watch_blind() -> None:
    now = [0.0]
    freshness = Freshness(clock=lambda: now[0])
    freshness.read(DOCS, "1")
    freshness.forgotten(DOCS)
    now[0] = 10_000.0
    assert not freshness.blind()


def test_a_read_that_was_overtaken_by_a_deletion_makes_no_watch_blind() -> None:
    now = [0.0]
    freshness = Freshness(clock=lambda: now[0])
    freshness.delivered(DOCS, "1")
    freshness.forgotten(DOCS)
    freshness.read(DOCS, "1")
    freshness.read(DOCS, None)
    now[0] = 10_000.0
    assert not freshness.blind()


async def test_a_key_that_is_gone_is_told_as_read() -> None:
    cluster, told = FakeCluster(), list[tuple[Key, str | None]]()
    rig = Rig(cluster=cluster)
    reconciler = Reconciler(
        cluster=cluster,
        planes=rig.planes,
        clock=rig.clock,
        platform=rig.platform,
        on_read=lambda key, version: told.append((key, version)),
    )
    await reconciler(DOCS)
    assert told == [(DOCS, None)]


def in_cluster(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7"}}


def test_events_wake_whom_they_concern() -> None:
    woken: list[Key] = []
    bell = Bell(woken.append, Freshness())
    bell.ring(Kind.RETRIEVAL_PIPELINE, in_cluster(pipeline()), deleted=False)
    bell.ring(Kind.ROUTING_POLICY, in_cluster(policy()), deleted=False)
    assert woken == [DESK, DESK]

    woken.clear()
    bell.ring(Kind.KNOWLEDGE_BASE, in_cluster(knowledge_base()), deleted=False)
    assert set(woken) == {DOCS, DESK}

    woken.clear()
    bell.ring(Kind.RETRIEVAL_PIPELINE, in_cluster(pipeline()), deleted=True)
    bell.ring(Kind.KNOWLEDGE_BASE, in_cluster(knowledge_base()), deleted=True)
    assert woken == [DESK, DOCS]


async def test_kopf_gets_event_handlers_only_and_no_way_to_write() -> None:
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    woken: list[Key] = []
    handlers.configure(settings)
    handlers.register(registry, settings, Bell(woken.append, Freshness()))

    watching = registry._watching.get_all_handlers()
    assert len(list(watching)) == len(OWN_KINDS) + len(handlers.WATCHED_CHILDREN)
    assert not list(registry._changing.get_all_handlers())
    assert not list(registry._spawning.get_all_handlers())
    assert settings.scanning.disabled
    assert not settings.posting.enabled
    first = next(iter(watching))
    await first.fn(event={"type": "MODIFIED", "object": in_cluster(knowledge_base())}, patch=None)  # type: ignore[call-arg]
    assert woken == [DOCS]


async def test_resync_wakes_every_key_and_survives_an_api_server_that_is_away() -> None:
    class Flaky(FakeCluster):
        tries = 0

        async def find(
            self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = ""
        ) -> list[Manifest]:
            self.tries += 1
            if self.tries == 1:
                raise UnavailableError("away")
            return await super().find(kind, namespace, labels=labels, fields=fields)

    cluster, woken, enough = Flaky(), [], asyncio.Event()
    cluster.put(knowledge_base())
    cluster.put(pipeline())

    def wake(key: Key, after: float) -> None:
        woken.append(key)
        if len(woken) == 2:
            enough.set()

    running = asyncio.create_task(resync(cluster, wake, namespaces=[], period_seconds=0.001, jitter=lambda: 0.5))
    async with asyncio.timeout(5):
        await enough.wait()
    running.cancel()
    assert set(woken[:2]) == {DOCS, DESK}
