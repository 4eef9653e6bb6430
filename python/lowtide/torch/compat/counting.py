"""PyTorch's formulas for the operations of its operators."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from .versions import before


def operations_of(packet: Any, target: Any, args: Any, kwargs: Any, results: Any) -> int | None:
    """The operations of a call of `target` on fake tensors, by the formula of `packet`; None if there is no formula."""
    count = flop_registry.get(packet)
    if count is None:
        return None
    if before(2, 12):
        args = _with_all_heads(target, args)
    return int(count(*args, **kwargs, out_val=results))


def is_counted(packet: Any) -> bool:
    """Is there a formula for it?"""
    return packet in flop_registry


def _with_all_heads(target: Any, args: Any) -> Any:
    """Of attention in which several heads of the query share a key and value, the arguments with one for each head: before
    2.12 the formulas refuse others, though kernels compute as much."""
    if not hasattr(target, "_schema"):  # of a higher-order operator
        return args
    names = [a.name for a in target._schema.arguments[:len(args)]]
    if not {"query", "key", "value"} <= set(names) or "scaled_dot_product" not in target._schema.name:
        return args
    named = dict(zip(names, args, strict=True))
    query, key = named["query"], named["key"]
    if query.dim() != 4 or key.shape[1] == query.shape[1]:
        return args
    return [torch.Size((a.shape[0], query.shape[1], *a.shape[2:])) if name in ("key", "value") else a  # a formula reads shapes alone
            for name, a in zip(names, args, strict=True)]
