"""How much memory a function takes at its peak, as measured.

On a GPU the figure is the caching allocator's own.  On a CPU PyTorch keeps no such figure; the profiler's
memory events are added up instead, which include the workspaces of kernels.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree


def measure_peak(function: Callable[..., Any], *args: Any, held: Iterable[Any] = (), **kwargs: Any) -> int:
    """Bytes at the peak of function(*args, **kwargs), run once.

    held: modules, optimizers and tensors that are there before the call; their bytes (each storage once)
    are part of the figure on a CPU, where only the rise can be seen.  On a GPU the figure is that of
    torch.cuda.max_memory_allocated for the current device: all that is there, `held` or not.

    The result of the function is dropped before the end is seen, its peak is not.
    """
    gc.collect()
    if _on_gpu(held, args, kwargs):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        function(*args, **kwargs)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    return bytes_held(held, args, kwargs) + peak_rise(function, *args, **kwargs)


def peak_rise(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """Bytes by which the CPU's allocations rise at most above those at the call (never below 0)."""
    activity = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activity, profile_memory=True) as profile:
        result = function(*args, **kwargs)
        del result
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda e: e.start_ns())
    now = peak = 0
    for event in events:
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def bytes_held(*things: Any) -> int:
    """Bytes of all storages in modules, optimizers, tensors and containers of them, each storage once."""
    seen: dict[int, int] = {}

    def add(tensor: torch.Tensor) -> None:
        data = tensor.untyped_storage()
        seen[data._cdata] = data.nbytes()

    def walk(thing: Any) -> None:
        if isinstance(thing, torch.nn.Module):
            for tensor in (*thing.parameters(), *thing.buffers()):
                add(tensor)
                if tensor.grad is not None:
                    add(tensor.grad)
        elif isinstance(thing, torch.optim.Optimizer):
            for tensor in pytree.tree_leaves([list(v.values()) for v in thing.state.values()]):
                walk(tensor)
        elif isinstance(thing, torch.Tensor):
            add(thing)
        elif isinstance(thing, (list, tuple)):
            for part in thing:
                walk(part)
        elif isinstance(thing, dict):
            for part in thing.values():
                walk(part)

    walk(things)
    return sum(seen.values())


def _on_gpu(*things: Any) -> bool:
    if not torch.cuda.is_available():
        return False
    modules = [m for m in pytree.tree_leaves(things) if isinstance(m, torch.nn.Module)]
    tensors = [t for t in pytree.tree_leaves(things) if isinstance(t, torch.Tensor)]
    tensors += [p for m in modules for p in m.parameters()]
    return any(t.is_cuda for t in tensors)
