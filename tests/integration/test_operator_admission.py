"""The accept/reject table against a real API server: what CEL and the schema really let through."""

from http import HTTPStatus

from tests.cel.table import Case, load_cases
from tests.e2e.cluster import Cluster

from tidegate_operator.adapters.kube import KubeCluster
from tidegate_operator.core.kinds import API_VERSION, Kind, Manifest, plural

CASES = load_cases()


async def test_every_case_is_judged_as_the_table_says(kube: KubeCluster, api_server: Cluster) -> None:
    wrong = []
    for case in CASES:
        verdict = await judge(kube, case)
        if verdict is not None:
            wrong.append(f"{case.name}: {verdict}")
    assert wrong == []


async def judge(kube: KubeCluster, case: Case) -> str | None:
    """Return how the server's judgement differs from the table's, or None."""
    if case.old is not None:
        status, body = await create(kube, case.kind, case.old, dry_run=False)
        assert status == HTTPStatus.CREATED, body
        metadata = {**case.manifest["metadata"], "resourceVersion": body["metadata"]["resourceVersion"]}
        status, body = await update(kube, case.kind, {**case.manifest, "metadata": metadata})
        await remove(kube, case.kind, case.old["metadata"]["name"])
    else:
        status, body = await create(kube, case.kind, case.manifest, dry_run=True)
    if case.accept:
        return None if status < HTTPStatus.BAD_REQUEST else f"refused: {body.get('message')}"
    if status < HTTPStatus.BAD_REQUEST:
        return "accepted"
    message = str(body.get("message"))
    if case.message not in message:
        return f"refused with another message: {message}"
    # A field that is not known, or a list that is too long, stands in the message alone.
    causes = (body.get("details") or {}).get("causes") or []
    named = [str(cause.get("field", "")) for cause in causes]
    return None if case.path in message or case.path in named else f"{case.path} is not named: {message}"


def path_of(kind: str, name: str = "") -> str:
    """Return the path of a kind in the namespace default."""
    collection = f"/apis/{API_VERSION}/namespaces/default/{plural(Kind(kind))}"
    return f"{collection}/{name}" if name else collection


async def create(kube: KubeCluster, kind: str, manifest: Manifest, *, dry_run: bool) -> tuple[int, Manifest]:
    """Create strictly: unknown fields are refused."""
    query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
    return await kube._call("POST", path_of(kind), query=query, body=manifest)


async def update(kube: KubeCluster, kind: str, manifest: Manifest) -> tuple[int, Manifest]:
    """Replace strictly, as a dry run."""
    query = {"fieldValidation": "Strict", "dryRun": "All"}
    return await kube._call("PUT", path_of(kind, manifest["metadata"]["name"]), query=query, body=manifest)


async def remove(kube: KubeCluster, kind: str, name: str) -> None:
    """Delete an object."""
    await kube._call("DELETE", path_of(kind, name))
