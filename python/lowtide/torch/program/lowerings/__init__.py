"""Special ops, a file for each: their lowering from nodes, their steps in a schedule, and their code.

* dropout.py: a draw of the mask, which runs once, and a product, which may be recomputed.
* batch_norm.py: new running statistics, which are computed once, and a norm.
* random_draws.py: a large random draw may be repeated, from the generator's state before it.
* barrier.py: returns to the user between forward and backward.
* cluster.py: what Inductor compiled of several ops, as one.
* collective.py: a functional collective, which returns at once, and the wait for it.
* call.py: every other node, which is one op.  in_place.py: the operands that its operator can overwrite.

To add one, write its file and insert its Lowering here, before those that would match its nodes.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from ..program import Program
from .batch_norm import BatchNorm, BatchNormBackward
from .call import Call
from .cluster import ClusterLowering
from .collective import Collective, Wait
from .dropout import Dropout
from .interface import Lowering
from .random_draws import RandomDraw

__all__ = ["LOWERINGS", "Lowering", "lowering_of"]

LOWERINGS: tuple[Lowering, ...] = (ClusterLowering(), Dropout(), BatchNorm(), BatchNormBackward(), RandomDraw(),
                                  Collective(), Wait(), Call())


def lowering_of(node: fx.Node, arguments: dict[str, Any]) -> Lowering:
    """The one that lowers this node."""
    return next(lowering for lowering in LOWERINGS if lowering.applies(node, arguments))


def elided_ops(program: Program, computes: list[int]) -> set[int]:
    """Ops that need not run when the step makes these computations: no code is made of them."""
    return set().union(*(lowering.elided(program, computes) for lowering in LOWERINGS))
