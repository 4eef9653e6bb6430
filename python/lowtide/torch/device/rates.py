"""A device with measured rates: what kernels reach, and the launch time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import torch

import lowtide

from ..tensors.operators import DTYPES
from .link import measured_link

_SECONDS = 0.05  # of runs of one kernel, and
_RUNS = 4  # of these at least
_LONG = 3_000_000  # ns, of a kernel that runs at its rate
_FORMAT = {"format": "lowtide-device", "version": 1}


def measure_device(device: torch.device | str = "cpu", name: str = "") -> lowtide.Device:
    """Measure a device, in about ten seconds, for estimated prices: `Device.to_json()` is a file for `--device`.

    Rates are those of products of large matrices, for each number type with such a kernel, and of a 3 x 3 convolution in f32 (as
    `tf32`, which prices convolutions).  The bandwidth is that of a sum of two tensors beyond all caches.  The launch time is that of
    a sum of two numbers.  A ramp is the median time of middle-sized kernels beyond launch and rate, or 0 if that is negative, as
    with caches.  CPU figures are for the number of threads that PyTorch uses.
    """
    device = torch.device(device)
    on_gpu = device.type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        built = "is built without CUDA: install one that is" if torch.version.cuda is None else "sees no GPU here"
        raise ValueError(f"there is no {device} to measure: torch {torch.__version__} {built}; 'cpu' measures the processor")
    number = _numbers((1,), device)
    launch = ns_of(lambda: number + number, device)
    rates: dict[str, float] = {}
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        try:
            rates[DTYPES[dtype]] = _products(dtype, device, launch)
        except RuntimeError:  # no such kernel
            continue
    ns, flops = _convolution(64 if on_gpu else 4, device)
    rates["tf32"] = 1e9 * flops / max(1, ns - launch)
    streams = {2**k: _stream(2**k, device) - launch for k in (10, 12, 14, 16, 18, 28 if on_gpu else 24)}
    rate = 12e9 * max(streams) / max(1, streams[max(streams)])
    beyond = [_product(n, torch.float32, device) - launch - 2e9 * n**3 / rates["f32"] for n in (32, 64, 128, 192, 256)]
    slow = [ns - 12e9 * n / rate for n, ns in streams.items() if n <= 2**18]
    described: dict[str, Any] = {
        "name": name or (torch.cuda.get_device_name(device) if on_gpu else "cpu"),
        "operations_per_second": {dtype: int(value) for dtype, value in rates.items()},
        "bytes_per_second": int(rate), "launch_ns": int(launch), "compute_ramp_ns": _ramp(beyond),
        "memory_ramp_ns": _ramp(slow), "measured": True}
    if on_gpu:
        described["multiprocessors"] = torch.cuda.get_device_properties(device).multi_processor_count
        described["memory_bytes"] = torch.cuda.get_device_properties(device).total_memory
        link = measured_link(device)
        described["host_link"] = {"bytes_per_second": link.alone, "latency_ns": link.latency}
    return lowtide.Device.from_json(json.dumps(_FORMAT | described))


def ns_of(run: Callable[[], Any], device: torch.device) -> int:
    """ns of a call: the lower quartile of some, since whatever else the machine does only adds.  Of one thread on a CPU
    they are those in which it ran."""
    clock = time.thread_time if device.type == "cpu" and torch.get_num_threads() == 1 else time.perf_counter

    def once() -> float:
        began = clock()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return clock() - began

    with torch.no_grad():
        once()
        times: list[float] = []
        while len(times) < _RUNS or (sum(times) < _SECONDS and len(times) < 1000):
            times.append(once())
    return max(1, int(sorted(times)[len(times) // 4] * 1e9))


def _ramp(beyond: list[float]) -> int:
    return max(0, int(sorted(beyond)[len(beyond) // 2]))


def _numbers(shape: tuple[int, ...], device: torch.device, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random ones: a product of equal numbers draws less power than one of a step, and is up to an eighth faster on a GPU.  The default
    generator stays as it is."""
    generator = torch.Generator(device).manual_seed(0)
    return torch.empty(shape, dtype=dtype, device=device).uniform_(0.25, 0.75, generator=generator)


def _product(n: int, dtype: torch.dtype, device: torch.device) -> int:
    a, b = _numbers((n, n), device, dtype), _numbers((n, n), device, dtype)
    return ns_of(lambda: a @ b, device)


def _products(dtype: torch.dtype, device: torch.device, launch: int) -> float:
    """Operations a second of the first product that takes some milliseconds."""
    n = 256
    while (ns := _product(n, dtype, device)) < _LONG and n < 16384:
        n *= 2
    return 2e9 * n**3 / max(1, ns - launch)


def _stream(numbers: int, device: torch.device) -> int:
    a, b = _numbers((numbers,), device), _numbers((numbers,), device)
    made = torch.empty_like(a)  # memory that is new may take longer, and only the first time
    return ns_of(lambda: torch.add(a, b, out=made), device)


def _convolution(batch: int, device: torch.device) -> tuple[int, int]:
    """ns, and operations."""
    x, weight = _numbers((batch, 64, 56, 56), device), _numbers((64, 64, 3, 3), device)
    return ns_of(lambda: torch.conv2d(x, weight, padding=1), device), 2 * x.numel() * 64 * 9
