"""The allocator of a GPU's memory in this process: by which settings its model is asked, or why the model knows nothing of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch

import lowtide

from ...frontend.planning.taken import STANDING, AllocatorState
from ..compat.cuda import allocator_backend, allocator_settings, pool_of, segments
from .identity import untraced


@dataclass(frozen=True)
class Allocator:
    """settings: as the model takes them; None where it knows nothing of the allocator.  unknown: why, in words."""

    settings: str | None
    unknown: str = ""


def allocator_of(device: torch.device) -> Allocator:
    """The allocator that this thread's tensors on a GPU come from."""
    backend = allocator_backend()
    if backend != "native":
        return Allocator(None, f"PyTorch allocates by {backend!r} here, and the model knows the 'native' allocator alone")
    settings = ",".join(part for part in allocator_settings().split(",") if not _limits_the_process(part))
    try:
        lowtide.replay_allocations([], settings)
    except lowtide.Error as error:
        return Allocator(None, f"the allocator's settings {settings!r} are unknown to its model: {error}")
    with untraced(device):
        probe = torch.empty(1, dtype=torch.uint8, device=device)
        pool = pool_of(probe)
    if pool != (0, 0):
        return Allocator(None, "tensors come from a torch.cuda.MemPool here, beside which the model does not know the other memory")
    return Allocator(settings)


def allocator_state(device: torch.device) -> AllocatorState:
    """What the allocator of a GPU holds now.  Wholly free segments are given back first.

    The model allocates each segment with its blocks in their order, and then frees those that are free.  Blocks of another stream or pool
    than those of this thread count as used, since a step cannot use them.
    """
    torch.cuda.empty_cache()
    events, ids = [], itertools.count(STANDING)
    free: list[int] = []
    for segment in segments(device):
        if segment.whole and len(segment.blocks) > 1:
            whole = next(ids)
            events += [("allocate", whole, sum(size for size, _ in segment.blocks)), ("free", whole)]
        for size, used in segment.blocks:
            number = next(ids)
            events.append(("allocate", number, size))
            if not used:
                free.append(number)
    events += [("free", number) for number in free]
    events.append(("empty_cache",))  # of expandable segments, whose free pages are not mapped
    return AllocatorState(tuple(events), torch.cuda.memory_allocated(device))


def _limits_the_process(setting: str) -> bool:
    """A limit makes the allocator give back cached memory earlier: what is reserved without it is an upper bound."""
    return setting.strip().startswith("per_process_memory_fraction")
