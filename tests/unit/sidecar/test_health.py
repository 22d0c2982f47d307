"""Readiness, the state document and the routes that lead to them."""

import json

import pytest
from tests.unit.sidecar.builders import PIPELINE, config, table
from tests.unit.sidecar.fakes import FakeRuntimeAdmin

from tidegate_sidecar.answers import Response
from tidegate_sidecar.health import Health
from tidegate_sidecar.http1 import Request
from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.metrics import MAX_COUNTED_RELEASES, Recorder
from tidegate_sidecar.releases import ReleaseKeeper
from tidegate_sidecar.routes import public_routes, state_routes
from tidegate_sidecar.settings import SettingsKeeper
from tidegate_sidecar.tables import TableKeeper


def unused(_request, _respond) -> None:
    """A handler of calls that these tests do not make."""


class Pod:
    """The parts that health reads; the test moves them."""

    def __init__(self, folder, settings=None) -> None:
        path = folder / "config.json"
        path.write_text((settings or config()).model_dump_json(by_alias=True))
        self.runtime = FakeRuntimeAdmin()
        self.settings = SettingsKeeper(path)
        self.releases = ReleaseKeeper(self.runtime, InFlight())
        self.tables = TableKeeper(PIPELINE, on_change=self.releases.wake)
        self.recorder = Recorder(PIPELINE)
        self.health = Health(settings=self.settings, tables=self.tables, releases=self.releases, recorder=self.recorder)

    async def obey(self, document) -> None:
        await self.tables.offer(document.model_dump_json(by_alias=True).encode(), "file")
        await self.keep()

    async def keep(self) -> None:
        await self.releases.step(self.tables.wanted)

    def get(self, target: bytes, *, state: bool = False) -> Response:
        answers: list[Response] = []
        routes = state_routes(self.health, unused) if state else public_routes(unused, self.health)
        routes(Request(b"GET", target, {}, b""), answers.append)
        return answers[0]

    def not_ready(self) -> str:
        answer = self.get(b"/readyz")
        return "" if answer.status == 200 else json.loads(answer.body)["error"]["message"]


async def test_readiness_names_the_first_thing_that_is_missing(tmp_path):
    pod = Pod(tmp_path)
    assert pod.not_ready() == "no routing table yet"
    pod.runtime.opens_as = "Loading"
    await pod.tables.offer(table("rel-a").model_dump_json(by_alias=True).encode(), "file")
    assert pod.not_ready() == "the runtime has not been asked yet"
    await pod.keep()
    assert pod.not_ready() == "release rel-a is Loading"
    pod.runtime.phases["rel-a"] = "Warm"
    await pod.keep()
    assert pod.not_ready() == ""
    pod.runtime.reachable = False
    await pod.keep()
    assert "can't be reached" in pod.not_ready()
    assert pod.get(b"/healthz?x=1").status == 200


async def test_a_refused_stable_release_is_told_with_its_reason(tmp_path):
    pod = Pod(tmp_path)
    pod.runtime.refuses.add("rel-a")
    await pod.obey(table("rel-a"))
    assert pod.not_ready() == "release rel-a is Failed: no such node type"


async def test_a_candidate_that_is_not_warm_does_not_take_the_pod_out(tmp_path):
    pod = Pod(tmp_path)
    pod.runtime.refuses.add("rel-b")
    await pod.obey(table("rel-a", "rel-b", candidate="rel-b"))
    assert pod.not_ready() == ""


async def test_without_a_live_key_the_pod_is_not_ready(tmp_path):
    pod = Pod(tmp_path, config(anonymous=False, api_keys_dir=str(tmp_path / "none")))
    await pod.obey(table("rel-a"))
    assert "mount the Secret that spec.auth.apiKeys.secretRef names" in pod.not_ready()
    assert json.loads(pod.get(b"/v1/state", state=True).body)["reason"] == "SecretInvalid"


async def test_the_state_document_tells_what_is_in_force_and_all_that_is_wrong(tmp_path):
    pod = Pod(tmp_path)
    await pod.obey(table("rel-a", version=4))
    pod.recorder.count(arm="stable", outcome="ok", seconds=0.1, release="rel-a")
    await pod.tables.offer(b"{", "file")
    state = json.loads(pod.get(b"/v1/state", state=True).body)
    assert state["tableVersion"] == 4
    assert state["tableSource"] == "file"
    assert (state["ready"], state["reason"]) == (True, "")
    assert "newest routing table is broken" in state["message"]
    assert state["releases"] == [{"name": "rel-a", "phase": "Warm", "message": "", "contentGenerations": {}}]
    assert state["requests"] == {"rel-a": {"ok": 1}}
    assert state["process"] != json.loads(Pod(tmp_path).get(b"/v1/state", state=True).body)["process"]


@pytest.mark.parametrize("state", [False, True])
async def test_other_calls_are_not_found_and_told_what_is_served(tmp_path, state):
    answer = Pod(tmp_path).get(b"/v1/" + b"x" * 200, state=state)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (404, "not_found")
    assert ("/metrics" in error["message"]) is state
    assert "x" * 64 not in error["message"]


def test_counters_by_release_are_bounded():
    recorder = Recorder(PIPELINE)
    for number in range(MAX_COUNTED_RELEASES + 10):
        recorder.count(arm="stable", outcome="ok", seconds=0.1, release=f"rel-{number}")
    assert len(recorder.by_release) == MAX_COUNTED_RELEASES
    assert f"rel-{MAX_COUNTED_RELEASES + 9}" in recorder.by_release
