"""The indexer on a volume that fills up in the middle of a build."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.indexer_process import Indexer, fill, wait_for


@pytest.fixture
def small_volume(indexer: Indexer) -> Iterator[Path]:
    """Put the indexer's root on a volume of 2 MiB, where this system lets us make one."""
    indexer.root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(indexer.root)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip(
            "a volume of a given size needs root and the right to mount; the store's own tests play a full disk"
        )
    yield indexer.root
    indexer.kill()
    subprocess.run(["umount", "-l", str(indexer.root)], check=True)


def test_a_full_volume_pauses_the_build_and_more_room_ends_the_pause(indexer: Indexer, small_volume: Path) -> None:
    fill(indexer.folder / "docs", range(1500), random.Random(2))
    indexer.configure()
    indexer.start()

    def paused() -> bool:
        state = indexer.state()
        return state is not None and any("full" in revision.message for revision in state.revisions)

    wait_for(paused, what=indexer.said)
    state = indexer.state()
    assert state is not None
    assert state.revisions[0].phase == "Building"
    assert "enlarge" in state.revisions[0].message

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_volume)], check=True)

    assert indexer.settle().revisions[0].documents == 1500
    indexer.assert_equal_to_a_fresh_build(hint="after a full volume")
