"""Operators with side effects: those that must run once a step, and those that are not run to be priced.

A collective that one rank runs and another does not leaves both waiting for ever.  The ranks price and plan
each for itself, and what one of them finds in its cache the other would measure: so pricing runs no
collective, nor what prints, checks or logs, and a plan runs each exactly once, in the model's order.  An
operator of the user's own may hold a collective within and not say so.  Where there are several ranks, none of
these is run for its price, and none runs twice without leave (a mark of torch.utils.checkpoint).
"""

from __future__ import annotations

import functools

import torch

from ..compat.dispatch import OpOverload, effect_of

_PYTORCHS = ("aten", "prims", "prim", "inductor", "inductor_prims", "mkldnn", "mkl", "mkldnn_prepacked", "onednn",
             "quantized", "quantized_decomposed", "sparse", "rngprims", "profiler", "fbgemm", "torchvision",
             "torchaudio", "lowtide")


@functools.cache
def communicates(op: OpOverload) -> bool:
    """Does `op` say that it talks to other ranks: by its namespace, or by a group that it is given?"""
    if "c10d" in op.namespace or op.namespace in ("symm_mem", "_dtensor"):
        return True
    return any(a.name in ("group_name", "process_group") or "ProcessGroup" in str(a.type) for a in op._schema.arguments)


def has_effects(op: OpOverload) -> bool:
    """Is `op` called for what it does: a collective, an effect that was registered, an op that neither returns nor
    writes a tensor?"""
    return communicates(op) or not (op._schema.returns or op._schema.is_mutable) or effect_of(op) is not None


def may_communicate(op: OpOverload) -> bool:
    """May other ranks wait for `op`, for all that is known of it?"""
    return communicates(op) or (not is_of_pytorch(op) and ranks() > 1)


def is_of_pytorch(op: OpOverload) -> bool:
    """Is `op` PyTorch's or one of its libraries', or Lowtide's, whose code is known, and not a user's own?"""
    return op.namespace in _PYTORCHS


def may_be_priced(op: OpOverload) -> bool:
    """May `op` be run for its time and memory alone?  No numbers can be made up for a scratch that only the forward knows
    how to fill: on others that backward ends the process."""
    return not has_effects(op) and not may_communicate(op) and op != torch.ops.aten.mkldnn_rnn_layer_backward.default


def ranks() -> int:
    """How many there are; 1 where torch.distributed has not been initialized."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
