"""Every process builds the same files from the same records and gives the same answers from them."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import hashlib, sys
from pathlib import Path
from tests.unit.runtime.store.samples import PUBLIC, make_document, make_shape, vector_of
from tidegate_runtime.ports import Permission
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter

folder = Path(sys.argv[1])
writer = EmbeddedWriter.open(folder, revision="r", shape=make_shape(schema={"kind": "keyword", "year": "number"}))
for first in range(0, 40, 8):
    writer.commit(
        upserts=[
            make_document(
                f"{i}", [f"pump {i} valve 年假制度", f"seal {i % 7}"],
                metadata={"kind": ["b", "a"], "year": i}, tenants=("x", "y", "z") if i % 3 else None, groups=("g", "h"),
            )
            for i in range(first, first + 8)
        ],
        rules=PUBLIC,
    )
    writer.compact()
writer.mark_ready(dense=True)
for path in sorted(folder.iterdir()):
    print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
snapshot = EmbeddedReader.open(folder).snapshot()
selection = snapshot.select(Permission(tenant="x", groups=frozenset({"g"})), None)
for leg in (
    snapshot.lexical(snapshot.analyse("pump 3 年假 seal"), selection, top_k=50),
    snapshot.dense(vector_of("pump"), selection, top_k=50),
):
    print(snapshot.chunk_ids(leg.rows), leg.scores.tobytes().hex())
"""


def test_files_and_answers_do_not_depend_on_the_process(tmp_path: Path) -> None:
    outputs: set[str] = set()
    for seed in ("0", "31337"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / seed)],
            env={
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": str(Path(__file__).parents[4]),
                "OMP_NUM_THREADS": str(1 + len(outputs)),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert ".segment" in outputs.pop()
