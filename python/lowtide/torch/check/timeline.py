"""Kernels and copies that run at the same time on a GPU, from the profiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from .measure import Inputs, one_step, wait

Span = tuple[int, int]  # ns, from and to


def timeline(run: Callable[..., torch.Tensor], inputs: Inputs, module: nn.Module) -> dict[str, Any]:
    """ms of kernels and of copies out and in in one step, and of the copies while a kernel ran; how many copies."""
    from torch.profiler import ProfilerActivity, profile

    module.zero_grad(set_to_none=True)
    wait()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        one_step(run, inputs)
        wait()
    module.zero_grad(set_to_none=True)
    spans: dict[str, list[Span]] = {"kernels": [], "out": [], "in": []}
    for event in profiled.profiler.kineto_results.events():
        lane = _lane(event)
        if lane:
            spans[lane].append((event.start_ns(), event.start_ns() + event.duration_ns()))
    busy = merged(spans["kernels"])
    found = {f"{lane}_ms": _ms(sum(b - a for a, b in of)) for lane, of in spans.items()}
    for lane in ("out", "in"):
        found[f"{lane}_beside_kernels_ms"] = _ms(sum(overlap(span, busy) for span in spans[lane]))
        found[f"{lane}_copies"] = len(spans[lane])
    return found


def _lane(event: Any) -> str:
    name = event.name()
    if "CUDA" not in str(event.device_type()) or name.startswith("Memset"):
        return ""
    return "out" if "DtoH" in name else "in" if "HtoD" in name else "kernels"


def _ms(ns: float) -> float:
    return round(ns / 1e6, 2)


def merged(spans: Sequence[Span]) -> list[Span]:
    """The same times, without overlaps, in their order."""
    found: list[Span] = []
    for a, b in sorted(spans):
        if found and a <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], b)
        else:
            found.append((a, b))
    return found


def overlap(span: Span, busy: Sequence[Span]) -> int:
    """How much of a span lies within others, which do not overlap."""
    return sum(max(0, min(span[1], b) - max(span[0], a)) for a, b in busy)
