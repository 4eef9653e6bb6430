"""Reports on the captured graphs that this process compiled, for people and for tests."""

from __future__ import annotations

import functools
import html
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lowtide

from ..errors import size_text
from ..exactness import Exactness
from ..options import Layout
from ..program import Program
from .clusters import FusedKernel, fused_kernels, with_fused_kernels
from .constraints import Constraints, input_bytes
from .copies import Step
from .taken import AllocatorState, Taken, helps, taken


@dataclass(frozen=True)
class Technique:
    """The effect of one technique in a plan.

    name: as in the options.  detail: in words.  saved: bytes; for a transform the fall of the baseline peak, for other
    techniques the baseline peak less the plan's peak.  cost: share of the time of one pass.  modules: module path -> ops.
    """

    name: str
    detail: str
    saved: int
    cost: float
    modules: Counter[str]

    def __str__(self) -> str:
        where = ", ".join(path for path, _ in self.modules.most_common(3)) + (", ..." if len(self.modules) > 3 else "")
        saved = f"{size_text(abs(self.saved))} {'less' if self.saved > 0 else 'more'}" if self.saved else "as much memory"
        return f"{self.name}: {self.detail}: {saved}, {100 * self.cost:+.2f} % time, in {where}"


def time_text(overhead: float) -> str:
    """The share of time that a plan adds, in words: parts may take less than the whole."""
    return f"{100 * abs(overhead):.2f} % {'less' if overhead < 0 else 'more'} time"


