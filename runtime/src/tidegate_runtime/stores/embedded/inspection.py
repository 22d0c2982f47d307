"""A look inside a revision before it may be called ready: what a proof needs and a reader never does.

It opens revisions that are not ready, sees every live row whoever may read it, and gives samples
with all that was embedded, so that a proof can embed them again and find them.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.ports import InspectedChunk
from tidegate_runtime.stores.embedded.analyzer import Analyzer
from tidegate_runtime.stores.embedded.files import LocalFiles
from tidegate_runtime.stores.embedded.live import LiveSegment, split_rows, stack
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, read_manifest
from tidegate_runtime.stores.embedded.opening import open_segments
from tidegate_runtime.stores.embedded.selection import RowSelection
from tidegate_runtime.stores.embedded.snapshot import EmbeddedSnapshot
