"""Replaces a file whole: after a crash of the machine it is the old one or the new one, never a part."""

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, force it to the disk, and give it the name."""
    replacement = path.with_suffix(".new")
    with replacement.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    replacement.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
