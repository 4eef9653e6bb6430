"""The state of process groups, of DistributedDataParallel and of FSDP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .sharding import groups_of
from .versions import needed


def store_of(group: dist.ProcessGroup) -> tuple[Any, str, float]:
    """A store that all ranks of a process group reach, the name that all of them know the group by, and the store's time limit in
    seconds."""
    with needed("store of a process group"):
        store: Any = dist.distributed_c10d._get_default_store()
        return store, group.group_name, store.timeout.total_seconds()


class GroupFacts(NamedTuple):
    """The number of ranks of a process group, and the library that connects them."""

    size: int
    backend: str


_of_captures: dict[Any, GroupFacts] = {}


def group_of_capture(name: str, size: int) -> str:
    """The name of a group that graphs of a cluster refer to, and no process is in."""
    full = f"{name}, {size} ranks"
    _of_captures[full] = GroupFacts(size, "nccl")
    return full


def group_named(name: Any) -> GroupFacts | None:
    """A process group by the name that a functional collective has for it; None if this process knows none of that name."""
    if isinstance(name, str) and name in _of_captures:
        return _of_captures[name]
    if not dist.is_available() or not dist.is_initialized():
        return None
    with needed("process groups by name"):
        resolve: Any = dist.distributed_c10d._resolve_process_group
    try:
        group = resolve(name) if isinstance(name, str) else name
        return GroupFacts(group.size(), str(dist.get_backend(group)))
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return None


def running_ddp() -> Any:
    """The DistributedDataParallel module whose forward runs now, or None."""
    return DistributedDataParallel._get_active_ddp_module()


def reduces_gradients(ddp: DistributedDataParallel) -> bool:
    """Does the next backward reduce gradients?"""
    return bool(ddp.require_backward_grad_sync)


def parameters_of(ddp: DistributedDataParallel) -> list[Any]:
    """The parameters whose gradients a DDP module gathers in buckets, whatever module it runs."""
    with needed("parameters of DistributedDataParallel"):
        return [p for p in ddp._module_parameters if p.requires_grad]


def bucket_limits(ddp: DistributedDataParallel) -> tuple[int, int]:
    """Bytes that fill the first bucket of a DDP module, and any other, once it has sorted them."""
    cap = int(getattr(ddp, "bucket_bytes_cap", 25 << 20))
    return min(int(getattr(dist, "_DEFAULT_FIRST_BUCKET_BYTES", 1 << 20)), cap), cap


def splits_parameters(ddp: DistributedDataParallel) -> str:
    """What makes the parameters of a DDP module others during a step; empty if nothing does."""
    if getattr(ddp, "mixed_precision", None) is not None:
        return "mixed_precision="
    if getattr(ddp, "_delay_all_reduce_params", None):
        return "delay_all_reduce_named_params="
    return "the reducer in Python (torch._dynamo.config.optimize_ddp)" if getattr(ddp, "_use_python_reducer", False) else ""


def fsdp_groups() -> Iterator[Any]:
    """The groups of parameters that FSDP2 gathers together."""
    with needed("state of FSDP2"):
        from torch.distributed._composable_state import _module_state_mapping as states

    for state in {id(state): state for ref in states.values() if (state := ref()) is not None}.values():
        yield from groups_of(state)


def functional_collectives() -> Any:
    """The collectives that a graph can hold; on fake tensors they need no process group."""
    with needed("functional collectives"):
        import torch.distributed._functional_collectives  # which says what shapes they return

        return torch.ops._c10d_functional
