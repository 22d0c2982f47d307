"""The indexer's HTTP side: state for everybody in the namespace, segments for bearers of the token."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig, RevisionState, SourceConfig, VolumeFrom
from tidegate_api.shape import ALGORITHMS, ChunkingShape, RevisionShape
from tidegate_runtime.indexer.build import build_revision
from tidegate_runtime.indexer.server import IndexerServer
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.pulling import Mirror, Origin
from tidegate_runtime.stores.embedded import MANIFEST_NAME, Manifest

Client = TestClient[Request, Application]

SHAPE = RevisionShape(
    language="en",
    chunking=ChunkingShape(strategy="recursive", size_tokens=50, overlap_tokens=0),
    embedder=FAKE_FINGERPRINT,
    algorithms=ALGORITHMS,
)
NAME = SHAPE.revision_name("kb")
BEARER = {"Authorization": "Bearer s3cret-token"}


def state() -> IndexerState:
    revision = RevisionState.model_validate({"name": NAME, "phase": "Ready", "language": "en"})
    return IndexerState(process="one", revisions=[revision])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with one revision that is ready."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("words of a document")
    source = SourceConfig(name="docs", volume=VolumeFrom(claim_name="claim", path=str(tmp_path / "docs")))
    config = IndexerConfig(
        knowledge_base="kb",
        namespace="ns",
        language="en",
        sources=[source],
        revisions=[RevisionConfig(name=NAME, shape=SHAPE)],
    )
    build_revision(tmp_path / "root", config, FakeEmbedder())
    return tmp_path / "root"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("s3cret-token\n")
    return path


@pytest.fixture
async def client(root: Path, token_file: Path) -> AsyncIterator[Client]:
    server = IndexerServer(state=state, root=root, token_file=token_file)
    async with TestClient(TestServer(server.application())) as client:
        yield client


async def test_state_is_told_in_camel_case(client: Client) -> None:
    answer = await client.get("/v1/state")

    assert (answer.status, answer.content_type) == (200, "application/json")
    body = await answer.json()
    assert body["revisions"][0]["contentGeneration"] == 0
    assert IndexerState.model_validate(body) == state()


async def test_the_process_says_that_it_answers(client: Client) -> None:
    assert (await client.get("/healthz")).status == 200


async def test_every_file_of_the_manifest_can_be_copied(client: Client, root: Path) -> None:
    answer = await client.get(f"/v1/revisions/{NAME}/manifest", headers=BEARER)
    content = await answer.read()
    assert content == (root / NAME / MANIFEST_NAME).read_bytes()

    for entry in Manifest.decode(content, place="here").files():
        file = await (await client.get(f"/v1/revisions/{NAME}/files/{entry.name}", headers=BEARER)).read()
        assert hashlib.sha256(file).hexdigest() == entry.sha256


async def test_a_pod_can_mirror_a_revision(client: Client, root: Path, token_file: Path, tmp_path: Path) -> None:
    origin = Origin(url=str(client.make_url("")).rstrip("/"), token_file=token_file)
    async with aiohttp.ClientSession() as session:
        assert await Mirror(origin, revision=NAME, folder=tmp_path / "mirror", session=session).pull()

    assert {path.name: path.read_bytes() for path in (tmp_path / "mirror").iterdir()} == {
        path.name: path.read_bytes() for path in (root / NAME).iterdir()
    }


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "s3cret-token"},
        {"Authorization": "Basic s3cret-token"},
        {"Authorization": "Bearer s3cret-token s3cret-token"},
        {"Authorization": "Bearer s3cret-tokén"},
    ],
)
@pytest.mark.parametrize("path", ["manifest", f"files/{MANIFEST_NAME}", "files/anything"])
async def test_without_the_token_there_is_nothing_to_learn(client: Client, headers: dict[str, str], path: str) -> None:
    answer = await client.get(f"/v1/revisions/{NAME}/{path}", headers=headers)

    assert answer.status == 401
    assert (await answer.json())["error"]["code"] == "unauthenticated"


@pytest.mark.parametrize(
    "path",
    [
        f"{NAME}/files/{MANIFEST_NAME}",
        f"{NAME}/files/..%2F..%2Fstate.json",
        f"{NAME}/files/..%2Flock",
        f"{NAME}/files/%2Fetc%2Fpasswd",
        "..%2Froot/manifest",
        ".%2E/manifest",
        "kb-0000000000/manifest",
        "lock/manifest",
    ],
)
async def test_names_that_no_ready_revision_lists_are_not_found(client: Client, path: str) -> None:
    assert (await client.get(f"/v1/revisions/{path}", headers=BEARER)).status == 404


async def test_a_revision_that_is_not_proven_yet_is_not_copied(client: Client, root: Path) -> None:
    manifest = Manifest.decode((root / NAME / MANIFEST_NAME).read_bytes(), place="here")
    (root / NAME / MANIFEST_NAME).write_bytes(manifest.model_copy(update={"ready": False}).encode())

    assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=BEARER)).status == 404


async def test_what_is_ready_can_be_copied_before_a_new_process_knows_its_config(root: Path, token_file: Path) -> None:
    just_started = IndexerState(process="", message="starts")
    server = IndexerServer(state=lambda: just_started, root=root, token_file=token_file)
    async with TestClient(TestServer(server.application())) as client:
        assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=BEARER)).status == 200


async def test_a_revision_that_is_being_removed_is_not_copied(client: Client, root: Path) -> None:
    (root / NAME).rename(root / f".dropped-{NAME}")

    for name in (NAME, f".dropped-{NAME}"):
        assert (await client.get(f"/v1/revisions/{name}/manifest", headers=BEARER)).status == 404


async def test_a_folder_that_is_damaged_is_not_copied(client: Client, root: Path) -> None:
    (root / NAME / MANIFEST_NAME).write_text("{")

    assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=BEARER)).status == 404


async def test_a_new_token_is_obeyed_without_a_restart(client: Client, token_file: Path) -> None:
    token_file.write_text("another")

    assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=BEARER)).status == 401
    other = {"Authorization": "bearer another"}
    assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=other)).status == 200


@pytest.mark.parametrize("content", [None, "", "\n"])
async def test_without_a_token_to_compare_nobody_is_let_in(
    client: Client, token_file: Path, content: str | None
) -> None:
    token_file.unlink()
    if content is not None:
        token_file.write_text(content)

    for headers in ({}, BEARER, {"Authorization": "Bearer "}):
        assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=headers)).status == 401


async def test_without_a_token_file_there_are_no_segments(root: Path) -> None:
    server = IndexerServer(state=state, root=root, token_file=None)
    async with TestClient(TestServer(server.application())) as client:
        assert (await client.get(f"/v1/revisions/{NAME}/manifest", headers=BEARER)).status == 404
        assert (await client.get("/v1/state")).status == 200
