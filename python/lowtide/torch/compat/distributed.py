"""The state of DistributedDataParallel and FSDP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from .versions import before, needed


def running_ddp() -> Any:
    """The DistributedDataParallel module whose forward runs now, or None."""
    return DistributedDataParallel._get_active_ddp_module()


def fsdp_groups() -> Iterator[Any]:
    """The groups of parameters that FSDP2 gathers together; before 2.12 a module has one at most."""
    with needed("state of FSDP2"):
        from torch.distributed._composable_state import _module_state_mapping as states

    for state in {id(state): state for ref in states.values() if (state := ref()) is not None}.values():
        if before(2, 12):
            group = getattr(state, "_fsdp_param_group", None)
            yield from () if group is None else (group,)
        else:
            yield from getattr(state, "_fsdp_param_groups", ())


def functional_collectives() -> Any:
    """The collectives that a graph can hold; on fake tensors they need no process group."""
    with needed("functional collectives"):
        import torch.distributed._functional_collectives  # which says what shapes they return

        return torch.ops._c10d_functional
