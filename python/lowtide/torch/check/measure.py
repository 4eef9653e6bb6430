"""Bytes and times of a step, of kernels, and of copies."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from ..compat.dynamo import reset
from ..device.meter import measure_peak

Inputs = Sequence[torch.Tensor]
_WARM = 2  # steps before any is timed


def _on_gpu(inputs: Inputs) -> bool:
    return any(t.device.type == "cuda" for t in inputs)


def wait() -> None:
    """Wait for the GPU, if one was used."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def clean() -> None:
    """Forget what was compiled, and give back what the allocator keeps."""
    reset()
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def one_step(run: Callable[..., torch.Tensor], inputs: Inputs) -> torch.Tensor:
    loss = run(*inputs)
    loss.backward()
    return loss.detach()


def memory(run: Callable[..., torch.Tensor], inputs: Inputs, module: nn.Module) -> dict[str, int]:
    """Bytes of one step without gradients before it: peak is what max_memory_allocated says, requested the same without
    the rounding of the allocator, reserved what it has taken from the device; before is what was there."""
    module.zero_grad(set_to_none=True)
    if not _on_gpu(inputs):
        peak = measure_peak(lambda: one_step(run, inputs), held=(module, list(inputs)))
        module.zero_grad(set_to_none=True)
        return {"before": 0, "peak": peak, "requested": peak, "reserved": peak}
    found = cuda_peaks(lambda: one_step(run, inputs))
    module.zero_grad(set_to_none=True)
    return found


def cuda_peaks(run: Callable[[], Any]) -> dict[str, int]:
    """The same of any call, by the statistics of the GPU's allocator."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    return {"before": before, "peak": stats["allocated_bytes.all.peak"], "requested": stats["requested_bytes.all.peak"],
            "reserved": stats["reserved_bytes.all.peak"]}


def times(run: Callable[..., torch.Tensor], inputs: Inputs, module: nn.Module, seconds: float = 1.5) -> dict[str, float]:
    """ms of a step: the median of some, the least, and how long the host took until all of a step was queued (median).

    Steps follow one another without a wait, as in training: what the host does before a step's first kernel passes while the device
    runs the step before.  Whatever else the machine does only adds, so the least is nearest to what the device takes; where the host
    takes as long as the step, it is the host that is timed.
    """
    def once() -> float:
        module.zero_grad(set_to_none=True)
        began = time.perf_counter()
        one_step(run, inputs)
        return 1e3 * (time.perf_counter() - began)

    clock = _Clock(_on_gpu(inputs))
    for _ in range(_WARM):
        once()
        clock.tick()
    count = max(3, min(15, int(seconds * 1e3 / max(clock.ms()[-1], 1e-3))))
    once()  # the queue is not empty when the first timed step begins
    clock = _Clock(_on_gpu(inputs))
    queued: list[float] = []
    for _ in range(count):
        queued.append(once())
        clock.tick()
    module.zero_grad(set_to_none=True)
    took = clock.ms()
    return {"ms": round(statistics.median(took), 3), "least_ms": round(min(took), 3),
            "host_ms": round(statistics.median(queued), 3)}


class _Clock:
    """Times between ticks, the first of which is here: of the device where there is one, which the host need not wait for."""

    def __init__(self, gpu: bool) -> None:
        self._gpu = gpu
        self._ticks: list[Any] = []
        self.tick()

    def tick(self) -> None:
        if not self._gpu:
            self._ticks.append(time.perf_counter())
            return
        event: Any = torch.cuda.Event(enable_timing=True)
        event.record()
        self._ticks.append(event)

    def ms(self) -> list[float]:
        """Of each span between two ticks, when the device has come to the last."""
        wait()
        pairs = list(zip(self._ticks, self._ticks[1:]))
        return [float(a.elapsed_time(b)) if self._gpu else 1e3 * (b - a) for a, b in pairs]


def least_seconds(run: Callable[[], Any], repeat: int) -> float:
    """Seconds of a call and of the wait for the device, the least of some."""
    run()
    wait()
    found = float("inf")
    for _ in range(repeat):
        began = time.perf_counter()
        run()
        wait()
        found = min(found, time.perf_counter() - began)
    return found


def queued_us(run: Callable[[], Any], repeat: int = 64) -> float:
    """us of a call among many that are queued, as in a step that keeps the device busy."""
    if not torch.cuda.is_initialized():
        return 1e6 * least_seconds(run, 8)
    run()
    clock = _Clock(True)
    for _ in range(repeat):
        run()
    clock.tick()
    return 1e3 * clock.ms()[0] / repeat


def mib(count: float) -> float:
    return round(count / 2**20, 2)


def percent(share: float) -> float:
    return round(100 * share, 2)
