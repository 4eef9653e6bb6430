"""Protocols of code generation: emitters, which make the nodes of an op, and the code under construction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import fx

from ..pricing.trial import Trial
from ..tensors.operators import values
from .in_place import OutVariant

BOXED = "lowtide_boxed"  # of a function: the same with its arguments in a list, which it empties
DIRECT = "lowtide_direct"  # of such a function: what gives a form that checks nothing, for arguments that lie as they did
Value = Any  # what a node of the joint graph is in code: a node, or (node, index) of several results


class Code(Protocol):
    """Code under construction, as emitters see it: one side of a step (emission/side.py).

    runs: what computes the ops of the program.  values: what a node of the joint graph, or one of its results, is now.
    """

    values: dict[Value, fx.Node]

    @property
    def runs(self) -> Sequence[Run]: ...

    def get(self, node: fx.Node) -> fx.Node:
        """The newest value of a node of the joint graph; views are made where they are missing."""

    def value(self, key: Value, node: fx.Node) -> fx.Node:
        """The newest value of what is known by `key`, which `node` of the joint graph makes."""

    def knows(self, key: Value) -> bool:
        """Is there a value of it?"""

    def arguments(self, node: fx.Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node of the joint graph as they are here."""

    def call(self, function: Any, args: tuple[Any, ...], like: fx.Node, value: Any, kwargs: Any = None) -> fx.Node:
        """A call with the meta data of the joint graph's node `like`, whose result is like the fake `value`."""

    def add(self, function: Any, args: tuple[Any, ...], value: Any) -> fx.Node:
        """A call that no node of the joint graph stands for, whose result is like the fake `value`."""

    def call_over(self, written: fx.Node, variant: OutVariant, target: Any, args: tuple[Any, ...], like: fx.Node, value: Any,
                  kwargs: Any = None) -> fx.Node:
        """The same of `target`, with a note that its out variant is to write the result over `written`, one of the arguments."""

    def items(self, node: fx.Node, made: fx.Node, indices: Iterable[int]) -> None:
        """The results of several that somebody may read, each a node right after the op."""

    def item(self, node: fx.Node, made: fx.Node, i: int) -> None:
        """Result i of `made`, which computes `node`."""

    def updates_at(self, op: int) -> tuple[int, ...]:
        """The updates that the code of this one makes in one call; none if it is left to a later one."""


class Emitter:
    """How code is made of one op of a program.

    holds_results: are the op's outputs what its node's kernel returns, so that what the kernel's results were seen to
    hold is what the outputs take?
    made_by_next: is there no code of it, because every schedule puts it right before the op whose code makes its results?
    keeps_bits: has what it makes the bits that its op has in the graph as it was captured, of operands that have theirs?
    trial: shows whether it really does on this machine; None: there is no doubt.
    returns_operand: is the op's result the operand itself, whose storage nobody else reads then?
    adds_parts: does it add a part to the sum of those before?
    """

    holds_results = False
    made_by_next = False
    keeps_bits = True
    trial: Trial | None = None
    returns_operand = False
    adds_parts = False

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        """The arguments of its node over which it can write an output of the op, with their fake tensors."""
        return {}

    def result_over(self, node: fx.Node, name: str) -> int:
        """Which of the op's outputs it writes over that argument."""
        return 0

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]] | None:
        """The operator that a part of its node's op calls, and the whole's arguments by the names of that operator's
        schema; None where it cannot run in parts."""
        return None

    def whole_of(self, node: fx.Node, arguments: dict[str, Any]) -> dict[str, Any]:
        """The whole's arguments, fake tensors among them, as the call of a part takes its own.  arguments: of `part_of`."""
        return {name: values(value) for name, value in arguments.items()}

    def arguments_of_part(self, node: fx.Node, arguments: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a part's call.  arguments: the same, with slices for tensors.  entry: of the part in the graph."""
        return arguments

    def before_parts(self, node: fx.Node) -> Emitter | None:
        """What makes its results before the parts of a region, without those operands that only the parts make; None
        where that cannot be."""
        return None

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        """Append the op's nodes to `code`; do they compute `following` too?

        again: has the step computed the op before?  following: the op that the step computes next, if there is one.
        over: the tensors over which the op writes, of those that it may (program.Run.over).
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Run:
    """The computation of one op: the node of the joint graph, and its code generator.

    state: the op that reads the generator's state, if this one may draw again from there; None for any other op.
    over: the arguments over which it may write, by their tensors.
    part: of a region that runs in parts, which of them it belongs to; None outside of them.
    """

    emitter: Emitter
    node: torch.fx.Node | None = None
    state: Any = None  # an op's index; while the program is built, the op
    over: dict[int, str] = field(default_factory=dict)
    part: tuple[tuple[int, int], ...] | None = None

    @property
    def own_node(self) -> torch.fx.Node:
        """The node, of an op that has one: of all but barriers and updates."""
        assert self.node is not None
        return self.node
