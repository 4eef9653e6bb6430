"""The units of a model under FSDP2, in bytes, read from what FSDP2 knows of its parameters."""

from __future__ import annotations

from typing import Any

import torch

from ...frontend.errors import CaptureError
from ..compat import sharding
from .gathered import Unit


def check_units(states: list[Any]) -> None:
    """Raises CaptureError for what no plan counts.  states: of FSDP2, initialized."""
    for state in states:
        for group in sharding.groups_of(state):
            for parameter in group.fsdp_params:
                module, name = sharding.places_of(parameter)[0]
                where = f"{type(module).__name__}.{name}"
                if parameter.is_dtensor:
                    raise CaptureError(f"optimize takes no parameter that is a DTensor under FSDP2, as {where} is: tensor parallel layers "
                                       "hide the storages that a plan counts. Compile the blocks (block.compile(backend=\"lowtide\")) "
                                       "whose parameters are whole, or train it without Lowtide")
                if sharding.is_extended(parameter):
                    raise CaptureError(f"optimize takes no parameter whose shard is gathered by code of its own (fsdp_pre_all_gather), as "
                                       f"{where} is: what that takes is unknown. Shard plain tensors, or train it without Lowtide")


def units_of(states: list[Any]) -> tuple[list[Any], list[Unit]]:
    """The groups of these states, the root's first, and what each of them takes."""
    groups = [(state, group) for state in states for group in sharding.groups_of(state)]
    index = {id(group): i for i, (_, group) in enumerate(groups)}
    return [group for _, group in groups], [_unit(state, group, index) for state, group in groups]


def _unit(state: Any, group: Any, index: dict[int, int]) -> Unit:
    ranks = sharding.size_of(group)
    on_device = not group.fsdp_params or not group.fsdp_params[0].offload_to_cpu or group.device.type == "cpu"
    shards = gradients = whole = reduced = added = cast = scattered = turned = turned_back = 0
    for parameter in group.fsdp_params:
        count = sharding.shard_of(parameter).numel()
        kept, gathered, reduces = sharding.types_of(parameter)
        shards += count * kept.itemsize
        whole += count * ranks * gathered.itemsize
        cast += count * gathered.itemsize if gathered != kept or not on_device else 0
        turned += count * ranks * gathered.itemsize if parameter.fsdp_placement.dim else 0
        if parameter.sharded_param.requires_grad:
            gradients += count * kept.itemsize
            reduced += count * ranks * reduces.itemsize
            added += count * ranks * reduces.itemsize
            scattered += count * reduces.itemsize if reduces != kept or not on_device else 0
            turned_back += count * ranks * gathered.itemsize if parameter.fsdp_placement.dim else 0
    after = sharding.size_after_forward(group)
    ahead = sharding.groups_ahead(state, False)
    stays = scattered if sharding.has_several(group) else 0  # until the backward ends, for the sum over replicas
    flat = whole if ranks > 1 else 0
    accumulates = any(parameter.sharded_param.grad is not None for parameter in group.fsdp_params)
    always = (shards + gradients * accumulates) * on_device + stays + (0 if group.reduce_grads else added)
    return Unit(always=always, gradients=gradients * on_device * (not accumulates), whole=whole, flat=flat, reduced=reduced,
                gather=cast + turned, reduce=scattered + gradients * (not on_device) + turned_back,
                left=whole if after is None else whole // after if after < ranks else 0,
                lasts=not group.unshard_async_op, frees=group.reshard_after_backward,
                again=group.unshard_in_backward,
                before=tuple(index[id(other)] for other in ahead if id(other) in index) if ahead else None)


def accumulated_bytes(states: list[Any]) -> int:
    """Bytes of the gradients of shards that are there."""
    return sum(sharding.shard_of(p).nbytes for state in states for group in sharding.groups_of(state) for p in group.fsdp_params
               if p.sharded_param.grad is not None)


def sharded_bytes(states: list[Any]) -> int:
    """Bytes of this rank's shards of trained parameters, for each of which an optimizer keeps a state."""
    return sum(t.numel() * t.element_size() for t in _shards(states) if t is not None)


def _shards(states: list[Any]) -> list[torch.Tensor]:
    return [sharding.shard_of(p) for state in states for group in sharding.groups_of(state) for p in group.fsdp_params
            if p.sharded_param.requires_grad]
