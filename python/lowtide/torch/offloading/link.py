"""What copies between a device and its host take, measured once for each device and kept with the times of kernels."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import torch

from ... import cache
from ..costs import identity
from .host import Host

_FORMAT = 1
_LARGE, _SMALL = 1 << 25, 1 << 12  # bytes: of a copy that runs at the link's rate, and of one that is all latency
_RUNS = 7


@functools.cache
def measured_link(device: torch.device) -> tuple[int, int]:
    """Bytes a second of the slower direction, and the latency of a transfer in ns."""
    file = cache.path_of("costs", "link", _FORMAT, *identity(device))
    known = cache.read(file)
    if not (isinstance(known, list) and len(known) == 2 and all(isinstance(n, int) and n >= 0 for n in known) and known[0]):
        known = _measured(device)
        cache.write(file, known)
    rate, latency = known
    return rate, latency


def _measured(device: torch.device) -> tuple[int, int]:
    host = Host(_LARGE + 2 * _SMALL if device.type == "cuda" else 0)

    def both(size: int) -> tuple[float, float]:
        there = torch.ones(size, dtype=torch.uint8, device=device)
        here, _ = host.take(size)
        return (_seconds(lambda: here.copy_(there, non_blocking=True), device),
                _seconds(lambda: there.copy_(here, non_blocking=True), device))

    latency = max(both(_SMALL))
    large = max(both(_LARGE))
    host.close()
    return max(1, int(_LARGE / max(large - latency, 1e-9))), int(1e9 * latency)


def _seconds(copy: Callable[[], object], device: torch.device) -> float:
    """The lower quartile of some runs after a first: whatever else the machine does only adds."""
    times = []
    for _ in range(_RUNS + 1):
        began = time.perf_counter()
        copy()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return sorted(times[1:])[_RUNS // 4]