@dataclass
class Report:
    """The plan of one captured graph.  Memory is in bytes, times in ticks of the graph, unless the name says seconds.

    peak: of the plan.  own_peak: the baseline peak (unplanned, each tensor freed after its last use).  early_peak,
    late_peak: the peaks before and after the end of the forward.  between: bytes live at that moment.  saved: bytes that the
    forward saves for its backward.  floor: a lower bound on the peak of every plan.  again: module path -> names of recomputed
    ops, with the number of their runs.  updated: number of parameters that the backward updates.  transforms: in words, in the
    order of their application.  techniques: the effect of each.
    offloaded: bytes copied to the host, by tensor name.  link: the link that prices those copies, as lowtide.plan takes it,
    before the reserved tenth is subtracted.  exactness: which results are bit-identical.
    footprint: the bytes that the budget limits, "live" or "reserved".  live_because: why live ones on a device with reserved ones.
    allocator: the settings of the device's caching allocator; None where no such allocator is known, as on a CPU.  layout: as the
    option.  barrier: the op between forward and backward.  beside: of a budget that ranks share, bytes for what
    this rank's allocator holds; `budget` and `reserved` include them.  allocator_state: before the
    first step; None if it is not known.
    known_taken: what the plan takes by the allocator's model, if planning has asked for it.
    inner: the kernels that the plan runs, in words, and why these.
    outside: number of the model's parameters whose gradients come from no captured graph, and so are not planned.
    graph, plan: what runs, as a lowtide.Graph and a lowtide.Plan of it.
    """

    name: str
    ops: int
    budget: int
    peak: int
    early_peak: int
    late_peak: int
    between: int
    saved: int
    own_peak: int
    floor: int
    resident: int
    inputs: int
    duration: int
    own_duration: int
    bound: int
    status: str
    seconds: float
    cached: bool
    graph: lowtide.Graph = field(repr=False, compare=False)
    plan: lowtide.Plan = field(repr=False, compare=False)
    again: dict[str, Counter[str]] = field(default_factory=dict)
    updated: int = 0
    transforms: list[str] = field(default_factory=list)
    techniques: list[Technique] = field(default_factory=list)
    offloaded: dict[str, int] = field(default_factory=dict)
    link: str | None = None
    exactness: Exactness = field(default_factory=Exactness)
    outside: int = 0
    footprint: str = "live"
    live_because: str = ""
    beside: int = 0
    allocator: str | None = None
    layout: Layout | None = None
    barrier: int | None = None
    allocator_state: AllocatorState | None = field(default=None, repr=False, compare=False)
    known_taken: Taken | None = field(default=None, repr=False, compare=False)
    inner: str = ""

    @functools.cached_property
    def fused_kernels(self) -> list[FusedKernel]:
        """The clusters of ops that are one kernel each; empty with eager kernels."""
        return fused_kernels(self.graph, self.plan)

    @functools.cached_property
    def _taken(self) -> Taken:
        assert self.allocator is not None, "asked of a known allocator"
        return self.known_taken or taken(self.graph, self.plan, self.allocator, self.layout, self.barrier, self.allocator_state)

    @property
    def reserved(self) -> int | None:
        """Bytes that the allocator reserves over some steps, by its model; None where no allocator is known."""
        return None if self.allocator is None else self._taken.reserved + self.beside

    @property
    def better(self) -> list[tuple[str, int]]:
        """Settings of the allocator by which it reserves less, and how much, the least first."""
        return [] if self.allocator is None else list(self._taken.better)

    @property
    def overhead(self) -> float:
        """Time that the plan adds, as a share of the time of one pass."""
        return self.duration / self.own_duration - 1 if self.own_duration else 0.0

    @property
    def duration_full_link(self) -> int:
        """Duration over the full link, without the reserved tenth; `duration` if nothing is copied."""
        if not self.offloaded or self.link is None:
            return self.duration
        named = lowtide.Problem(self.graph, "100%", techniques=["offload"], link=self.link, derate=0)
        plan = json.loads(self.plan.to_json(self.graph))
        del plan["claims"]  # they are those of the derated link
        return lowtide.simulate(self.graph, lowtide.Plan.from_json(json.dumps(plan | {"machine": named.machine}))).duration

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page that draws the plan: memory over its steps, the copies over the link, the fused kernels, and what is reserved
        for it."""
        page = with_fused_kernels(lowtide.report_html(self.graph, self.plan), self.fused_kernels)
        if self.reserved is not None:
            figures = '<section id="figures"'
            page = page.replace(figures, f'<p class="muted">{html.escape(self._of_allocator())}.</p>\n  {figures}', 1)
        Path(path).write_text(page, encoding="utf-8")

    def save_snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot of the plan's memory for PyTorch's page memory_viz."""
        lowtide.save_snapshot(self.graph, self.plan, path)

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace of the plan: Chrome's to a path that ends in .json or .json.gz, Perfetto's to .pftrace."""
        lowtide.save_trace(self.graph, self.plan, path)

    def _of_allocator(self) -> str:
        """What the allocator reserves, and what would help, in a sentence without its full stop."""
        settings = f" with {self.allocator}" if self.allocator else ""
        laid_out = f" and layout={self.layout!r}" if self.layout else ""
        return (f"PyTorch's allocator{settings}{laid_out} reserves {size_text(self.reserved or 0)} for a peak of {size_text(self.peak)}, "
                f"by its model{helps(self._taken)}")

    def __str__(self) -> str:
        took = "from the cache" if self.cached else f"planned in {self.seconds:.2f} s"
        reserved = "" if self.reserved is None else f" ({size_text(self.reserved)} reserved{helps(self._taken)})"
        of_reserved = " of reserved bytes" if self.footprint == "reserved" else ""
        of_reserved += f", of which {size_text(self.beside)} are for what the allocator holds" if self.beside else ""
        return (f"lowtide: {self.name}: peak {size_text(self.peak)}{reserved}, budget {size_text(self.budget)}{of_reserved} (unplanned "
                f"{size_text(self.own_peak)}), "
                f"overhead {100 * self.overhead:.2f} %, {self.status}, {took}{', '.join(['', *self.transforms])}; {self._fused()}{self.exactness}"
                + (f"; the gradients of {self.outside} parameters are made outside of every graph, and are not planned"
                   if self.outside else "")
                + (f"; the budget limits live bytes, not reserved ones: {self.live_because}" if self.live_because else ""))

    def _fused(self) -> str:
        kernels = self.fused_kernels
        return f"{len(kernels)} fused kernels, " if kernels else ""


def held_by(program: Program, steps: list[Step], graph: lowtide.Graph, memory: Sequence[int], constraints: Constraints) -> dict[str, int]:
    """The memory figures of a Report.  graph: the one that the steps refer to.  memory: live bytes at each step."""
    inputs = input_bytes(program)
    if program.barrier is None:
        return {"early_peak": max(memory, default=inputs), "late_peak": inputs, "between": inputs, "saved": 0, "inputs": inputs}
    cut = steps.index(("compute", program.barrier))
    made = sum(graph.tensor(t).bytes for t in graph.op(program.barrier).outputs)
    return {"early_peak": max(memory[:cut], default=inputs), "late_peak": max(memory[cut:]), "between": memory[cut],
            "saved": memory[cut] - made - inputs - constraints.resident - constraints.gradients, "inputs": inputs}


_reports: list[Report] = []


def reports() -> list[Report]:
    """The reports of the captured graphs that this process compiled, in that order; the latest of each."""
    return list(_reports)


def publish(report: Report, place: int | None) -> int:
    """Store a report at the index of its graph, by default at the end; returns the index."""
    if place is None:
        place = len(_reports)
        _reports.append(report)
    _reports[place] = report
    return place
