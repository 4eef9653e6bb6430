"""A training step as the planner and the emission see it: its joint FX graph, and the Lowtide graph that it became."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .lowerings.interface import Emitter


@dataclass(frozen=True)
class Run:
    """What computes one op: the node of the joint graph, and how code is made of it.

    state: the op that reads the generator's state, if this one may draw again from there; None for any other op.
    """

    emitter: Emitter
    node: torch.fx.Node | None = None
    state: Any = None  # an op's index; while the program is built, the op


@dataclass
class Program:
    """A joint graph and the Lowtide graph it became.

    graph: as the file format has it.  runs[i]: what computes graph["ops"][i].  barrier: that op's index.
    forward_outputs, backward_outputs: nodes of the joint graph or None, with their descriptors.
    views: nodes that are no ops, made again where they are read.
    """

    joint: torch.fx.GraphModule
    graph: dict[str, Any]
    runs: list[Run]
    barrier: int
    forward_outputs: list[Any]
    backward_outputs: list[Any]
    forward_descriptors: list[Any]
    backward_descriptors: list[Any]
    views: set[torch.fx.Node] = field(default_factory=set)
