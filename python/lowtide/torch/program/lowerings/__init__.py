"""Special ops, a file for each: how nodes are lowered to ops, which steps a schedule has of these, and their code.

* dropout.py: dropout is a draw of the mask, which runs once, and a product, which may run again.
* batch_norm.py: batch norm in training is new running statistics, which are made once, and a norm.
* random_draws.py: a large random draw may be made again, from the generator's state before it.
* barrier.py: the way from the forward to the user and back into the backward.
* call.py: every other node, which is one op.  in_place.py: over which operands its operator can write, and how.

To add one, write its file and enter its Lowering here, before those that would take its nodes.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from ..program import Program
from .batch_norm import BatchNorm, BatchNormBackward
from .call import Call
from .dropout import Dropout
from .interface import Lowering
from .random_draws import RandomDraw

__all__ = ["LOWERINGS", "Lowering", "lowering_of"]

LOWERINGS: tuple[Lowering, ...] = (Dropout(), BatchNorm(), BatchNormBackward(), RandomDraw(), Call())


def lowering_of(node: fx.Node, arguments: dict[str, Any]) -> Lowering:
    """The one that lowers this node."""
    return next(lowering for lowering in LOWERINGS if lowering.applies(node, arguments))


def elided_ops(program: Program, computes: list[int]) -> set[int]:
    """Ops that need not run when the step makes these computations: no code is made of them."""
    return set().union(*(lowering.elided(program, computes) for lowering in LOWERINGS))
