"""The identity of this machine, as a key of measurements; and real kernels during tracing."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from ..compat.dispatch import without_modes, without_python_dispatcher
from ..compat.fake import without_fake
from .limits import limits_of

# By these a user tells the libraries of a CPU's kernels which instructions to use.
_CHOOSES_KERNELS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS",
                    "MKL_DEBUG_CPU_TYPE", "OPENBLAS_CORETYPE")


def identity(device: torch.device) -> tuple[Any, ...]:
    """The key of measurements: the processor or GPU, its libraries, and their settings."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return ("cuda", properties.name, properties.total_memory, torch.version.cuda, torch.backends.cudnn.version(),
                torch.__version__, _modes(), limits_of(device))
    return (device.type, _processor(), torch.backends.cpu.get_cpu_capability(), torch.get_num_threads(),
            torch.__version__, *(f"{name}={os.environ[name]}" for name in _CHOOSES_KERNELS if name in os.environ))


def _modes() -> tuple[Any, ...]:
    """What a user may set that makes a GPU's libraries run other kernels; None for a mode that this PyTorch does not have."""
    cuda = torch.backends.cuda
    cudnn: Any = torch.backends.cudnn  # whose stubs have no `conv`

    def mode(read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (AttributeError, RuntimeError):  # the older and the newer way to set a precision were mixed
            return None

    return tuple(map(mode, (
        lambda: cuda.matmul.fp32_precision, lambda: cudnn.conv.fp32_precision, lambda: cuda.matmul.allow_tf32,
        lambda: cudnn.allow_tf32, torch.get_float32_matmul_precision, lambda: cudnn.enabled, lambda: cudnn.benchmark,
        lambda: cudnn.deterministic, torch.are_deterministic_algorithms_enabled,
        lambda: cuda.matmul.allow_fp16_reduced_precision_reduction, lambda: cuda.matmul.allow_bf16_reduced_precision_reduction,
        cuda.flash_sdp_enabled, cuda.mem_efficient_sdp_enabled, cuda.math_sdp_enabled)))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


@contextlib.contextmanager
def untraced(device: torch.device) -> Any:
    """Real kernels, whatever is being traced around; the generators of random numbers are left as they were."""
    with torch.no_grad(), without_modes(), without_fake(), disable_proxy_modes_tracing(), \
            without_python_dispatcher(), torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield
