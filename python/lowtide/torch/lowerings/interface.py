"""What a special op says of itself: how nodes become ops, what a schedule of these looks like, and the code of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import fx

if TYPE_CHECKING:
    from ..emission.side import Side
    from ..program import Program
    from ..program_builder import ProgramBuilder
    from ..transforms.trial import Trial


class Emitter:
    """How code is made of one op of a program.

    holds_results: are the op's outputs what its node's kernel returns, so that what the kernel's results were seen to
    hold is what the outputs take?
    made_by_next: is there no code of it, because every schedule puts it right before the op whose code makes its results?
    keeps_bits: has what it makes the bits that its op has in the graph as it was captured, of operands that have theirs?
    trial: shows whether it really does on this machine; None: there is no doubt.
    adds_parts: does it add a part to the sum of those before?
    """

    holds_results = False
    made_by_next = False
    keeps_bits = True
    trial: Trial | None = None
    adds_parts = False

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        """The arguments of its node over which it can write the op's only output, with their fake tensors."""
        return {}

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]] | None:
        """The operator that a part of its node's op calls, and the whole's arguments by the names of that operator's
        schema; None where it cannot run in parts."""
        return None

    def before_parts(self, node: fx.Node) -> Emitter | None:
        """What makes its results before the parts of a region, without those operands that only the parts make; None
        where that cannot be."""
        return None

    def emit(self, side: Side, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        """Append the op's nodes to the graph of `side`; do they compute `following` too?

        again: has the step computed the op before?  following: the op that the step computes next, if there is one.
        over: the tensors over which the op writes, of those that it may (program.Run.over).
        """
        raise NotImplementedError


class Lowering:
    """A kind of node that is not simply one op, from the joint graph to the code.

    The first of `LOWERINGS` that applies to a node lowers it.  All of them take part in every schedule: `order`,
    `idle` and `as_run` are asked of each, and one that has nothing to say returns what it was given.
    """

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        """Is it a node of this kind?  arguments: the node's, by the names of its operator's schema."""
        raise NotImplementedError

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        """Append the node's ops."""
        raise NotImplementedError

    def order(self, program: Program, computes: list[int]) -> list[int]:
        """The computations of a plan in the order in which the code will make them."""
        return computes

    def idle(self, program: Program, computes: list[int]) -> set[int]:
        """Ops that need not run when the step makes these computations: no code is made of them."""
        return set()

    def as_run(self, program: Program, graph: dict[str, Any], computes: list[int]) -> dict[str, Any]:
        """The graph with the bytes that the code takes when it makes these computations; `graph` stays as it is."""
        return graph
