"""The steps of a plan as the emission needs them: the order of computations, every free as early as it can be.

A plan of the planner says when each tensor is freed; code frees a tensor when its last name goes, which
is right after its last use.  `settle` brings a plan to that form, and puts what runs as one kernel side by
side, so that the peak that is simulated is the peak that the code will have.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from .errors import CaptureError
from .lowering import Kind, Program

Step = tuple[str, int]


@dataclass
class Settled:
    """computes: op indices in the order they run.  steps: the same with frees.  graph: the graph on which
    their peak is the code's (states that nobody draws from again take no bytes)."""

    computes: list[int]
    steps: list[Step]
    graph: dict[str, Any]


def settle(program: Program, steps: list[Step]) -> Settled:
    """The settled form of a plan of program.graph; the steps may be in any valid form.

    Raises CaptureError for steps that code cannot take, such as copies to the host.
    """
    for at, (kind, tensor) in enumerate(steps):
        if kind not in ("compute", "free"):
            raise CaptureError(f"step {at} of the plan is {kind} {tensor}: PyTorch runs plans that recompute, and none "
                               "that copy to the host; plan without a device and a link")
    computes = _join_statistics(program, [index for kind, index in steps if kind == "compute"])
    graph = program.graph
    idle = idle_states(program, computes)
    if idle:
        graph = graph | {"tensors": copy.copy(graph["tensors"]), "ops": copy.copy(graph["ops"])}
        draws = {run.state: op for op, run in enumerate(program.runs) if run.state is not None}
        for op in idle:
            (tensor,) = graph["ops"][op]["outputs"]
            draw = graph["ops"][draws[op]]
            graph["ops"][draws[op]] = draw | {"workspace": draw["workspace"] - graph["tensors"][tensor]["bytes"]}
            graph["tensors"][tensor] = graph["tensors"][tensor] | {"bytes": 0}
    return Settled(computes, with_frees(graph, computes), graph)


def idle_states(program: Program, computes: list[int]) -> set[int]:
    """STATE ops whose draw is never made again: there is no need to read the state."""
    seen: set[int] = set()
    states = {i for i, run in enumerate(program.runs) if run.kind is Kind.STATE}
    for op in computes:
        if op in seen:
            states.discard(program.runs[op].state)
        seen.add(op)
    return states


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


def _join_statistics(program: Program, computes: list[int]) -> list[int]:
    """Each STATISTICS right before the first NORM of its kernel."""
    kinds = program.runs
    statistics = {kinds[op].node: op for op in computes if kinds[op].kind is Kind.STATISTICS}
    joined: list[int] = []
    for op in computes:
        if kinds[op].kind is Kind.STATISTICS:
            continue
        if kinds[op].kind is Kind.NORM and kinds[op].node in statistics:
            joined.append(statistics.pop(kinds[op].node))
        joined.append(op)
    return joined
