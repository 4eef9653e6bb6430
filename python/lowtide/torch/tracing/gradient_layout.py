"""Gives gradients the layout of their parameters.

The autograd engine keeps a gradient whose strides are those of the parameter (or row-major, for a parameter with gaps or
overlaps), and copies any other: see "Gradient Layout Contract" in torch's accumulate_grad.h.  Here that copy becomes a node of
the joint graph, so that the plan counts it and frees the original before the engine receives it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
from torch import fx

from ..compat.tensors import is_dense

aten = torch.ops.aten


def lay_out_gradients(joint: fx.GraphModule, trained: Container[int] = ()) -> None:
    """Give every gradient that a leaf will hold the strides with which the engine would hold it.

    trained: which of the arguments are leaves, if parameters came as arguments (as Dynamo hands them over).
    """
    (output,) = joint.graph.find_nodes(op="output")
    parameters = {n.meta["desc"]: n.meta["val"] for n in joint.graph.find_nodes(op="placeholder")
                  if type(n.meta.get("desc")).__name__ == "ParamAOTInput"
                  or getattr(n.meta.get("desc"), "idx", None) in trained}
    results = list(output.args[0])
    for i, (node, desc) in enumerate(zip(results, output.meta["desc"], strict=True)):
        parameter = parameters.get(getattr(desc, "grad_of", None))
        if parameter is None or not isinstance(node, fx.Node) or _is_taken(node.meta["val"], parameter):
            continue
        results[i] = copied(joint.graph, node, _order(parameter), partitioner_tag="is_backward")
    output.args = (type(output.args[0])(results),)


def _is_taken(gradient: torch.Tensor, parameter: torch.Tensor) -> bool:
    if gradient.layout is not torch.strided:
        return True  # the lowering refuses it, in words
    if not is_dense(parameter):
        return gradient.is_contiguous()
    return all(size == 1 or ours == theirs for size, ours, theirs in
               zip(parameter.shape, gradient.stride(), parameter.stride(), strict=True))


def _order(parameter: torch.Tensor) -> list[int]:
    """The dimensions from the one of the largest stride on."""
    if not is_dense(parameter):
        return list(range(parameter.dim()))
    strides = parameter.stride()
    return sorted(range(parameter.dim()), key=lambda d: (-strides[d], d))


def copied(graph: fx.Graph, original: fx.Node, order: list[int], **meta: Any) -> fx.Node:
    """A copy of a node's tensor, behind it, whose dimensions lie in that order, the one of the largest stride first; meta: what the copy
    has besides what the node has."""
    back = sorted(range(len(order)), key=order.__getitem__)
    node = original
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (aten.permute.default, (order,), {}), (aten.clone.default, (), {"memory_format": torch.contiguous_format}),
        (aten.permute.default, (back,), {})]
    for target, args, kwargs in calls:
        with graph.inserting_after(node):
            made = graph.call_function(target, (node, *args), kwargs)
        made.meta = {k: v for k, v in original.meta.items() if k != "desc"} | meta
        with node.meta["val"].fake_mode:
            made.meta["val"] = target(node.meta["val"], *args, **kwargs)
        node = made
    return node
