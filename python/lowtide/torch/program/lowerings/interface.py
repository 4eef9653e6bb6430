"""The interface of special ops: from nodes of the joint graph to steps of the schedule."""

from __future__ import annotations

from typing import Any

from torch import fx

import lowtide

from ..builder import ProgramBuilder
from ..program import Program


class Lowering:
    """A kind of node that is not simply one op, from the joint graph to the code.

    The first of `LOWERINGS` that applies to a node lowers it.  All of them take part in every schedule: `order`,
    `elided` and `as_run` are asked of each, and one that has nothing to say returns what it was given.
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

    def elided(self, program: Program, computes: list[int]) -> set[int]:
        """Ops that need not run when the step makes these computations: no code is made of them."""
        return set()

    def as_run(self, program: Program, graph: lowtide.Graph, computes: list[int]) -> lowtide.Graph:
        """The graph with the bytes that the code takes when it makes these computations; `graph` stays as it is."""
        return graph
