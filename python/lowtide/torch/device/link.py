"""Rates of copies between a device and its host, measured once for each device and cached with the kernel times.

A forward sends and its backward fetches, so most copies of a plan have the link to themselves.  Copies of the optimizer's
states use both directions, and on most machines each direction is slower then.  Part of a copy's time is the host's, which
queues the copy and its waits; a copy of a few KiB takes nothing else.
"""

from __future__ import annotations

import functools
import time
from typing import Any, NamedTuple

import torch

from ... import cache
from .host import Host
from .identity import identity, untraced
from .queued_copy import QueuedCopy

_FORMAT = 4  # to be raised when what is measured, or how, changes: older figures are not believed
_LARGE, _SMALL = 1 << 26, 1 << 12  # bytes: of a copy that runs at the link's rate, and of one that is all latency
_RUNS, _IN_A_ROW = 5, 4


class Link(NamedTuple):
    """Bytes a second of the slower direction, alone and while the other is busy, too; the latency of a transfer in ns."""

    alone: int
    together: int
    latency: int


@functools.cache
def measured_link(device: torch.device) -> Link:
    """The measured link of this device."""
    file = cache.path_of("costs", "link", _FORMAT, *identity(device))
    known = cache.read(file)
    if not (isinstance(known, list) and len(known) == 3 and all(isinstance(n, int) and n >= 0 for n in known) and all(known[:2])):
        with untraced(device):  # a plan is made while the step is traced, where a copy would be of fake tensors
            known = _measured(device)
        if device.type == "cuda":
            torch.cuda.empty_cache()  # what was copied is the step's to take
        cache.write(file, known)
    return Link(*known)


def _measured(device: torch.device) -> list[int]:
    host = Host(2 * (_LARGE + _SMALL) if device.type == "cuda" else 0)
    small = _seconds(host, _SMALL, device, together=False)
    large = [_seconds(host, _LARGE, device, together) for together in (False, True)]
    host.close()
    # other work on the machine may have held up the small copies: their latency is then within the large one's time
    rates = [max(1, int(_LARGE / max(took - small if small < took / 2 else took, 1e-9))) for took in large]
    latency = min(small, *large)
    if device.type == "cuda":
        latency = max(latency, _queueing_seconds(device))
    return [*rates, int(1e9 * latency)]


def _seconds(host: Host, size: int, device: torch.device, together: bool) -> float:
    """Seconds of a copy of so many bytes in the slower direction; together: while the other is busy, too.  The least of
    some runs: whatever else the machine does only adds."""
    leaving, coming = (torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2))
    (there, _), (back, _) = host.take(size), host.take(size)
    pairs = (there, leaving), (coming, back)
    if device.type != "cuda":
        return max(min(_clocked(into, source) for _ in range(_RUNS)) for into, source in pairs)
    streams = [torch.cuda.Stream(device) for _ in pairs]
    lanes = list(zip(pairs, streams, strict=True))
    return max(min(_queued(busy, device) for _ in range(_RUNS)) for busy in ([lanes] if together else [[lane] for lane in lanes]))


def _queueing_seconds(device: torch.device) -> float:
    """Seconds in which the host queues a copy of a few bytes as plans do, and the wait for it."""
    host = Host(2 * _SMALL)
    t, found = torch.ones(_SMALL, dtype=torch.uint8, device=device), float("inf")
    for _ in range(4 * _RUNS):
        began = time.perf_counter()
        there, _ = host.take(_SMALL)
        QueuedCopy(there, t, (), "out").wait()
        found = min(found, time.perf_counter() - began)
        torch.cuda.synchronize(device)
        del there
    host.close()
    return found


def _clocked(into: torch.Tensor, source: torch.Tensor) -> float:
    began = time.perf_counter()
    into.copy_(source)
    return time.perf_counter() - began


def _queued(lanes: list[Any], device: torch.device) -> float:
    """Seconds of one of several copies that are queued in each of these lanes, by events of their streams."""
    torch.cuda.synchronize(device)
    events = []
    for (into, source), stream in lanes:
        with torch.cuda.stream(stream):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            for _ in range(_IN_A_ROW):
                into.copy_(source, non_blocking=True)
            last.record()
        events.append((first, last))
    torch.cuda.synchronize(device)
    return max(first.elapsed_time(last) for first, last in events) / 1e3 / _IN_A_ROW
