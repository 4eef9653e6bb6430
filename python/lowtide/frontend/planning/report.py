"""What became of the graphs that this process compiled, for people and for tests."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lowtide

from ..errors import size_text
from ..exactness import Exactness
from ..program import Program
from .constraints import Constraints, input_bytes
from .copies import Step


@dataclass(frozen=True)
class Technique:
    """What one technique did for a plan.

    name: as in the options.  detail: how, in words.  saved: bytes of the peak: of a transform by how much it lowers the
    peak of the graph in its own order, of the others what their plan takes less than that.  cost: share of the time of
    one pass.  modules: where, with how many ops.
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
    """What became of one compiled graph.  Bytes and ticks; seconds where said.

    peak: what the code will hold at most, by the plan; own_peak: the same without a plan (every tensor
    freed after its last use).  early_peak, late_peak: the parts of `peak` before the end of the forward and from
    there on; between: what is held at that moment.  saved: bytes that the forward leaves for its backward.
    floor: bytes that no plan can go below.  again: module path -> op names that
    run more than once, with how often.  updated: parameters that are updated within the backward.  transforms: what is
    done to the graph before the plan, in words.  techniques: what each did, in the order in which they were applied.
    offloaded: bytes of what is copied to the host, by the tensors' names.  link: by which the plan has those copies' times,
    as lowtide.plan takes it, before a tenth is left to others.  exactness: which bits are those of the step without a plan.
    outside: how many of the model's parameters were seen to get their gradients from no graph, of which no plan knows.
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

    @property
    def overhead(self) -> float:
        """Share of the time of one pass that the plan adds."""
        return self.duration / self.own_duration - 1 if self.own_duration else 0.0

    @property
    def duration_full_link(self) -> int:
        """What the plan takes over the whole link, of which no other program takes a tenth; `duration` where nothing is copied."""
        if not self.offloaded or self.link is None:
            return self.duration
        named = lowtide.Problem(self.graph, "100%", techniques=["offload"], link=self.link, derate=0)
        plan = json.loads(self.plan.to_json(self.graph))
        del plan["claims"]  # they are those of the derated link
        return lowtide.simulate(self.graph, lowtide.Plan.from_json(json.dumps(plan | {"machine": named.machine}))).duration

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write a page that shows the plan: memory over its steps, and what moves over the link meanwhile."""
        Path(path).write_text(lowtide.report_html(self.graph, self.plan), encoding="utf-8")

    def __str__(self) -> str:
        took = "from the cache" if self.cached else f"planned in {self.seconds:.2f} s"
        return (f"lowtide: {self.name}: {size_text(self.peak)} of {size_text(self.budget)} (without a plan "
                f"{size_text(self.own_peak)}), "
                f"{time_text(self.overhead)}, {self.status}, {took}{', '.join(['', *self.transforms])}; {self.exactness}"
                + (f"; the gradients of {self.outside} parameters are made outside of every graph, and in no plan"
                   if self.outside else ""))


def held_by(program: Program, steps: list[Step], graph: lowtide.Graph, memory: Sequence[int], constraints: Constraints) -> dict[str, int]:
    """Of a Report what it says of memory.  graph: on which the steps are the code's.  memory: at each of them."""
    cut, inputs = steps.index(("compute", program.barrier)), input_bytes(program)
    made = sum(graph.tensor(t).bytes for t in graph.op(program.barrier).outputs)
    return {"early_peak": max(memory[:cut], default=inputs), "late_peak": max(memory[cut:]), "between": memory[cut],
            "saved": memory[cut] - made - inputs - constraints.resident - constraints.gradients, "inputs": inputs}


_reports: list[Report] = []


def reports() -> list[Report]:
    """What became of the graphs that this process compiled, in their order; the latest plan of each."""
    return list(_reports)


def publish(report: Report, place: int | None) -> int:
    """Put a report at its graph's place among all, by default behind them; returns the place."""
    if place is None:
        place = len(_reports)
        _reports.append(report)
    _reports[place] = report
    return place
