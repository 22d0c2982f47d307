"""What decisions rest on in an API server: run against the fake and against a real one.

A subclass provides the fixture `cluster`, which also implements `ClusterReader` and `ClusterWriter`,
`theirs`, which applies a manifest as somebody else, and `namespace`.
"""

from collections.abc import Awaitable, Callable

import pytest

from tidegate_operator.core.kinds import Kind, Manifest, Ref, ref_of
from tidegate_operator.errors import NameConflictError, RefusedError, StaleError
from tidegate_operator.reconcile import Cluster

Theirs = Callable[[Manifest], Awaitable[Manifest]]


def config_map(namespace: str, *, name: str = "notes", labels: dict[str, str] | None = None, **data: str) -> Manifest:
    """Return a ConfigMap."""
    metadata: Manifest = {"name": name, "namespace": namespace} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def of_parent(manifest: Manifest, **metadata: str) -> Manifest:
    """Return a child of ours."""
    parent = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "KnowledgeBase", "name": "docs", "uid": "uid-of-docs"}
    references = [{**parent, "controller": True, "blockOwnerDeletion": True}]
    return {**manifest, "metadata": {**manifest["metadata"], **metadata, "ownerReferences": references}}


def knowledge_base(namespace: str, *, size_tokens: int = 200) -> Manifest:
    """Return a KnowledgeBase."""
    sources = [{"name": "files", "from": {"configMap": {"name": "files"}}}]
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "KnowledgeBase",
        "metadata": {"name": "docs", "namespace": namespace},
        "spec": {"sources": sources, "chunking": {"sizeTokens": size_tokens}},
    }


