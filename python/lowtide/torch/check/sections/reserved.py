"""What the allocator reserves for plans, beside what its model says (docs/reference/allocator.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

import lowtide

from ....frontend.planning import layout, taken
from ...compat.cuda import OwnPool
from ..measure import mib
from ..section import Context

SETTINGS = "expandable_segments:True"
ENVIRONMENT = {"PYTORCH_ALLOC_CONF": "", "PYTORCH_CUDA_ALLOC_CONF": ""}
EXPANDABLE = {"PYTORCH_ALLOC_CONF": SETTINGS, "PYTORCH_CUDA_ALLOC_CONF": SETTINGS}
KINDS = ("resnet", "unet", "transformer", "chain")
BUDGETS = ("", "75%", "60%", "50%", "40%")
_CLOSE = .02  # of what is reserved


def reserved(context: Context) -> None:
    _compare(context, "")
    _compare_layouts(context)


def reserved_expandable(context: Context) -> None:
    _compare(context, SETTINGS)


def _compare(context: Context, settings: str) -> None:
    limit = torch.cuda.mem_get_info()[0] // 2 if context.on_gpu else 1 << 40
    worst, runs, exact, off = 0.0, 0, 0, []
    for seed in range(1 if context.tiny else 3):
        for kind in KINDS:
            graph = lowtide.generate(kind, 60 if context.tiny else 400, seed=seed)
            for budget in BUDGETS:
                if context.seconds_left < 8:
                    break
                plan = lowtide.plan(graph, budget, work=100_000).plan if budget else None
                expected = lowtide.footprint(graph, plan, allocator=settings)
                if (budget and plan is None) or expected.reserved > limit:
                    continue
                runs += 1
                if not context.on_gpu:
                    continue
                allocated, taken = _replay(lowtide.plan_allocations(graph, plan))
                error = taken / expected.reserved - 1
                worst = max(worst, abs(error), key=abs)
                exact += (allocated, taken) == (expected.allocated, expected.reserved)
                if abs(error) > _CLOSE or allocated != expected.allocated:
                    off.append(f"{kind} {seed} {budget or 'no plan'}: {mib(taken)} reserved, {mib(expected.reserved)} in the model")
    context.say(f"reserved by {settings or 'the defaults'}", ["reserved"] if off else [], runs=runs, exact=exact,
                worst_percent=round(100 * worst, 3), off=off[:10])


def _compare_layouts(context: Context) -> None:
    """Plans in one block, with the plugs of an exact layout."""
    off, runs = [], 0
    for kind in KINDS:
        graph = lowtide.generate(kind, 60 if context.tiny else 400)
        plan = lowtide.plan(graph, "60%", work=100_000).plan
        if context.seconds_left < 8 or plan is None:
            continue
        arranged = layout.arrangement(graph, plan, None)
        ways = [("prime", taken.primed_events(graph, plan, None))]
        ways += [("exact", taken.arranged_events(graph, plan, None, arranged))] if arranged else []
        for how, events in ways:
            expected = lowtide.replay_allocations(events)["peaks"]["reserved"]
            runs += 1
            if not context.on_gpu or expected > torch.cuda.mem_get_info()[0] // 2:
                continue
            _, found = _replay(events)
            if abs(found / expected - 1) > _CLOSE:
                off.append(f"{kind} {how}: {mib(found)} reserved, {mib(expected)} in the model")
    context.say("reserved by layouts in one block", ["reserved"] if off else [], runs=runs, off=off)


def _replay(events: Iterable[tuple[Any, ...]]) -> tuple[int, int]:
    """The peaks of the card's allocator: allocated, and reserved.  What names a pool other than 0 comes from one of its own."""
    own: OwnPool | None = None
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    held: dict[int, int] = {}
    for event in events:
        if event[0] == "allocate":
            if event[3:] in ((), (0,)):
                held[event[1]] = torch.cuda.caching_allocator_alloc(event[2])
            else:
                own = own or OwnPool(torch.device("cuda", torch.cuda.current_device()))
                with own.inside():
                    held[event[1]] = torch.cuda.caching_allocator_alloc(event[2])
        elif event[0] == "free":
            torch.cuda.caching_allocator_delete(held.pop(event[1]))
    peaks = torch.cuda.max_memory_allocated() - before[0], torch.cuda.max_memory_reserved() - before[1]
    for pointer in held.values():
        torch.cuda.caching_allocator_delete(pointer)
    return peaks
