"""The allocator of a GPU's memory in this process: by which settings its model is asked, or why the model knows nothing of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import lowtide

from ..compat.cuda import allocator_backend, allocator_settings, pool_of
from .identity import untraced

_KEPT = ("parameter", "state", "constant")  # roles of what is allocated once


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


def scattered(graph: lowtide.Graph, settings: str, device: torch.device) -> int:
    """Bytes that the allocator keeps beside what others hold, in segments of which a part is in use, beyond what its model keeps
    beside the step's own parameters and state.  What is wholly free is given back first: a plan takes its own segments."""
    torch.cuda.empty_cache()
    there = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    kept = [graph.resident_bytes, *(t.bytes for t in graph.tensors if t.producer is None and t.role in _KEPT and t.home != "host")]
    end = lowtide.replay_allocations([("allocate", number, size) for number, size in enumerate(kept) if size], settings)["end"]
    return int(max(0, there - (end["reserved"] - end["allocated"])))


def _limits_the_process(setting: str) -> bool:
    """A limit makes the allocator give back cached memory earlier: what is reserved without it is an upper bound."""
    return setting.strip().startswith("per_process_memory_fraction")
