"""Several regions of one model within one budget.

Where the tracer breaks a model in two, each part is compiled alone, and what one part saves for its
backward stands beside the next.  Region r runs beside

* what the earlier regions saved, and what of the model is no input of its own, all the time;
* the gradients that the later regions have made, in its backward;

and between its own forward and backward the later regions need room, so what it may save is limited.  All
regions get the same share of what they would save without a plan: the share for which their plans together
take the least time is found by trying a few.  It loses where one region is much cheaper to compute again
than another: a share for each would do better.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

import lowtide

from .errors import BudgetError
from .lowering import Program

_SHARES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.0)
_SECONDS = 0.2  # of planning for one region and share


@dataclass(frozen=True)
class Beside:
    """What one region must leave room for, in bytes.

    resident: all the time.  gradients: after its forward.  saved: what may be live between its forward and
    backward, what the forward hands out counted in; None: as much as fits.
    """

    resident: int = 0
    gradients: int = 0
    saved: int | None = None

    def graph(self, program: Program, budget: int | None) -> dict[str, Any]:
        """The program's graph with that beside it; budget: with a limit of what is saved, for that budget."""
        graph = program.graph | {"resident_bytes": self.resident}
        barrier = dict(graph["ops"][program.barrier])
        tensors = list(graph["tensors"])
        if self.gradients:
            tensors.append({"name": "gradients of other regions", "bytes": self.gradients, "role": "gradient"})
            barrier["outputs"] = [*barrier["outputs"], len(tensors) - 1]
            graph["outputs"] = [*graph["outputs"], len(tensors) - 1]
        if self.saved is not None and budget is not None:
            made = sum(tensors[t]["bytes"] for t in barrier["outputs"])
            room = budget - self.resident - input_bytes(program) - made - self.saved
            barrier["workspace"] = max(0, room)
        graph["tensors"] = tensors
        graph["ops"] = [*graph["ops"][:program.barrier], barrier, *graph["ops"][program.barrier + 1:]]
        return graph


def input_bytes(program: Program) -> int:
    """Bytes of what the region is given."""
    made = {t for op in program.graph["ops"] for t in op["outputs"]}
    return sum(t["bytes"] for i, t in enumerate(program.graph["tensors"]) if i not in made)


@dataclass
class Group:
    """The regions of one model: first found, then planned together.

    finding: is every region that is compiled to be entered in `found`?  held: bytes of the model and of its
    inputs.  shares: by the hash of a region's graph.  watched: is what the regions save to be known while
    they run, for those that are compiled later?  saved: by region, what its last forward left.
    """

    finding: bool = False
    watched: bool = False
    held: int = 0
    saved: dict[int, list[StorageWeakRef]] = field(default_factory=dict)
    found: list[tuple[Program, int]] = field(default_factory=list)  # in the order of their forwards
    shares: dict[str, Beside] = field(default_factory=dict)

    def saved_now(self) -> int:
        """Bytes that forwards have left for backwards that are still to come."""
        alive = {ref.cdata: ref for refs in self.saved.values() for ref in refs if not ref.expired()}
        return sum(torch.UntypedStorage._new_with_weak_ptr(ref.cdata).nbytes() for ref in alive.values())

    def beside(self, program: Program, resident: int) -> Beside:
        """What stands beside a region; resident: bytes that its settings say."""
        alone = Beside(resident)
        return self.shares.get(_identity(program), alone) if self.shares else alone

    def settle(self, budget: int | str, order: str) -> None:
        """Share the budget among the regions found.  Raises BudgetError."""
        best: tuple[int, list[Beside]] | None = None
        saved = [_saved_without_a_plan(program) for program, _ in self.found]
        for share in _SHARES:
            besides = self._split([int(share * size) for size in saved])
            total = 0
            for (program, _), beside in zip(self.found, besides, strict=True):
                duration = _duration(program, beside, budget, order)
                if duration is None:
                    break
                total += duration
            else:
                if best is None or total < best[0]:
                    best = total, besides
        if best is None:
            raise BudgetError(f"no way was found to share the budget of {budget} among the {len(self.found)} regions "
                              "that the tracer made of this model; the fewer graph breaks, the better "
                              "(TORCH_LOGS=graph_breaks shows them)", 0, None)
        self.shares = {_identity(program): beside for (program, _), beside in zip(self.found, best[1], strict=True)}

    def _split(self, saved: list[int]) -> list[Beside]:
        """What stands beside each region if each but the last may save so many bytes."""
        gradients = [sum(p.graph["tensors"][t]["bytes"] for t in p.graph["outputs"]
                         if p.graph["tensors"][t].get("role") == "gradient") for p, _ in self.found]
        besides, saved_before = [], 0
        for i, (program, resident) in enumerate(self.found):
            last = i == len(self.found) - 1
            others = max(0, self.held - input_bytes(program))
            besides.append(Beside(resident + others + saved_before, sum(gradients[i + 1:]), None if last else saved[i]))
            saved_before += saved[i]
        return besides


def _identity(program: Program) -> str:
    return lowtide.Graph.from_dict(program.graph).hash


def _saved_without_a_plan(program: Program) -> int:
    """Bytes live when the forward has ended and the backward has not begun."""
    graph = lowtide.Graph.from_dict(program.graph)
    plan = lowtide.own_plan(graph)
    position = plan.steps.index(("compute", program.barrier))
    tangents = sum(program.graph["tensors"][t]["bytes"] for t in program.graph["ops"][program.barrier]["outputs"])
    return lowtide.simulate(graph, plan).memory[position] - input_bytes(program) - tangents


def _duration(program: Program, beside: Beside, budget: int | str, order: str) -> int | None:
    plain = lowtide.Problem(lowtide.Graph.from_dict(beside.graph(program, None)), budget).budget
    graph = lowtide.Graph.from_dict(beside.graph(program, plain))
    return lowtide.plan(graph, plain, order=order, time=_SECONDS).duration
