"""A backward that runs in the forward, with a guess of the tangent (guess.py); what is handed out is scaled by what it was.

The guess is a number on the loss's device, read when the forward runs, and saved for the backward beside the
gradients.  There the caller's tangent comes, and each gradient is multiplied by tangent / guess: exact where that is a
power of two without under- or overflow, and where it is 1 for any guess.  Nothing waits for the device: the product is
made always.  The next guess is the last tangent, unless the caller has given a loss scale.
"""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from ..program.emitter import Code, Emitter
from ..runtime.guess import Guess, hand_out, read_guess


class TangentEmitter(Emitter):
    """The guess, in the place of the tangent: read once, however often a plan asks for it and wherever, since whatever is
    handed out is scaled by it."""

    def __init__(self, guess: Guess) -> None:
        self._guess = guess

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        fake = node.meta["val"]
        if not code.knows(node):
            code.values[node] = code.call(
                read_guess, (self._guess.number, tuple(fake.shape), fake.dtype, fake.device), node, fake)
        return False


def scale_gradients(code: Code, guess: Guess, tangent: fx.Node, arrived: fx.Node, gradients: list[tuple[Any, fx.Node]],
                    owned: list[bool]) -> None:
    """Append the scaling to the backward's side.

    tangent: the node of the joint graph, under which sides know the guess.  arrived: what the caller gives.  gradients: the
    keys of what is handed out, with the nodes that make it.  owned: as of hand_out.
    """
    guessed = code.value(tangent, tangent)
    values = [code.value(key, node) for key, node in gradients]
    made = code.call(hand_out, (guess.number, tuple(owned), arrived, guessed, *values), tangent,
                     [v.meta["val"] for v in values])
    for i, ((key, node), value) in enumerate(zip(gradients, values, strict=True)):
        code.values[key] = code.call(operator.getitem, (made, i), node, value.meta["val"])
