"""The device is what the session got, not what the module lists."""

import pytest

from tidegate_runtime.errors import ModelUnavailableError
from tidegate_runtime.models.onnx import Device, session_device, wanted_providers

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.mark.parametrize(
    ("wanted", "available", "asked"),
    [
        ("auto", ["AzureExecutionProvider", CPU], [CPU]),
        ("auto", [CUDA, CPU], [CUDA, CPU]),
        ("cuda", [CUDA, CPU], [CUDA, CPU]),
        ("cpu", [CUDA, CPU], [CPU]),
    ],
)
def test_cuda_is_asked_for_where_it_may_be(wanted: Device, available: list[str], asked: list[str]) -> None:
    assert [name for name, _ in wanted_providers(available, wanted=wanted)] == asked


@pytest.mark.parametrize(
    ("providers", "wanted", "device"),
    [([CUDA, CPU], "auto", "cuda"), ([CPU], "auto", "cpu"), ([CPU], "cpu", "cpu"), ([CUDA, CPU], "cuda", "cuda")],
)
def test_the_sessions_providers_decide(providers: list[str], wanted: Device, device: str) -> None:
    assert session_device(providers, wanted=wanted, model="minilm") == device


def test_cuda_by_name_without_cuda_is_an_error_with_the_next_step() -> None:
    with pytest.raises(
        ModelUnavailableError, match=r"device cuda was asked for, but onnxruntime gave CPUExec.*runtime-gpu"
    ):
        session_device([CPU], wanted="cuda", model="minilm")
