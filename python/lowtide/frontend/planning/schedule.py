"""A plan -> the schedule of the generated code: the order of computations, with every free as early as possible.

A plan states when each tensor is freed.  Generated code frees a tensor by dropping its last reference, right after its last
use, or overwrites it there.  `schedule` converts the plan to that form, and the program orders its computations as its code
does.  So the simulated peak is the peak of the code.  copies.py handles copies to the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import lowtide

from ..program import Program
from .copies import COMPUTES, COPIES, Step, with_copies

Computation = tuple[int, tuple[int, ...]]  # an op, and the tensors over which it writes
# copies, and the frees of what is copied, by the number of computations before them
Transfers = dict[int, list[tuple[str, int]]]


@dataclass
class Schedule:
    """steps: computations, frees and copies, in order.  graph: the one on which their peak is that of the code (states without a
    repeated draw take no bytes).  program: the one that runs.  together: updates in one call (updates.py).
    """

    steps: list[Step]
    graph: lowtide.Graph
    program: Program
    together: tuple[tuple[int, ...], ...] = ()

    @property
    def computes(self) -> list[Computation]:
        return [(op, tuple(over)) for kind, op, *over in self.steps if kind in COMPUTES]

    @property
    def ops(self) -> list[int]:
        """The ops that are computed, in their order."""
        return [op for op, _ in self.computes]

    @property
    def copied(self) -> list[int]:
        """The tensors that leave, once for each time."""
        return [tensor for kind, tensor, *_ in self.steps if kind == "offload"]

    @property
    def transfers(self) -> Transfers:
        moved = {tensor for kind, tensor, *_ in self.steps if kind in COPIES}
        found: Transfers = {}
        computed = 0
        for kind, tensor, *_ in self.steps:
            if kind in COMPUTES:
                computed += 1
            elif tensor in moved:
                found.setdefault(computed, []).append((kind, tensor))
        return found


def schedule(program: Program, steps: list[Step]) -> Schedule:
    """The schedule of a plan of program.graph; the steps may be in any valid form.

    What no code can copy is not copied (Program.movable), so that the peak may be higher than the plan's then.
    """
    computes = [op for kind, op, *_ in steps if kind in COMPUTES]
    computes = program.order(computes)
    graph = program.as_run(computes)
    if any(kind in COPIES for kind, *_ in steps):
        return Schedule(with_copies(program, steps, computes, program.elided(computes)), graph, program)
    plan = lowtide.Plan.from_sequence(graph, computes)
    return Schedule(list(plan.steps), graph, program)
