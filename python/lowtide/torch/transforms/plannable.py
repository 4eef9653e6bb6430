"""A program with the interface of the planner (frontend/program.py): schedules and transforms."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import lowtide

from ...frontend.exactness import Exactness
from ...frontend.price import Price
from ..program.lowerings import LOWERINGS, elided_ops
from ..program.program import Program
from ..runtime.assumed_tangent import AssumedTangent
from .exactness import exactness
from .transformed import splittable, transformed_program


@dataclass
class PlannableProgram(Program):
    """price: what parts of its ops cost; None: what the transforms say.  loss_scale: as of AssumedTangent, for a backward that is hoisted
    into the forward.  fused: does Inductor make its kernels?"""

    price: Price | None = None
    loss_scale: Any = "last"
    fused: bool = False

    @staticmethod
    def of(program: Program, **more: Any) -> PlannableProgram:
        """The same program; more: the fields that it has not."""
        return PlannableProgram(**{field.name: getattr(program, field.name) for field in fields(Program)}, **more)

    def order(self, computes: list[int]) -> list[int]:
        for lowering in LOWERINGS:
            computes = lowering.order(self, computes)
        return computes

    def elided(self, computes: list[int]) -> set[int]:
        return elided_ops(self, computes)

    def as_run(self, computes: list[int]) -> lowtide.Graph:
        graph = self.graph
        for lowering in LOWERINGS:
            graph = lowering.as_run(self, graph, computes)
        return graph

    def is_made_by_next(self, op: int) -> bool:
        return self.runs[op].emitter.made_by_next

    def splittable(self) -> PlannableProgram:
        return splittable(self)

    def transformed(self, transforms: list[dict[str, Any]]) -> PlannableProgram:
        return transformed_program(self, transforms, AssumedTangent(self.loss_scale), self.price)

    def exactness(self, transforms: list[dict[str, Any]]) -> Exactness:
        return exactness(self, transforms, self.fused)
