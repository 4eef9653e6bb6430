"""FSDP2: the units of a model (groups of parameters that are gathered together), their bytes, and a forward that gathers nothing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .versions import before, needed


def states_of(module: torch.nn.Module) -> list[Any]:
    """The states of FSDP2 in a module, one for each call of fully_shard, in the order of the modules; the module's own is the first.
    Empty if it has none of its own."""
    if "torch.distributed.fsdp" not in sys.modules:
        return []
    with needed("state of FSDP2"):
        from torch.distributed.fsdp._fully_shard._fsdp_state import _get_module_fsdp_state as state_of

    found = {id(state): state for part in module.modules() if (state := state_of(part)) is not None}
    return list(found.values()) if state_of(module) is not None else []


def states_around(module: torch.nn.Module) -> list[Any]:
    """The states of the model under FSDP2 that a module is in, the root's first; empty if it is in none, or the model has not run."""
    if "torch.distributed.fsdp" not in sys.modules:
        return []
    with needed("state of FSDP2"):
        from torch.distributed._composable_state import _module_state_mapping as known
        from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState

    states = [state for ref in known.values() if isinstance(state := ref(), FSDPState)]
    around = (state for state in states if any(module is part for outer in state._modules for part in outer.modules()))
    return list(next((state._state_ctx.all_states for state in around), ()))


def whole_of(group: Any) -> list[torch.Tensor]:
    """The whole parameters of a group, as far as they were made."""
    return [parameter._unsharded_param for parameter in group.fsdp_params if hasattr(parameter, "_unsharded_param")]


def modules_of(state: Any) -> tuple[torch.nn.Module, ...]:
    """The modules around whose forwards a state's hooks run."""
    return tuple(state._modules)


def groups_of(state: Any) -> list[Any]:
    """The groups of parameters of a state; before 2.12 it has one at most."""
    if before(2, 12):
        group = getattr(state, "_fsdp_param_group", None)
        return [] if group is None else [group]
    return list(getattr(state, "_fsdp_param_groups", ()))  # also of a state that is not FSDP2's


def casts(state: Any) -> tuple[torch.dtype | None, torch.dtype | None]:
    """The number types to which a state's hooks cast the inputs and the results of a forward."""
    policy = state._mp_policy
    return (policy.param_dtype if policy.cast_forward_inputs else None), policy.output_dtype


def initialize(state: Any) -> None:
    """What the first forward does before all else.  state: of a module that no other one contains.  Raises RuntimeError."""
    state._lazy_init()


def reshard(states: list[Any]) -> None:
    """Free all whole parameters."""
    for state in states:
        for group in groups_of(state):
            group.reshard()


def is_within(state: Any) -> bool:
    """Is the module a part of another one under FSDP2, as a forward has found?"""
    return state._is_root is False


def groups_ahead(state: Any, forward: bool) -> list[Any]:
    """The groups that are gathered ahead, beside what FSDP2 gathers by itself, with a state's forward or backward."""
    states = state._states_to_forward_prefetch if forward else state._states_to_backward_prefetch
    return [group for other in states for group in groups_of(other)]


def reductions_kept(state: Any) -> int:
    """How many inputs of reductions are kept at most."""
    return int(getattr(state._comm_ctx, "reduce_scatter_max_input_buffers", 1))


def ways_of(states: list[Any]) -> tuple[Any, ...]:
    """How gradients are reduced and parameters are freed after a backward."""
    return tuple((group.reduce_grads, group.reshard_after_backward) for state in states for group in groups_of(state))


def meshes_of(states: list[Any]) -> list[tuple[Any, tuple[int, ...]]]:
    """The meshes over which parameters are sharded and replicated: the process group of the shards, None where there is none, and all
    ranks of the mesh."""
    infos = {id(group.mesh_info): group.mesh_info for state in states for group in groups_of(state)}.values()
    return [(getattr(info, "shard_process_group", None), tuple(map(int, info.mesh.mesh.flatten()))) for info in infos]


def size_of(group: Any) -> int:
    """The count of ranks among which the parameters of a group are sharded."""
    return int(getattr(group.mesh_info, "shard_mesh_size", 1))


def has_several(group: Any) -> bool:
    """Are shards replicated, too?"""
    return hasattr(group.mesh_info, "replicate_mesh_size")


