"""What the plan of a region has to leave room for, and the graph that says so to the planner."""

from __future__ import annotations

from dataclasses import dataclass

import lowtide

from ..program import Program


@dataclass(frozen=True)
class Constraints:
    """What others hold beside a region while it runs, and what it may save for its backward, in bytes.

    resident: held by others all the time.  saved_earlier: the part of `resident` that earlier forwards have saved.
    gradients: held by others from the end of the region's forward on.
    save_limit: what may be live between its forward and backward beside its inputs, what the forward hands out
        counted in; None: as much as fits.
    """

    resident: int = 0
    gradients: int = 0
    save_limit: int | None = None
    saved_earlier: int = 0

    def graph(self, program: Program, budget: int | None) -> lowtide.Graph:
        """The program's graph under these constraints.  budget: in bytes, for which the limit of what is saved holds;
        None: without that limit.

        A problem has one budget and no second one for a single op.  So the barrier gets a workspace: what is left of
        the budget when the region holds as much there as it may.
        """
        graph = program.graph | {"resident_bytes": self.resident}
        barrier = dict(graph["ops"][program.barrier])
        tensors = list(graph["tensors"])
        if self.gradients:
            tensors.append({"name": "gradients of other regions", "bytes": self.gradients, "role": "gradient"})
            barrier["outputs"] = [*barrier["outputs"], len(tensors) - 1]
            graph["outputs"] = [*graph["outputs"], len(tensors) - 1]
        if self.save_limit is not None and budget is not None:
            made = sum(tensors[t]["bytes"] for t in barrier["outputs"])
            room = budget - self.resident - input_bytes(program) - made - self.save_limit
            barrier["workspace"] = max(0, room)
        graph["tensors"] = tensors
        graph["ops"] = [*graph["ops"][:program.barrier], barrier, *graph["ops"][program.barrier + 1:]]
        return lowtide.Graph.from_dict(graph)


def input_bytes(program: Program) -> int:
    """Bytes of what the region is given."""
    made = {t for op in program.graph["ops"] for t in op["outputs"]}
    return sum(t["bytes"] for i, t in enumerate(program.graph["tensors"]) if i not in made)
