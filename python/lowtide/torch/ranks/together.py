"""Which ranks plan together at a call of `optimize` or `step`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from .agreement import Agreement
from .one_plan import OnePlan

if TYPE_CHECKING:
    from typing import Literal

    Ranks = Union[Literal["together", "alone"], dist.ProcessGroup, None]

_ALONE = "fake"  # the backend of a process group whose other ranks do not exist


def several_ranks() -> bool:
    """Is this process one of several ranks?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def ranks_of(module: torch.nn.Module, ranks: Ranks) -> Any:
    """The process group of the ranks that make this call of `optimize` together; None for a rank that plans alone.

    ranks: as of `optimize`.  Raises ValueError.
    """
    if isinstance(ranks, str) and ranks not in ("together", "alone"):
        raise ValueError(f"ranks must be 'together', 'alone', a process group or None, not {ranks!r}")
    if not several_ranks() or ranks == "alone":
        return None
    group: Any = ranks
    if ranks is None:
        group = module.process_group if isinstance(module, DistributedDataParallel) else None
    elif ranks == "together":
        group = dist.group.WORLD
    return None if group is None or dist.get_world_size(group) == 1 or dist.get_backend(group) == _ALONE else group


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