def frozen(namespace: str, **data: object) -> Manifest:
    """Return a ControllerRevision."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "docs-1", "namespace": namespace},
        "data": data,
        "revision": 1,
    }


def version(manifest: Manifest) -> str:
    """Return the resource version."""
    return str(manifest["metadata"]["resourceVersion"])


class ClusterContract:
    """Tests of the ports; see the module for the fixtures."""

    async def test_what_is_not_there_is_none(self, cluster: Cluster, namespace: str) -> None:
        ref = Ref(Kind.CONFIG_MAP, namespace, "nothing")
        assert await cluster.get(ref) is None
        assert await cluster.get_metadata(ref) is None

    async def test_what_was_created_is_read_back(self, cluster: Cluster, namespace: str) -> None:
        made = await cluster.create(config_map(namespace, a="1"))
        read = await cluster.get(ref_of(made))

        assert read is not None
        assert (read["data"], version(read)) == ({"a": "1"}, version(made))

    async def test_metadata_comes_without_content(self, cluster: Cluster, namespace: str) -> None:
        made = await cluster.create(config_map(namespace, a="1"))
        read = await cluster.get_metadata(ref_of(made))

        assert read is not None
        assert (read["kind"], read["metadata"]["uid"]) == ("ConfigMap", made["metadata"]["uid"])
        assert "data" not in read

    async def test_somebody_elses_object_is_not_written_to(
        self, cluster: Cluster, theirs: Theirs, namespace: str
    ) -> None:
        """Not for a moment either: a death between taking it over and giving it back would leave it ours."""
        before = await theirs(config_map(namespace, b="2"))
        for manifest in (
            config_map(namespace, labels={"x": "y"}, a="1"),
            config_map(namespace, b="other"),
            config_map(namespace, b="2"),
        ):
            with pytest.raises(NameConflictError):
                await cluster.create(of_parent(manifest))
        after = await cluster.get(ref_of(before))

        assert after is not None
        assert (version(after), after["metadata"]["uid"]) == (version(before), before["metadata"]["uid"])

    async def test_what_another_operator_has_just_made_is_looked_at_anew(
        self, cluster: Cluster, namespace: str
    ) -> None:
        first = await cluster.create(of_parent(config_map(namespace, labels={"x": "y"}, a="1")))
        with pytest.raises(StaleError):
            await cluster.create(of_parent(config_map(namespace, labels={"x": "y"}, a="2")))
        after = await cluster.get(ref_of(first))

        assert after is not None
        assert version(after) == version(first)

    async def test_one_of_ours_that_is_not_found_by_its_labels_gets_them_back(
        self, cluster: Cluster, namespace: str
    ) -> None:
        first = await cluster.create(of_parent(config_map(namespace, a="1")))
        again = await cluster.create(of_parent(config_map(namespace, labels={"x": "y"}, a="1")))

        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        assert again["metadata"]["labels"] == {"x": "y"}

    async def test_an_apply_to_one_object_never_reaches_another_of_its_name(
        self, cluster: Cluster, theirs: Theirs, namespace: str
    ) -> None:
        first = await cluster.create(of_parent(config_map(namespace, a="1")))
        ours = of_parent(config_map(namespace, a="2"), uid=first["metadata"]["uid"])
        await cluster.delete(ref_of(first), uid=first["metadata"]["uid"])
        with pytest.raises(StaleError):
            await cluster.apply(ours)
        assert await cluster.get(ref_of(first)) is None

        before = await theirs(config_map(namespace, b="2"))
        with pytest.raises(StaleError):
            await cluster.apply(ours)
        after = await cluster.get(ref_of(before))
        assert after is not None
        assert version(after) == version(before)

    async def test_what_the_next_apply_leaves_out_goes_away_and_what_others_added_stays(
        self, cluster: Cluster, theirs: Theirs, namespace: str
    ) -> None:
        await cluster.create(config_map(namespace, a="1", b="2"))
        await theirs(config_map(namespace, c="3"))
        after = await cluster.apply(config_map(namespace, a="1"))

        assert after["data"] == {"a": "1", "c": "3"}

    async def test_an_apply_that_changes_nothing_keeps_the_version(self, cluster: Cluster, namespace: str) -> None:
        first = await cluster.create(config_map(namespace, a="1"))
        assert version(await cluster.apply(config_map(namespace, a="1"))) == version(first)

    async def test_a_status_is_replaced_only_at_the_version_that_was_read(
        self, cluster: Cluster, theirs: Theirs, namespace: str
    ) -> None:
        read = await theirs(knowledge_base(namespace))
        ref = ref_of(read)
        await cluster.replace_status(ref, {"observedGeneration": 1, "language": "en"}, resource_version=version(read))
        with pytest.raises(StaleError):
            await cluster.replace_status(ref, {"observedGeneration": 9}, resource_version=version(read))

        newer = await cluster.get(ref)
        assert newer is not None
        await cluster.replace_status(ref, {"observedGeneration": 2}, resource_version=version(newer))
        newest = await cluster.get(ref)
        assert newest is not None
        assert newest["status"] == {"observedGeneration": 2}
        assert newest["metadata"]["generation"] == 1

    async def test_the_status_of_what_is_gone_is_stale(self, cluster: Cluster, namespace: str) -> None:
        with pytest.raises(StaleError):
            await cluster.replace_status(
                Ref(Kind.KNOWLEDGE_BASE, namespace, "gone"), {"observedGeneration": 1}, resource_version="1"
            )

    async def test_only_that_very_object_is_deleted(self, cluster: Cluster, namespace: str) -> None:
        made = await cluster.create(config_map(namespace, a="1"))
        await cluster.delete(ref_of(made), uid="00000000-0000-0000-0000-000000000000")
        assert await cluster.get(ref_of(made)) is not None

        for _ in range(2):
            await cluster.delete(ref_of(made), uid=made["metadata"]["uid"])
            assert await cluster.get(ref_of(made)) is None

    async def test_frozen_data_never_changes_and_its_labels_may(self, cluster: Cluster, namespace: str) -> None:
        manifest = frozen(namespace, shape={"size": 200, "share": 0.38})
        await cluster.create(manifest)
        with pytest.raises(RefusedError):
            await cluster.apply(frozen(namespace, shape={"size": 100, "share": 0.38}))

        labelled = {**manifest, "metadata": {**manifest["metadata"], "annotations": {"served": "yes"}}}
        after = await cluster.apply(labelled)
        assert after["metadata"]["annotations"]["served"] == "yes"

    async def test_objects_are_found_by_label(self, cluster: Cluster, namespace: str) -> None:
        await cluster.create(config_map(namespace, name="one", labels={"x": "1", "y": "2"}))
        await cluster.create(config_map(namespace, name="two", labels={"x": "1"}))

        async def names(labels: str) -> set[str]:
            found = await cluster.find(Kind.CONFIG_MAP, namespace, labels=labels)
            assert {each["kind"] for each in found} <= {"ConfigMap"}
            return {each["metadata"]["name"] for each in found}

        assert await names("x=1") == {"one", "two"}
        assert await names("y") == {"one"}
        assert await names("x=2") == set()

    async def test_policies_are_found_by_their_pipeline(self, cluster: Cluster, theirs: Theirs, namespace: str) -> None:
        for name, target in (("a", "desk"), ("b", "desk"), ("c", "other")):
            metadata = {"name": name, "namespace": namespace}
            spec = {"pipeline": {"name": target}}
            await theirs(
                {"apiVersion": "tidegate.dev/v1alpha1", "kind": "RoutingPolicy", "metadata": metadata, "spec": spec}
            )
        found = await cluster.find(Kind.ROUTING_POLICY, namespace, fields="spec.pipeline.name=desk")
        assert {each["metadata"]["name"] for each in found} == {"a", "b"}
