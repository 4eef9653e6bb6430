"""A plan -> the schedule that the code runs: the order of computations, every free as early as it can be.

A plan of the planner says when each tensor is freed; code frees a tensor when its last name goes, which
is right after its last use.  `schedule` brings a plan to that form, and each special op (lowerings) puts its
computations as its code has them, so that the peak that is simulated is the peak that the code will have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import CaptureError
from ..lowerings import LOWERINGS
from ..program import Program

Step = tuple[str, int]


@dataclass
class Schedule:
    """computes: op indices in the order they run.  steps: the same with frees.  graph: the graph on which
    their peak is the code's (states that nobody draws from again take no bytes)."""

    computes: list[int]
    steps: list[Step]
    graph: dict[str, Any]


def schedule(program: Program, steps: list[Step]) -> Schedule:
    """The schedule of a plan of program.graph; the steps may be in any valid form.

    Raises CaptureError for steps that code cannot take, such as copies to the host.
    """
    for at, (kind, tensor) in enumerate(steps):
        if kind not in ("compute", "free"):
            raise CaptureError(f"step {at} of the plan is {kind} {tensor}: PyTorch runs plans that recompute, and none "
                               "that copy to the host; plan without a device and a link")
    computes = [index for kind, index in steps if kind == "compute"]
    for lowering in LOWERINGS:
        computes = lowering.order(program, computes)
    graph = program.graph
    for lowering in LOWERINGS:
        graph = lowering.as_run(program, graph, computes)
    return Schedule(computes, with_frees(graph, computes), graph)


def idle_ops(program: Program, computes: list[int]) -> set[int]:
    """Ops that need not run when the step makes these computations."""
    return set().union(*(lowering.idle(program, computes) for lowering in LOWERINGS))


def with_frees(graph: dict[str, Any], computes: list[int]) -> list[Step]:
    """The computations with each tensor freed right after the last use of each of its values."""
    outputs = set(graph["outputs"])
    made_by_op = {t for op in graph["ops"] for t in op["outputs"]}
    last: dict[int, int] = {}  # tensor -> position of the last use of its present value
    frees: list[list[int]] = [[] for _ in computes]
    for position, index in enumerate(computes):
        op = graph["ops"][index]
        for tensor in op["outputs"]:
            if tensor in last:
                frees[last[tensor]].append(tensor)
            last[tensor] = position
        for tensor in op["inputs"]:
            if tensor in made_by_op:
                last[tensor] = position
    for tensor, position in last.items():
        if tensor not in outputs:
            frees[position].append(tensor)
    steps: list[Step] = []
    for index, freed in zip(computes, frees, strict=True):
        steps.append(("compute", index))
        steps += [("free", tensor) for tensor in freed]
    return steps
