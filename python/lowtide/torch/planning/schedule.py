"""A plan -> the schedule that the code runs: the order of computations, every free as early as it can be.

A plan of the planner says when each tensor is freed; code frees a tensor when its last name goes, which
is right after its last use, or writes over it there.  `schedule` brings a plan to that form, and each special op
(lowerings) puts its computations as its code has them, so that the peak that is simulated is the peak that the code will
have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lowtide

from ..errors import CaptureError
from ..lowerings import LOWERINGS
from ..program import Program

Step = tuple[Any, ...]  # its kind, an op or a tensor, and the tensors over which an op writes
Computation = tuple[int, tuple[int, ...]]  # an op, and the tensors over which it writes


@dataclass
class Schedule:
    """steps: computations and frees, in the order in which they happen.  graph: the graph on which their peak is the
    code's (states that nobody draws from again take no bytes).  program: what runs."""

    steps: list[Step]
    graph: dict[str, Any]
    program: Program

    @property
    def computes(self) -> list[Computation]:
        return [(op, tuple(over)) for kind, op, *over in self.steps if kind in _COMPUTES]

    @property
    def ops(self) -> list[int]:
        """The ops that are computed, in their order."""
        return [op for op, _ in self.computes]


_COMPUTES = ("compute", "compute_in_place")


def schedule(program: Program, steps: list[Step]) -> Schedule:
    """The schedule of a plan of program.graph; the steps may be in any valid form.

    Raises CaptureError for steps that code cannot take, such as copies to the host.
    """
    for at, (kind, tensor, *_) in enumerate(steps):
        if kind not in (*_COMPUTES, "free"):
            raise CaptureError(f"step {at} of the plan is {kind} {tensor}: PyTorch runs plans that recompute, and none "
                               "that copy to the host; plan without a device and a link")
    computes = [op for kind, op, *_ in steps if kind in _COMPUTES]
    for lowering in LOWERINGS:
        computes = lowering.order(program, computes)
    graph = program.graph
    for lowering in LOWERINGS:
        graph = lowering.as_run(program, graph, computes)
    plan = lowtide.Plan.from_sequence(lowtide.Graph.from_dict(graph), computes)
    return Schedule(list(plan.steps), graph, program)


def idle_ops(program: Program, computes: list[int]) -> set[int]:
    """Ops that need not run when the step makes these computations."""
    return set().union(*(lowering.idle(program, computes) for lowering in LOWERINGS))

