"""Writes new values of inputs back within the forward, many in one call.

AOTAutograd's runtime takes the new value of each buffer from the forward's results and copies it into the buffer, one after
the other: three kernels for every batch norm, for which a GPU waits.  After a write-back the forward returns the buffer
itself, and that copy does nothing.

A batch norm whose running statistics nobody else reads updates them in place, as in eager execution: its functional form copies
both first.  The plan counts these copies nonetheless, a few KiB.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from ..compat.tensors import copy_all

if TYPE_CHECKING:
    from ..program.program import Program
    from .half_graph import HalfGraphBuilder


aten = torch.ops.aten
# operator that copies the running statistics -> the one that updates them; the places of both among its arguments and results
_IN_PLACE = {
    aten._native_batch_norm_legit_functional.default: (aten._native_batch_norm_legit.default, (3, 4), (3, 4)),
    aten._batch_norm_with_update_functional.default: (aten._batch_norm_with_update.default, (3, 4), (4, 5)),
}


def write_back(into: list[torch.Tensor], new: list[torch.Tensor]) -> None:
    with torch.no_grad():
        copy_all(into, new)


def writes_back(half: HalfGraphBuilder, saved: list[fx.Node], program: Program, handed_out: list[Any]) -> list[Any]:
    """Append what writes the new values of inputs back; the forward's results, inputs in the place of these values.  An input
    that the backward reads is left to the runtime."""
    inputs = {n.meta["desc"]: n for n in half.graph.find_nodes(op="placeholder") if "desc" in n.meta}
    changed: dict[int, fx.Node] = {}  # place among the results -> the input
    for i, (new, descriptor) in enumerate(zip(handed_out, program.forward_descriptors, strict=True)):
        old = inputs.get(getattr(descriptor, "mutated_input", None))
        if old is not None and old not in saved and isinstance(new, fx.Node) and _takes(old, new):
            changed[i] = old
    updated = _update_in_place({handed_out[i]: old for i, old in changed.items() if handed_out.count(handed_out[i]) == 1})
    groups: dict[Any, list[int]] = {}
    for i, old in changed.items():
        if handed_out[i] not in updated:
            groups.setdefault((old.meta["val"].device, old.meta["val"].dtype), []).append(i)
    for places in groups.values():
        half.add(write_back, ([changed[i] for i in places], [handed_out[i] for i in places]), None)
    return [changed.get(i, value) for i, value in enumerate(handed_out)]


def _update_in_place(changed: dict[fx.Node, fx.Node]) -> set[fx.Node]:
    """Have batch norms update their running statistics where they lie; of these new values those that need no write-back.

    changed: new value -> the input that takes it.
    """
    updated: set[fx.Node] = set()
    for norm in {new.args[0] for new in changed if new.target is operator.getitem}:
        if not isinstance(norm, fx.Node) or norm.target not in _IN_PLACE:
            continue
        target, arguments, results = _IN_PLACE[norm.target]
        made = {item.args[1]: item for item in norm.users}
        olds, news = [norm.args[i] for i in arguments], [made[i] for i in results if i in made]
        # nobody else may read the old values, before or after, nor the new ones within the forward
        if [changed.get(new) for new in news] == olds and all(len(old.users) == 1 for old in map(changed.__getitem__, news)) \
                and not any(new.users for new in news):
            norm.target, norm.meta["val"] = target, norm.meta["val"][:results[0]]
            updated.update(news)
            for new in news:
                norm.graph.erase_node(new)
    return updated


def _takes(old: fx.Node, new: fx.Node) -> bool:
    """Can the input take the new value as it is?"""
    a, b = old.meta.get("val"), new.meta.get("val")
    return new.op == "call_function" and isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not a.requires_grad \
        and a.layout == b.layout == torch.strided and (a.dtype, a.device, a.shape) == (b.dtype, b.device, b.shape)
