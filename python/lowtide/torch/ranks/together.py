"""Which ranks plan together at a call of `optimize` or `step`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ...frontend.errors import CaptureError
from ..compat import sharding
from .agreement import Agreement
from .one_plan import OnePlan

if TYPE_CHECKING:
    from typing import Literal

    Ranks = Union[Literal["together", "alone"], dist.ProcessGroup, None]

_SECONDS_ALONE = 60.0  # the limit of an exchange that has nobody to wait for
_ALONE = "fake"  # the backend of a process group whose other ranks do not exist


def several_ranks() -> bool:
    """Is this process one of several ranks?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def process_group_of(module: torch.nn.Module, ranks: Ranks) -> Any:
    """The process group of the ranks that make this call of `optimize` together; None for a rank that plans alone.

    ranks: as of `optimize`.  Raises ValueError.
    """
    if isinstance(ranks, str) and ranks not in ("together", "alone"):
        raise ValueError(f"ranks must be 'together', 'alone', a process group or None, not {ranks!r}")
    if not several_ranks() or ranks == "alone":
        return None
    group: Any = ranks
    if ranks is None and (states := sharding.states_of(module)):
        group = _of_sharded(states)
    elif ranks is None:
        group = module.process_group if isinstance(module, DistributedDataParallel) else None
    elif ranks == "together":
        group = dist.group.WORLD
    return None if group is None or dist.get_world_size(group) == 1 or dist.get_backend(group) == _ALONE else group


def _of_sharded(states: list[Any]) -> Any:
    """The process group of the ranks that have a model under FSDP2 together: those of the mesh that contains all others."""
    meshes = sharding.meshes_of(states)
    all_ranks = {rank for _, ranks in meshes for rank in ranks}
    for group, _ in meshes:
        if group is not None and set(dist.get_process_group_ranks(group)) == all_ranks:
            return group
    if len(all_ranks) in (0, dist.get_world_size()):
        return dist.group.WORLD
    raise CaptureError(f"no process group is known that has all {len(all_ranks)} ranks of this model under FSDP2, such as those of a mesh of "
                       "shards and replicas that is a part of the job: give it, optimize(..., ranks=process_group)")


@contextlib.contextmanager
def agreeing(group: Any) -> Iterator[Agreement]:
    """The agreement of the ranks of a process group within the block, which all of them enter; None: that of this rank alone."""
    if group is None:
        rank = dist.get_rank() if dist.is_initialized() else 0
        agreement = Agreement(dist.HashStore(), rank, [rank], _SECONDS_ALONE)
    else:
        agreement = Agreement.of(group)
    with agreement:
        yield agreement


@contextlib.contextmanager
def planning(group: Any) -> Iterator[OnePlan | None]:
    """The ranks of a process group plan together within the block, which all of them enter; None: this rank plans alone.

    Raises RankError if a rank has failed or is missing at the end of the block.
    """
    if group is None:
        yield None
        return
    with Agreement.of(group) as agreement:
        yield OnePlan(agreement)
        agreement.exchange("the end of planning")
