"""A backward that runs within the forward, with an assumed tangent (assumed_tangent.py); its gradients are scaled afterwards.

The assumed tangent is a number on the loss's device.  The forward reads it, and saves it for the backward beside the
gradients.  The backward receives the caller's tangent and multiplies each gradient by tangent / assumed tangent.  The product
is exact if this ratio is 1, or a power of two without under- or overflow.  It is always computed, so that nothing waits for
the device.  The next assumed tangent is the last tangent, unless the caller gives a loss scale.
"""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from ..program.emitter import Code, Emitter
from ..runtime.assumed_tangent import AssumedTangent, hand_out, read_assumed_tangent


class TangentEmitter(Emitter):
    """The assumed tangent, in the place of the tangent: read once, however often a plan asks for it and wherever, since whatever is
    handed out is scaled by it."""

    def __init__(self, assumed_tangent: AssumedTangent) -> None:
        self._assumed_tangent = assumed_tangent

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        fake = node.meta["val"]
        if not code.knows(node):
            code.values[node] = code.call(
                read_assumed_tangent, (self._assumed_tangent.number, tuple(fake.shape), fake.dtype, fake.device), node, fake)
        return False


def scale_gradients(code: Code, assumed_tangent: AssumedTangent, tangent: fx.Node, arrived: fx.Node, gradients: list[tuple[Any, fx.Node]],
                    owned: list[bool]) -> None:
    """Append the scaling to the backward's side.

    tangent: the node of the joint graph, under which both halves know the assumed one.  arrived: what the caller gives.  gradients: the
    keys of what is handed out, with the nodes that make it.  owned: as of hand_out.
    """
    assumed = code.value(tangent, tangent)
    values = [code.value(key, node) for key, node in gradients]
    made = code.call(hand_out, (assumed_tangent.number, tuple(owned), arrived, assumed, *values), tangent,
                     [v.meta["val"] for v in values])
    for i, ((key, node), value) in enumerate(zip(gradients, values, strict=True)):
        code.values[key] = code.call(operator.getitem, (made, i), node, value.meta["val"])
