"""A plan as the generated code runs it: its schedule, and what that takes beside the memory of others.

Code cannot make every copy of a plan (Program.movable), so that its peak may be above the plan's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional

import lowtide

from ..program import Program
from .constraints import Constraints
from .copies import COPIES, Step
from .schedule import Schedule, schedule

ATTEMPTS = 3  # to find a plan whose copies the code can make unchanged

Machine = Optional[dict[str, dict[str, int]]]


@dataclass(frozen=True)
class PlanAsCode:
    """plan: the schedule, as a plan of `graph`, which has the memory of others.  limits: on the bytes at its barrier."""

    schedule: Schedule
    plan: lowtide.Plan
    graph: lowtide.Graph
    limits: dict[int, int | str]

    def cost(self, budget: int, copies: dict[str, Any]) -> lowtide.Cost:
        """From the verifier.  copies: what a Problem is told of them.  Raises PlanError if the code exceeds the budget."""
        return lowtide.verify(lowtide.Problem(self.graph, budget, live_limits=self.limits, **copies), self.plan)


def as_code(program: Program, constraints: Constraints, plan: lowtide.Plan, machine: Machine) -> PlanAsCode:
    """The plan of a program, in any valid form, as code.  program: after the plan's transforms.  machine: the links of its Problem."""
    scheduled = schedule(program, list(plan.steps))
    run = dataclasses.replace(program, graph=scheduled.graph)
    return PlanAsCode(scheduled, plan_on(machine, scheduled.steps), constraints.graph(run), constraints.live_limits(run))


def plan_on(machine: Machine, steps: Iterable[Step]) -> lowtide.Plan:
    """A plan of these steps, with the links that they use."""
    steps = list(steps)
    return lowtide.Plan(steps, machine=machine if any(kind in COPIES for kind, *_ in steps) else None)
