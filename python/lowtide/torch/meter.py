"""How much memory a function takes at its peak, as measured.

On a GPU the figure is the caching allocator's own.  On a CPU PyTorch keeps no such figure; the profiler's
memory events are added up instead, which include the workspaces of kernels.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .offloading.host import is_on_host
from .storages import Sizes, storages


def measure_peak(function: Callable[..., Any], *args: Any, held: Iterable[Any] = (), **kwargs: Any) -> int:
    """Bytes at the peak of function(*args, **kwargs), run once.

    held: modules, optimizers and tensors that are there before the call; their bytes (each storage once)
    are part of the figure on a CPU, where only the rise can be seen, but for those that a plan keeps on the emulated host.
    On a GPU the figure is that of torch.cuda.max_memory_allocated for the current device: all that is there, `held` or not.

    The result of the function is dropped before the end is seen, its peak is not.
    """
    if _on_gpu(held, args, kwargs):
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        function(*args, **kwargs)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
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
    """Bytes that `run` takes at its peak beyond those that are live when it has returned what it made."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        made = run()
        torch.cuda.synchronize(device)
        beyond = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
        del made
        return beyond
    held: list[Any] = []
    peak, rest = _rise_and_rest(lambda: held.append(run()))
    return peak - max(rest, 0)


def _rise_and_rest(run: Callable[[], Any]) -> tuple[int, int]:
    """The most bytes, and those at the end, of a run on the CPU beyond those at its beginning."""
    before = os.environ.get("KINETO_LOG_LEVEL")
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it announces itself on standard error
    try:
        activity = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activity, profile_memory=True) as profile:
            run()
    finally:
        if before is None:
            os.environ.pop("KINETO_LOG_LEVEL", None)
    now = peak = 0
    for event in sorted(profile.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    return peak, now


def bytes_held(*things: Any) -> int:
    """Bytes of all storages in modules, optimizers, tensors and containers of them, each storage once, as their
    device's allocator counts them."""
    return sum(storages_held(*things).values())


def storages_held(*things: Any, but: Callable[[torch.Tensor], bool] = lambda _: False) -> Sizes:
    """What bytes_held adds up: storage -> bytes.  but: of which tensors none is wanted."""
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


def _on_gpu(*things: Any) -> bool:
    if not torch.cuda.is_available():
        return False
    modules = [m for m in pytree.tree_leaves(things) if isinstance(m, torch.nn.Module)]
    tensors = [t for t in pytree.tree_leaves(things) if isinstance(t, torch.Tensor)]
    tensors += [p for m in modules for p in m.parameters()]
    return any(t.is_cuda for t in tensors)
