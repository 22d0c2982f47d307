"""Opens encoders by fingerprint, once per process.

A revision's fingerprint, not a name, says which encoder its queries need. Whatever takes part in a
vector must be exactly as in the built-in's own fingerprint; languages and the quantisation scale
do not, so an index stays usable when a later version knows those better. A failed opening is not
remembered: the next call tries again.
"""

import threading

from tidegate_api.builtins import BUILTINS
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.errors import ModelUnavailableError
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.models.onnx import Device, open_minilm
from tidegate_runtime.models.use_m3 import open_use_m3
from tidegate_runtime.ports import Embedder

_KNOWN = {**BUILTINS, FAKE_FINGERPRINT.model: FAKE_FINGERPRINT}
_DECIDES_VECTORS = (
    "digest",
    "dimension",
    "max_tokens",
    "pooling",
    "normalised",
    "query_prefix",
    "passage_prefix",
)

_opened: dict[tuple[str, int, Device], Embedder] = {}
_lock = threading.Lock()


def open_embedder(fingerprint: EmbedderFingerprint, *, threads: int = 1, device: Device = "auto") -> Embedder:
    """Return the encoder that gives the vectors named by `fingerprint`.

    Args:
        fingerprint: what the index was built with.
        threads: threads of one inference, where the model can use them.
        device: where to run; `auto` takes CUDA when the session has it.

    Raises:
        ModelUnavailableError: the model is unknown, its files are missing or differ, or the device is not there.
    """
    _require_known(fingerprint)
    key = (fingerprint.model_dump_json(), threads, device)
    with _lock:
        if key not in _opened:
            _opened[key] = _open(fingerprint, threads=threads, device=device)
        return _opened[key]


def _open(fingerprint: EmbedderFingerprint, *, threads: int, device: Device) -> Embedder:
    match fingerprint.model:
        case "minilm":
            return open_minilm(fingerprint, threads=threads, device=device)
        case "use-m3":
            return open_use_m3(fingerprint)
        case _:  # the only other model that is known
            return FakeEmbedder(fingerprint)


def _require_known(fingerprint: EmbedderFingerprint) -> None:
    known = _KNOWN.get(fingerprint.model)
    if known is None:
        names = ", ".join(sorted(BUILTINS))
        raise ModelUnavailableError(f"model {fingerprint.model!r} is not built in; built in are {names}")
    for field in _DECIDES_VECTORS:
        expected, found = getattr(fingerprint, field), getattr(known, field)
        if expected != found:
            raise ModelUnavailableError(
                f"model {fingerprint.model}: the index expects {field} {expected!r}, this version has {found!r}; "
                "run the version of tidegate that the index was built with, or let the index be built anew"
            )
