"""What copies between a device and its host take, measured once for each device and kept with the times of kernels."""

from __future__ import annotations

import functools
import time
from typing import Any

import torch

from ... import cache
from .host import Host
from .identity import identity, untraced

_FORMAT = 2  # to be raised when what is measured, or how, changes: older figures are not believed
_LARGE, _SMALL = 1 << 26, 1 << 12  # bytes: of a copy that runs at the link's rate, and of one that is all latency
_RUNS, _IN_A_ROW = 5, 4


@functools.cache
def measured_link(device: torch.device) -> tuple[int, int]:
    """Bytes a second of a direction while both are busy, and the latency of a transfer in ns."""
    file = cache.path_of("costs", "link", _FORMAT, *identity(device))
    known = cache.read(file)
    if not (isinstance(known, list) and len(known) == 2 and all(isinstance(n, int) and n >= 0 for n in known) and known[0]):
        with untraced(device):  # a plan is made while the step is traced, where a copy would be of fake tensors
            known = _measured(device)
        cache.write(file, known)
    rate, latency = known
    return rate, latency


def _measured(device: torch.device) -> tuple[int, int]:
    host = Host(2 * (_LARGE + _SMALL) if device.type == "cuda" else 0)
    small, large = (_seconds(host, size, device) for size in (_SMALL, _LARGE))
    host.close()
    # other work on the machine may have held up the small copies: their latency is then within the large one's time
    rest = large - small if small < large / 2 else large
    return max(1, int(_LARGE / max(rest, 1e-9))), int(1e9 * min(small, large))


def _seconds(host: Host, size: int, device: torch.device) -> float:
    """Seconds of a copy of so many bytes in the slower direction, while the other is busy too: a plan uses both at once, and
    on most machines each is slower then.  The least of some runs: whatever else the machine does only adds."""
    leaving, coming = (torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2))
    (there, _), (back, _) = host.take(size), host.take(size)
    pairs = (there, leaving), (coming, back)
    if device.type != "cuda":
        return max(min(_clocked(into, source) for _ in range(_RUNS)) for into, source in pairs)
    streams = [torch.cuda.Stream(device) for _ in pairs]
    return min(_queued(pairs, streams, device) for _ in range(_RUNS))


def _clocked(into: torch.Tensor, source: torch.Tensor) -> float:
    began = time.perf_counter()
    into.copy_(source)
    return time.perf_counter() - began


def _queued(pairs: Any, streams: list[Any], device: torch.device) -> float:
    """Seconds of one of several copies that are queued in each direction, by events of their streams."""
    torch.cuda.synchronize(device)
    events = []
    for (into, source), stream in zip(pairs, streams, strict=True):
        with torch.cuda.stream(stream):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            for _ in range(_IN_A_ROW):
                into.copy_(source, non_blocking=True)
            last.record()
        events.append((first, last))
    torch.cuda.synchronize(device)
    return max(first.elapsed_time(last) for first, last in events) / 1e3 / _IN_A_ROW
