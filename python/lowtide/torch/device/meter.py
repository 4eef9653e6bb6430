"""Measures the peak memory of a function.

On a GPU the figure is the caching allocator's.  On a CPU PyTorch has no such figure, so allocations and frees are recorded
(allocations.py), which includes workspaces of kernels.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..compat import pytree
from ..compat.cuda import allocations_of
from ..tensors.storages import Sizes, allocated, storages
from .allocations import allocations
from .host import is_on_host


def measure_peak(function: Callable[..., Any], *args: Any, held: Iterable[Any] = (), **kwargs: Any) -> int:
    """Bytes at the peak of function(*args, **kwargs), run once.

    held: modules, optimizers and tensors that exist before the call.  On a CPU only the rise is seen, so their bytes (each storage
    once) are added, except for tensors on the emulated host.  On a GPU the figure is torch.cuda.max_memory_allocated of the GPU that
    they and the arguments are on, for all memory, `held` or not.  Its statistics are reset (torch.cuda.reset_peak_memory_stats).

    Raises RuntimeError on a CPU within a profiler, which would receive the recorded allocations.

    The result of the function is dropped before the end is measured; its peak is not.
    """
    gpu = _gpu_of(held, args, kwargs)
    if gpu is not None:
        gc.collect()
        torch.cuda.synchronize(gpu)
        torch.cuda.reset_peak_memory_stats(gpu)
        function(*args, **kwargs)
        torch.cuda.synchronize(gpu)
        return torch.cuda.max_memory_allocated(gpu)
    there = storages_held(held, args, kwargs, but=is_on_host)
    return sum(there.values()) + peak_rise(function, *args, **kwargs)


def peak_rise(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Bytes by which the CPU's allocations rise at most above those at the call (never below 0).

    What the garbage collector finds is not the function's to free: it runs before, and not meanwhile.
    """
    def run() -> None:
        function(*args, **kwargs)

    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _rise_and_rest(run)[0]
    finally:
        if was_on:
            gc.enable()


def workspace(run: Callable[[], Any], device: torch.device) -> int:
    """Bytes that `run` takes at its peak beyond those that are live when it has returned what it made.

    On a GPU the statistics of its peak are the user's, and stay: what was allocated and freed again is added up.  That is exact
    for one allocation.  For several allocations, the allocator's record of a second run gives the peak.  If the user records
    memory, the sum is returned, an upper bound.
    """
    if device.type == "cuda":
        passing, allocations = _passing(run, device)
        steps = allocations_of(run, device) if allocations > 1 else None
        return passing if steps is None else min(passing, above_rest(steps, device))
    held: list[Any] = []
    peak, rest = _rise_and_rest(lambda: held.append(run()))
    return peak - max(rest, 0)


def _passing(run: Callable[[], Any], device: torch.device) -> tuple[int, int]:
    """Bytes that a run allocates on a GPU and frees again, and in how many allocations."""
    def stats() -> list[tuple[int, int]]:
        torch.cuda.synchronize(device)
        found = torch.cuda.memory_stats(device)
        return [(found[f"{what}.all.allocated"], found[f"{what}.all.current"]) for what in ("allocated_bytes", "allocation")]

    before = stats()
    made = run()
    after = stats()
    del made
    size, count = (max(0, (total - total_before) - (now - now_before))
                   for (total, now), (total_before, now_before) in zip(after, before, strict=True))
    return size, count


def above_rest(steps: Iterable[int], device: torch.device) -> int:
    """Bytes at the peak of allocations, and of frees as negative numbers, beyond those at their end."""
    sums = list(itertools.accumulate((allocated(size, device) if size > 0 else -allocated(-size, device) for size in steps), initial=0))
    return max(sums) - max(sums[-1], 0)


def _rise_and_rest(run: Callable[[], Any]) -> tuple[int, int]:
    """The most bytes, and those at the end, of a run on the CPU beyond those at its beginning."""
    sums = list(itertools.accumulate(allocations(run), initial=0))
    return max(sums), sums[-1]


def bytes_held(*things: Any) -> int:
    """Bytes of all storages in modules, optimizers, tensors and containers of them, each storage once, as their
    device's allocator counts them."""
    return sum(storages_held(*things).values())


def storages_held(*things: Any, but: Callable[[torch.Tensor], bool] = lambda _: False) -> Sizes:
    """The storages that bytes_held adds up, with their bytes.  but: tensors to exclude."""
    seen: Sizes = {}

    def walk(thing: Any) -> None:
        if isinstance(thing, torch.nn.Module):
            for tensor in (*thing.parameters(), *thing.buffers()):
                seen.update(storages((tensor, tensor.grad)))
        elif isinstance(thing, torch.optim.Optimizer):
            for tensor in pytree.tree_leaves([list(v.values()) for v in thing.state.values()]):
                walk(tensor)
        elif isinstance(thing, torch.Tensor):
            if not but(thing):
                seen.update(storages([thing]))
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                walk(part)
        elif isinstance(thing, dict):
            for part in thing.values():
                walk(part)

    walk(things)
    return seen


def _gpu_of(*things: Any) -> torch.device | None:
    """The first GPU that a module or tensor among these is on."""
    if not torch.cuda.is_available():
        return None
    modules = [m for m in pytree.tree_leaves(things) if isinstance(m, torch.nn.Module)]
    tensors = [t for t in pytree.tree_leaves(things) if isinstance(t, torch.Tensor)]
    tensors += [p for m in modules for p in m.parameters()]
    return next((t.device for t in tensors if t.is_cuda), None)
