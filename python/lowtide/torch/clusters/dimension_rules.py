"""Rules of operators: which dimensions of an op's results belong together with which of its operands.

The dimensions of an op without a rule, or called as no rule expects, belong to no letter.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..tensors.operators import arguments_of
from .dimensions import Dimensions, dims_of, extent_of, rank_of, results_of
from .kinds import name_of
from .view_rules import cropped, moved, regrouped

_ALL_DIMS = ("clone", "convert_element_type", "full_like", "zeros_like", "ones_like", "alias", "detach", "_to_copy", "where", "copy",
             "lift_fresh_copy")
_REGROUPED = ("view", "_unsafe_view", "reshape", "_reshape_copy", "view_copy")
_REDUCTIONS = ("sum", "mean", "amax", "amin", "any", "all", "prod", "var_mean", "var", "std", "argmax", "argmin", "max", "min",
               "logsumexp", "prepare_softmax_online")
_MADE = ("full", "zeros", "ones", "empty")
_IMAGES = ("avg_pool2d", "avg_pool2d_backward", "max_pool2d_with_indices", "_low_memory_max_pool_with_offsets",
           "_low_memory_max_pool_offsets_to_indices", "upsample_nearest2d", "upsample_nearest2d_backward", "upsample_bilinear2d")
SIZES = {**dict.fromkeys((*_REGROUPED, "expand"), "size"), **dict.fromkeys(_MADE, "size"), "upsample_nearest2d_backward": "input_size"}


def enter(dims: Dimensions, node: fx.Node) -> None:
    """Have `dims` the dimensions of a node and of what it reads."""
    made = results_of(node)
    try:
        known = _enter_known(dims, node, made)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):  # called as no rule expects
        known = False
    if not known:
        dims.leave_out(dim for one in (*made, *node.all_input_nodes) for dim in dims_of(one))


def _enter_known(dims: Dimensions, node: fx.Node, made: list[fx.Node]) -> bool:
    name = name_of(node)
    target: Any = node.target
    if name in _ALL_DIMS or torch.Tag.pointwise in getattr(target, "tags", ()):
        return _pointwise(dims, node, made)
    if not hasattr(target, "_schema"):
        return False
    given = arguments_of(node)
    source: Any = given.get("self", given.get("a", given.get("x", given.get("input"))))
    if name in _MADE:
        for dim in dims_of(node):
            dims.find(dim)
        return True
    if name in _REGROUPED:
        return regrouped(dims, source, node)
    if name in _REDUCTIONS:
        return _reduction(dims, name, source, given, made)
    if name == "expand":
        return _pointwise(dims, node, made)
    if name in ("permute", "transpose", "t", "unsqueeze", "squeeze"):
        return moved(dims, name, source, node, given)
    if name in ("slice", "select", "constant_pad_nd"):
        return cropped(dims, name, source, node, given)
    if name == "cat":
        at = int(given["dim"]) % rank_of(node)
        for one in given["tensors"]:
            _along(dims, one, node, apart=at)
        return True
    if name == "embedding":
        table, indices = given["weight"], given["indices"]
        for d in range(rank_of(indices)):
            dims.unite((indices, d), (node, d))
        dims.unite((table, 1), (node, rank_of(node) - 1))
        dims.leave_out([(table, 0)])
        return True
    if name in ("gather", "scatter"):
        at = int(given["dim"]) % rank_of(node)
        for one in (given["self"], given["index"], given.get("src")):
            if isinstance(one, fx.Node):
                _along(dims, one, node, apart=at)
        return True
    if name in _IMAGES:
        return _images(dims, node, made)
    return False


def _pointwise(dims: Dimensions, node: fx.Node, made: list[fx.Node]) -> bool:
    for one in made:
        for source in node.all_input_nodes:
            shift = rank_of(one) - rank_of(source)
            for d in range(rank_of(source)):
                if extent_of((source, d)) == extent_of((one, d + shift)):
                    dims.unite((source, d), (one, d + shift))
    return True


def _along(dims: Dimensions, source: fx.Node, node: fx.Node, apart: int) -> None:
    """All dimensions but one are the result's."""
    for d in range(rank_of(node)):
        if d == apart:
            dims.leave_out([(source, d), (node, d)])
        elif extent_of((source, d)) == extent_of((node, d)):
            dims.unite((source, d), (node, d))
        else:
            dims.leave_out([(source, d), (node, d)])


def _reduction(dims: Dimensions, name: str, source: fx.Node, given: dict[str, Any], made: list[fx.Node]) -> bool:
    named, rank = given.get("dim"), rank_of(source)
    over = range(rank) if named is None or named == [] else [named] if isinstance(named, int) else named
    reduced = {d % rank for d in over} if rank else set()
    for one in made:
        kept = rank_of(one) == rank
        left = [d for d in range(rank) if d not in reduced]
        for at, d in enumerate(left):
            dims.unite((source, d), (one, d if kept else at))
    for d in reduced:
        if name == "sum":
            dims.sum(made, (source, d))
        else:
            dims.leave_out([(source, d)])
    return True


def _images(dims: Dimensions, node: fx.Node, made: list[fx.Node]) -> bool:
    for one in made:
        for source in node.all_input_nodes:
            if rank_of(source) != 4 or rank_of(one) != 4:
                return False
            for d in (0, 1):
                dims.unite((source, d), (one, d))
            dims.leave_out((n, d) for n in (source, one) for d in (2, 3))
    return True
