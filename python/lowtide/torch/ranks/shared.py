"""Modules that several ranks share: which are rejected, and what to do instead.

FSDP and DDP work through hooks around a module's forward and backward, on every rank at once.  A rehearsal on one rank (entry.py)
would run half of them: parameters would stay gathered, an optimizer made afterwards would hold copies that are never updated, and
buckets would wait for gradients.  So such modules are rejected before anything is changed.  Tensor parallelism is in the graph,
where plans count it.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

from ...frontend.errors import CaptureError
from ..compat.distributed import fsdp_groups
from ..tensors.storages import storage

_BLOCKS = ("give each of its blocks a plan of its own, before they are sharded: block.compile(backend=\"lowtide\", "
           "options={\"budget\": ...}), with the bytes that one block may take; or train it without Lowtide")
_WRAP = ("optimize the plain module and wrap what that returns: DistributedDataParallel(lowtide.torch.optimize(module, ...)), whose "
         "buckets are then counted")
_WHOLE = ("optimize the model that it is a part of, after fully_shard(model) for that as a whole; capture and explain take the model "
          "before it is sharded")


def refuse_shared(module: torch.nn.Module, who: str, *, takes_parts: bool = False) -> None:
    """Raises CaptureError for a module that other ranks or devices share, or with a part that they share.

    who: the function that does not take it.  takes_parts: but it takes parameters of which each rank holds a part (tensor
    parallelism), since all communication is in the graph then.  Nothing of the module is touched.
    """
    for path, part in module.named_modules():
        reason = _shared_by(part)
        if reason:
            raise CaptureError(f"{who} takes no module that several ranks share, and {_named(path)} is "
                               f"{reason[0]}; {reason[1]}")
    for path, tensor in () if takes_parts else (*module.named_parameters(), *module.named_buffers()):
        if _is_dtensor(tensor):
            raise CaptureError(f"{who} takes no module that several ranks share, and {path} is a DTensor, of which "
                               "each rank holds a part; give a plan to the modules whose parameters are whole, or "
                               "train it without Lowtide")


def has_parts(module: torch.nn.Module) -> bool:
    """Has it parameters of which each rank holds a part (tensor parallelism)?"""
    return any(map(_is_dtensor, module.parameters()))


def beside_sharded(args: list[Any]) -> str | None:
    """Words for a graph that runs on parameters which FSDP has gathered for it; None for any other.

    What FSDP2 holds beside it, by its design: a shard of each parameter and of its gradient, a group that is gathered
    ahead with the flat copy that it comes from, and gradients on their way to their shards.
    """
    if "torch.distributed.fsdp" not in sys.modules:
        return None
    words = ("runs on parameters that FSDP has gathered. The plan counts these and their gradients, and nothing else that "
             "FSDP holds: shards of parameters and gradients, what is gathered ahead, what is reduced, and what other "
             "blocks have saved. The budget, a share as well, is one of this graph")
    tensors = [t for t in args if isinstance(t, torch.Tensor)]
    if any(getattr(t._base, "_fsdp_flattened", False) for t in tensors if t._base is not None):
        return f"{words}; reserve= counts the rest, in bytes"
    given = set(map(storage, tensors))
    groups = _gathered_groups()
    if not any(key in given for keys, _, _ in groups for key in keys):
        return None
    beside = 2 * sum(shards for _, _, shards in groups) + 3 * max(whole for _, whole, _ in groups)
    return f"{words}; reserve={beside} counts what FSDP itself holds"


def _gathered_groups() -> list[tuple[set[int], int, int]]:
    """For each group of parameters under FSDP2: the gathered storages, their bytes, and the bytes of the shards."""
    groups = []
    for group in fsdp_groups():
        whole = [p._unsharded_param for p in group.fsdp_params if hasattr(p, "_unsharded_param")]
        shards = [p.sharded_param.to_local() for p in group.fsdp_params]
        groups.append((set(map(storage, whole)), sum(t.numel() * t.element_size() for t in whole),
                       sum(t.numel() * t.element_size() for t in shards)))
    return groups


def _named(path: str) -> str:
    return repr(path) if path else "this one"


def _shared_by(part: torch.nn.Module) -> tuple[str, str] | None:
    """The wrapper by which ranks share a module, and what to do instead; None for a module of this rank alone."""
    if isinstance(part, DistributedDataParallel):
        return "under DistributedDataParallel", f"{_WRAP}, or give optimize the wrapped module"
    if isinstance(part, DataParallel):
        return ("under DataParallel, which runs copies of it in threads", "optimize the plain module in a process for "
                "each device, and wrap what that returns in DistributedDataParallel")
    contract = sys.modules.get("torch.distributed._composable.contract")  # nobody is under what was never imported
    if contract and "replicate" in (contract._get_registry(part) or {}):
        return "under replicate", _WRAP
    fsdp = sys.modules.get("torch.distributed.fsdp")
    if fsdp and isinstance(part, fsdp.FSDPModule):
        return "under FSDP2 (fully_shard)", _WHOLE
    if fsdp and isinstance(part, fsdp.FullyShardedDataParallel) or any(
            getattr(p, "_fsdp_flattened", False) for p in part.parameters(recurse=False)):
        return "under FSDP (FullyShardedDataParallel)", _BLOCKS
    return None


def _is_dtensor(tensor: torch.Tensor) -> bool:
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)
