"""What tests of the loop do first, and look at last."""

from typing import Any


def documents(world: Any, count: int, *, source: str = "docs") -> None:
    for number in range(count):
        world.write(f"{number:03}.md", f"words of document {number}", source=source)


def built(world: Any, shape: Any, count: int = 3) -> None:
    documents(world, count)
    world.configure(shape())
    world.tick()
    assert world.revision.phase == "Ready"


def failures(world: Any) -> dict[str, str]:
    return {failure.document: failure.reason for failure in world.state.sync.failures}
