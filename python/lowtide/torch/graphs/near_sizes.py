"""Reuses a plan at sizes other than those it was made for.

The computations, frees and recomputations of a plan do not depend on sizes, nor does the code of a graph that was traced with
symbolic sizes (tracing/open_sizes.py).  Its memory does.  So before the code runs at new sizes, its schedule is verified on the
graph with the new bytes, which takes milliseconds instead of a search.  Workspaces and hidden storage of kernels were measured
at the plan's sizes; they are assumed to grow with the bytes that the kernel touches, and not to shrink.

Loses: if another plan would be faster at the new sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import lowtide

from ...frontend.planning.constraints import Constraints
from ...frontend.planning.report import Report, held_by
from ...frontend.planning.schedule import Schedule, schedule
from ..program.program import owned
from ..settings import Settings
from ..tensors.storages import allocated, bytes_of
from ..tracing.open_sizes import OpenSizes
from ..transforms.plannable import PlannableProgram


@dataclass(frozen=True)
class AtSizes:
    """A schedule at given sizes: the program with their bytes, and its report."""

    program: PlannableProgram
    report: Report


class NearSizes:
    """A schedule that may run at other sizes.

    program: what it is of.  constraints, budget, settings: what it was planned with; budget as an option, of which a share is one of
    what each size takes without a plan.  report: of the schedule at its own sizes.
    """

    def __init__(self, planned: Schedule, program: PlannableProgram, sizes: OpenSizes, constraints: Constraints,
                 budget: int | str, report: Report, settings: Settings) -> None:
        self._planned, self._program, self._sizes, self._constraints, self._budget = planned, program, sizes, constraints, budget
        self._report, self._settings = report, settings
        made = {t: fake for t, fake in ((t, owned(*owner)) for t, owner in program.owners.items()) if fake is not None}
        self._places = [t for t in made if t not in program.homes()]
        self._devices = [made[t].device for t in self._places]
        self._of_sizes = sizes.bytes_and_shapes([made[t] for t in self._places])
        self._given = {t: key.meta["desc"].idx for t, (key, _) in program.owners.items()
                       if getattr(key, "op", "") == "placeholder" and hasattr(key.meta.get("desc"), "idx")}
        self._own = [t.bytes for t in program.graph.tensors]

    @property
    def any(self) -> bool:
        """May it run at any other sizes?  A schedule that copies to the host, or of a graph that transforms have changed, may
        not, nor one with a result of which it is not known how it grows."""
        return self._of_sizes is not None and not self._planned.copied and not self._report.transforms

    def at(self, args: Sequence[Any], shown: list[int]) -> AtSizes | None:
        """The schedule with these arguments; None if it exceeds the budget.  shown: the sizes that it was made for."""
        program = self._program
        assert self._of_sizes is not None, "`any` was asked"
        size_of, shapes = self._of_sizes(self._sizes.sizes(args))
        before, shapes_before = self._of_sizes(shown)
        sizes = list(self._own)
        for t, device, now, old in zip(self._places, self._devices, size_of, before, strict=True):
            extra = self._own[t] - allocated(int(old), device)  # what its kernel holds beyond what it shows, or the caller
            grown = extra * max(1.0, now / old) if old else extra
            sizes[t] = bytes_of(args[self._given[t]]) if t in self._given else allocated(int(now) + max(0, math.ceil(grown)), device)
        shape_of = dict(zip(self._places, map(tuple, shapes), strict=True))
        shape_before = dict(zip(self._places, map(tuple, shapes_before), strict=True))
        tensors = {t: {"bytes": size, "shape": None, "dtype": None} for t, size in enumerate(sizes)}
        ops = {}
        for op in program.graph.ops:
            touched = [*op.inputs, *op.outputs]
            ratio = max(1.0, sum(sizes[t] for t in touched) / max(1, sum(self._own[t] for t in touched)))
            ops[op.index] = {"workspace": math.ceil(op.workspace * ratio), "described": False}
        for index, over in self._planned.computes:  # what lay alike by chance lies so no more
            for t in over:
                for made in program.graph.op(index).outputs:
                    if shape_before.get(t) == shape_before.get(made) and shape_of.get(t) != shape_of.get(made) \
                            or self._own[t] == self._own[made] and sizes[t] != sizes[made]:
                        return None
        there = replace(program, graph=program.graph.edited(tensors=tensors, ops=ops))
        return self._verified(there)

    def _verified(self, program: PlannableProgram) -> AtSizes | None:
        planned = self._planned
        scheduled = schedule(program, planned.steps)
        if scheduled.steps != planned.steps:
            return None
        own = self._constraints.graph(program)
        budget = self._settings.bytes_of(self._budget, own, program.device)
        limit = budget - self._report.beside
        run = replace(program, graph=scheduled.graph)
        final, plan = self._constraints.graph(run), lowtide.Plan(list(scheduled.steps))
        try:
            cost = lowtide.verify(lowtide.Problem(final, limit, live_limits=self._constraints.live_limits(run)), plan)
        except lowtide.PlanError:
            return None
        memory = lowtide.simulate(final, plan).memory
        held: dict[str, Any] = held_by(program, scheduled.steps, scheduled.graph, memory, self._constraints)
        report = replace(self._report, budget=budget, peak=cost.peak, own_peak=own.own_peak, graph=final, plan=plan, known_taken=None, **held)
        if report.footprint == "reserved" and (report.reserved or 0) > budget:
            return None
        return AtSizes(program, report)
