"""Haystack in memory on the same chunks with the same encoder, as a peer for `latency.py`.

Haystack lives in a virtual environment of its own that also sees this project's packages, so the
encoder is the very same code. Run as a program, this file is the peer's side: it asks a pipeline of
BM25 and embedding retrievers joined by reciprocal rank, each query once alone through the encoder and
once through the pipeline.
"""

import os
import site
import statistics
import subprocess
import sys
import time
import venv
from typing import Any

from retrieval_sets import STATE, load

ENVIRONMENT = STATE / "haystack"
SET = "hotpotqa-500"
TOP_K = 10
CANDIDATES = 50


def measure_haystack(queries: int) -> None:
    """Install Haystack where it is missing, and print its figures."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "installed").is_file():
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "haystack-ai"], check=True)
        (ENVIRONMENT / "installed").touch()
    shared = os.pathsep.join([*site.getsitepackages(), *_editable_folders()])
    subprocess.run(
        [python, __file__, str(queries)],
        check=True,
        env={**os.environ, "HAYSTACK_TELEMETRY_ENABLED": "False", "TIDEGATE_SHARED_PATHS": shared},
    )


def _editable_folders() -> list[str]:
    return [path for path in sys.path if path.endswith("/src")]


def _pipeline(embedder: Any, *, chunks: list[Any]) -> Any:
    from haystack import Pipeline, component
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class Encoder:
        @component.output_types(embedding=list[float])
        def run(self, text: str) -> dict[str, list[float]]:
            return {"embedding": embedder.embed_query(text).tolist()}

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(chunks)
    pipeline = Pipeline()
    pipeline.add_component("encoder", Encoder())
    pipeline.add_component("lexical", InMemoryBM25Retriever(store, top_k=CANDIDATES))
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=CANDIDATES))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=TOP_K))
    pipeline.connect("encoder.embedding", "dense.query_embedding")
    pipeline.connect("lexical", "joiner")
    pipeline.connect("dense", "joiner")
    return pipeline


def _chunks(embedder: Any) -> list[Any]:
    from builds import default_shape, passages
    from haystack import Document
    from remembered import RememberedEmbedder

    remembered = RememberedEmbedder(embedder, STATE / "vectors.sqlite")
    texts = passages(load(SET), shape=default_shape("en"), embedder=remembered)
    vectors = remembered.embed_passages(texts)
    return [
        Document(id=str(number), content=text, embedding=vector.tolist())
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]


def main(count: int) -> None:
    """Measure the peer."""
    sys.path.extend(os.environ["TIDEGATE_SHARED_PATHS"].split(os.pathsep))
    from tidegate_api.builtins import MINILM
    from tidegate_runtime.models.registry import open_embedder

    embedder = open_embedder(MINILM, threads=1)
    pipeline = _pipeline(embedder, chunks=_chunks(embedder))
    added = []
    for query in list(load(SET).queries.values())[:count]:
        started = time.perf_counter()
        embedder.embed_query(query)
        encoded = time.perf_counter()
        pipeline.run({"encoder": {"text": query}, "lexical": {"query": query}})
        added.append((time.perf_counter() - encoded) - (encoded - started))
    print(f"RESULT haystack_added_p50_ms={statistics.median(added) * 1000:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
