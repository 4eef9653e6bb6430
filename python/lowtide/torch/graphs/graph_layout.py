"""The option `layout` for one captured graph: a block before the first step, or one of its own in which its code arranges everything."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from ...frontend.errors import LowtideWarning
from ...frontend.planning.layout import arrangement, block_size
from ...frontend.planning.report import Report
from ..emission.points import Points
from ..program.program import Program
from ..runtime.arranged import ArrangedBlock, prime
from ..settings import Settings
from .group import Group
from .records import GraphRecord

Run = Callable[[list[Any]], Any]

_SEVERAL = ("layout='exact' is for models of one captured graph, and this one has several, or one for each of several sizes, whose tensors "
            "lie side by side: only the first of them is laid out")
_NO_ROOM_IN_RECORD = "layout='exact': no block was found in which all allocations of the plan land, so they lie as they come"
_NO_ROOM = ("layout='exact': no block was found in which all allocations of the plan land, so one block is taken before the first step, as with "
            "layout='prime'")


class GraphLayout:
    """block: that of an exact layout of the latest plan, if there is one."""

    def __init__(self, settings: Settings, group: Group, record: GraphRecord) -> None:
        self._settings, self._group, self._record = settings, group, record
        self.block: ArrangedBlock | None = None
        self._points: Points | None = None
        self._size: int | None = None  # of a block to take before the first step, beside what it counts as there
        self._standing = 0
        self._device = torch.device("cpu")

    def points(self, program: Program) -> Points | None:
        """Where code of the program is to arrange allocations; None for as they come."""
        self.block = self._points = self._size = None
        self._device = program.device
        if self._settings.layout != "exact":
            return None
        if any(r.trains and r is not self._record for r in self._group.captured_graphs) or self._group.assignments:
            self._say("several graphs", _SEVERAL)
            return None
        self.block = ArrangedBlock(self._device)
        self._points = Points(self.block.number)
        return self._points

    def learn(self, report: Report | None) -> None:
        """Code was made of that report's plan."""
        if self._settings.layout is None or report is None:
            return
        graph, plan, barrier = report.graph, report.plan, report.barrier
        if self.block is not None and self._points is not None:
            self.block.arrangement = arrangement(graph, plan, barrier, self._points.steps(plan.steps))
            if self.block.arrangement is not None:
                return
            self.block = None
            if self._settings.cuda_graph:
                self._say("no room", _NO_ROOM_IN_RECORD)
                report.layout = report.known_taken = None
                return
            self._say("no room", _NO_ROOM)
            report.layout = "prime"
        elif self._settings.layout == "exact":
            report.layout = report.known_taken = None
            return
        # what the plan counts as there and is not yet, such as the optimizer's state, comes from the block too
        self._size = block_size(graph, plan, barrier)
        self._standing = report.resident + report.inputs

    def arranged(self, run: Run, *, forward: bool) -> Run:
        """`run`, which runs a side of the step, with its allocations in the block if there is one."""
        block = self.block
        if block is None:
            return run

        def arranged(args: list[Any]) -> Any:
            with block.half(forward=forward):
                return run(args)

        return arranged

    def prime(self) -> None:
        """The forward begins; before the first one of the model a block is taken."""
        if self._size is not None and not self._group.primed:
            self._group.primed = True
            prime(self._size + max(0, self._standing - torch.cuda.memory_allocated(self._device)), self._device)

    def _say(self, cause: str, words: str) -> None:
        if cause not in self._group.watch.causes:
            self._group.watch.causes.add(cause)
            warnings.warn(f"lowtide: {words}", LowtideWarning, stacklevel=3)
