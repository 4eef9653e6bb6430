"""Writes new values of inputs back within the forward, many in one call.

AOTAutograd's runtime takes the new value of each buffer from the forward's results and copies it into the buffer, one after
the other: three kernels for every batch norm, for which a GPU waits.  After a write-back the forward returns the buffer
itself, and that copy does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from ..compat.tensors import copy_all

if TYPE_CHECKING:
    from ..program.program import Program
    from .half_graph import HalfGraphBuilder


def write_back(into: list[torch.Tensor], new: list[torch.Tensor]) -> None:
    with torch.no_grad():
        copy_all(into, new)


def writes_back(half: HalfGraphBuilder, saved: list[fx.Node], program: Program, handed_out: list[Any]) -> list[Any]:
    """Append what writes the new values of inputs back; the forward's results, inputs in the place of these values.  An input
    that the backward reads is left to the runtime."""
    inputs = {n.meta["desc"]: n for n in half.graph.find_nodes(op="placeholder") if "desc" in n.meta}
    groups: dict[Any, list[int]] = {}
    for i, (new, descriptor) in enumerate(zip(handed_out, program.forward_descriptors, strict=True)):
        old = inputs.get(getattr(descriptor, "mutated_input", None))
        if old is not None and old not in saved and isinstance(new, fx.Node) and _takes(old, new):
            groups.setdefault((old.meta["val"].device, old.meta["val"].dtype), []).append(i)
    results = list(handed_out)
    for places in groups.values():
        into = [inputs[program.forward_descriptors[i].mutated_input] for i in places]
        half.add(write_back, (into, [handed_out[i] for i in places]), None)
        for i, old in zip(places, into, strict=True):
            results[i] = old
    return results


def _takes(old: fx.Node, new: fx.Node) -> bool:
    """Can the input take the new value as it is?"""
    a, b = old.meta.get("val"), new.meta.get("val")
    return new.op == "call_function" and isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and not a.requires_grad \
        and a.layout == b.layout == torch.strided and (a.dtype, a.device, a.shape) == (b.dtype, b.device, b.shape)
