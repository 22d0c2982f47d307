"""The fake API server keeps the contract that the real one keeps."""

import pytest

from tidegate_operator.core.kinds import Manifest

from .cluster_contract import ClusterContract, Theirs
from .fake_cluster import FakeCluster


class TestFakeCluster(ClusterContract):
    @pytest.fixture
    def cluster(self) -> FakeCluster:
        return FakeCluster()

    @pytest.fixture
    def namespace(self) -> str:
        return "acme"

    @pytest.fixture
    def theirs(self, cluster: FakeCluster) -> Theirs:
        async def apply(manifest: Manifest) -> Manifest:
            return cluster.put(manifest)

        return apply
