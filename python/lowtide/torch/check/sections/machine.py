"""The machine: versions, the GPU, and the rates that it reaches."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable
from typing import Any

import torch

import lowtide

from ..measure import least_seconds, mib, queued_us
from ..section import Context


def facts(context: Context) -> None:
    found: dict[str, Any] = {"torch": torch.__version__, "python": platform.python_version(), "lowtide": lowtide.__version__,
                             "cores": os.cpu_count(), "host_mib": mib(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))}
    if context.on_gpu:
        card = torch.cuda.get_device_properties(0)
        found |= {"card": card.name, "capability": f"{card.major}.{card.minor}", "multiprocessors": card.multi_processor_count,
                  "memory_mib": mib(card.total_memory), "free_mib": mib(torch.cuda.mem_get_info()[0]),
                  "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                  "allocator": torch.cuda.get_allocator_backend(),
                  "allocator_settings": os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))}
    context.say("machine", **found)
    with context.guarded("rates"):
        context.say("rates", **_rates(context))


def _rates(context: Context) -> dict[str, Any]:
    """Bytes and operations a second.  Random numbers, since products of one constant switch fewer transistors and run at a
    higher clock."""
    size, n = (1 << 30, 8192) if context.on_gpu else (1 << 22, 256)
    a, b = (torch.randn(size // 4, device=context.device) for _ in range(2))
    found = {"copies_GB_s": _rate(lambda: b.copy_(a), 2 * size)}
    for name, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        x, y = (torch.randn(n, n, device=context.device, dtype=dtype) for _ in range(2))
        found[f"products_{name}_Gflop_s"] = _rate(functools.partial(torch.matmul, x, y), 2 * n**3)
    one = torch.ones(1, device=context.device)
    found["launch_and_wait_us"] = round(1e6 * least_seconds(lambda: one + one, 100), 2)
    found["launch_queued_us"] = round(queued_us(lambda: one + one, 512), 2)
    return found


def _rate(run: Callable[[], Any], count: float) -> float:
    return round(count / least_seconds(run, 6) / 1e9, 2)
