"""Gradients of results that a graph hands out beside its loss lie as in eager execution.

A model that returns its loss and its logits gets a gradient for both: AOTAutograd fills in zeros where nobody computes
from the logits, in the logits' layout, and the traced backward adds what comes from the loss.  Eager execution has no such
sum.  Zeros change no number, but the sum lies as its first operand does, which may be in another order than the second
alone (logits of a convolution over channels_last, whose gradient comes from a resampling): kernels behind it then add
up in another order.  So the operands of such sums change places here, which keeps their bits.

It is right where the loss alone is computed from, as is usual where a result has one element.  Otherwise all is as traced.
"""

from __future__ import annotations

import torch
from torch import fx

from ..compat.dispatch import OpOverload
from ..tensors.operators import is_tangent

aten = torch.ops.aten


def lay_out_sums(joint: fx.GraphModule) -> set[fx.Node]:
    """Have sums with gradients of results beside the loss lie as their other operand; which have changed."""
    tangents = [n for n in joint.graph.find_nodes(op="placeholder") if is_tangent(n)
                and isinstance(n.meta.get("val"), torch.Tensor)]
    if all(n.meta["val"].numel() != 1 for n in tangents):
        return set()
    unused = {n for n in tangents if n.meta["val"].numel() > 1}
    changed = set()
    for node in joint.graph.nodes if unused else ():
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        if node.target.is_view and node.args[0] in unused:
            unused.add(node)
        if node.target is not aten.add.Tensor or node.kwargs or len(node.args) != 2:
            continue
        first, second = node.args
        if first not in unused or not isinstance(second, fx.Node) or second in unused:
            continue
        value, other = node.meta["val"], second.meta["val"]
        if (other.shape, other.dtype) == (value.shape, value.dtype) and other.stride() != value.stride():
            node.args = second, first
            with value.fake_mode:
                node.meta["val"] = aten.add.Tensor(other, first.meta["val"])
            changed.add(node)
    return changed
