"""Inspects each backward of torch.autograd, and its graph, before it runs.

PyTorch has no hook for that, so the function that starts all backwards is wrapped, once there is something to inspect.  Errors
of a backward of a backward get a text with the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

from ..compat.autograd import AccumulateGrad, run_backward, run_backwards_by
from ..step_errors import DoubleBackwardError

Look = Callable[[Any, bool, Any, bool], None]  # outputs; is the graph kept?; inputs asked for; do gradients go to .grad?

_DOUBLE = "aot_autograd does not currently support double backward"  # other code has words like it of its own

_looks: list[Look] = []


def look_at_backwards(look: Look | None = None) -> None:
    """From now on call `look`, if there is one, before each backward of the process; what it raises ends that backward."""
    if look is not None and look not in _looks:
        _looks.append(look)
    run_backwards_by(_looking)


def _looking(outputs: Any, grads: Any, retain_graph: bool, create_graph: bool, inputs: Any, *rest: Any,
             **named: Any) -> Any:
    for look in _looks:
        look(outputs, bool(retain_graph), inputs, bool(named.get("accumulate_grad", False)))
    try:
        return run_backward(outputs, grads, retain_graph, create_graph, inputs, *rest, **named)
    except RuntimeError as error:
        if _DOUBLE not in str(error):
            raise
        raise DoubleBackwardError(
            "a backward goes through the backward of a compiled graph (create_graph=True), and AOTAutograd, which has traced "
            "it, makes none of that. A derivative that the loss depends on, such as a force, a gradient penalty or a "
            "differential equation's residual, is planned, with the same bits, where it is taken within the model: "
            "torch.func.grad, vjp or jvp in the place of torch.autograd.grad, and the loss returned by the module. Or run "
            "that part without a plan (torch.compiler.disable)") from error


def node_of(value: Any) -> Any:
    """The node that gives a tensor, or an edge, its gradient."""
    return value.node if isinstance(value, GradientEdge) else get_gradient_edge(value).node


def has_node(value: Any) -> bool:
    """Has it one?  Of others PyTorch has its own words."""
    return isinstance(value, GradientEdge) or isinstance(value, torch.Tensor) and value.requires_grad


def graph_of(outputs: Iterable[Any]) -> dict[Any, list[Any]]:
    """The nodes of the backward from these outputs, each with those that it gives gradients to."""
    return reached(node_of(o) for o in outputs if has_node(o))


def reached(nodes: Iterable[Any]) -> dict[Any, list[Any]]:
    """The nodes that a backward from these reaches, they among them, each with those that it gives gradients to."""
    left = list(nodes)
    found: dict[Any, list[Any]] = {}
    while left:
        node = left.pop()
        if node in found:
            continue
        found[node] = [] if is_leaf(node) else [following for following, _ in node.next_functions if following is not None]
        left += found[node]
    return found


def is_leaf(node: Any) -> bool:
    """Is it the end of a backward, at a leaf?"""
    return isinstance(node, AccumulateGrad)


def forward_of(node: Any) -> Any:
    """The compiled forward of what AOTAutograd has made, if it is the node of that; else None."""
    return getattr(getattr(type(node), "_forward_cls", None), "compiled_fw", None)