def size_after_forward(group: Any) -> int | None:
    """The count of ranks among which they are sharded between forward and backward; None: they stay whole."""
    info = group.post_forward_mesh_info
    return None if info is None else int(info.shard_mesh_size)


def is_extended(parameter: Any) -> bool:
    """Has a parameter's shard code of its own for gathering, such as one that quantizes?"""
    return hasattr(parameter._sharded_local_tensor, "fsdp_pre_all_gather")


def shard_of(parameter: Any) -> torch.Tensor:
    """This rank's shard, padded to that of the first rank."""
    return parameter._sharded_param_data


def types_of(parameter: Any) -> tuple[torch.dtype, torch.dtype, torch.dtype]:
    """The number types in which a parameter is kept, gathered and reduced."""
    gathered = parameter.param_dtype or parameter.orig_dtype
    return parameter.orig_dtype, gathered, parameter.reduce_dtype or gathered


def whole_size(parameter: Any) -> torch.Size:
    """The shape of a whole parameter."""
    return parameter._orig_size


def places_of(parameter: Any) -> list[tuple[torch.nn.Module, str]]:
    """The modules that have a parameter, and its names there."""
    info = parameter._module_info
    return [(info.module, info.param_name), *zip(info.shared_modules, info.shared_param_names, strict=True)]


def gathered_storages(group: Any) -> list[torch.UntypedStorage]:
    """The storages of the whole parameters of a group, as far as they were made."""
    return [tensor.untyped_storage() for parameter in group.fsdp_params for tensor in parameter.all_gather_outputs]


@contextlib.contextmanager
def gathering_nothing(states: list[Any], note: Callable[[str, Any, bool], None]) -> Iterator[None]:
    """Within, a forward of the root, the first of these states, runs all hooks, but no collective: whole parameters have any values.
    Afterwards all are as if no forward had run.

    note: told what would happen to a group ("gather", "copy", "enter", "leave": ranks/gathered.py), and of "enter" whether none of
    its inputs has a gradient.
    """
    groups = [group for state in states for group in groups_of(state)]
    for group in groups:
        _gather_nothing(group, note)
    try:
        yield
    finally:
        for group in groups:
            for name in ("unshard", "wait_for_unshard", "_register_post_backward_hook", "_record_post_forward"):
                vars(group).pop(name, None)
        _reset(states, groups)


def _gather_nothing(group: Any, note: Callable[[str, Any, bool], None]) -> None:
    enter, leave = group._register_post_backward_hook, group._record_post_forward
    pending = False

    def unshard(async_op: bool = False) -> None:
        nonlocal pending
        if not pending and not group.is_unsharded:
            pending = True
            note("gather", group, False)

    def wait_for_unshard() -> None:
        nonlocal pending
        if not pending:
            return
        pending = False
        for parameter in group.fsdp_params:
            gathered = types_of(parameter)[1]
            parameter.init_all_gather_outputs([shard_of(parameter).numel()], [gathered], size_of(group), group.device)
            parameter.alloc_all_gather_outputs()
            parameter.init_unsharded_param()
        group._to_unsharded()
        note("copy", group, False)

    def register_post_backward_hook(args: Any, kwargs: Any) -> Any:
        from torch.distributed.fsdp._common_utils import collect_grad_tensors

        note("enter", group, not collect_grad_tensors((args, kwargs)))
        return enter(args, kwargs)

    def record_post_forward() -> None:
        leave()
        note("leave", group, False)

    group.unshard, group.wait_for_unshard = unshard, wait_for_unshard
    group._register_post_backward_hook, group._record_post_forward = register_post_backward_hook, record_post_forward


def _reset(states: list[Any], groups: list[Any]) -> None:
    """As before the first forward."""
    with needed("state of FSDP2"):
        from torch.distributed.fsdp._fully_shard._fsdp_common import TrainingState

    for group in groups:
        group._training_state = TrainingState.IDLE
        group._to_sharded()
        group._post_forward_indices.clear()
    for state in states:
        state._training_state = TrainingState.IDLE
        state._comm_ctx.post_forward_order.clear()
        state._state_ctx.iter_forward_root = None
        getattr(state, "_modules_to_run_forward", set()).clear()
