"""What each technique is worth to a model: peaks without weights, and arenas."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import lowtide

from ..frontend.errors import size_text
from ..frontend.options import seconds
from ..frontend.planning.smallest import Limits, smallest
from .arena import ALIGNMENT, Arena
from .model import Model


@dataclass(frozen=True)
class Row:
    """One way to run the model.  peak: without weights.  proven: is no smaller one possible in this way?"""

    what: str
    peak: int
    overhead: float
    proven: bool
    plan: lowtide.Plan


@dataclass(frozen=True)
class Table:
    """rows: "as given", "in place" (in the given order), "order" (nothing in place), "order, in place", and "recomputed".
    arena: of the plan "order, in place".  model: its name.  weights: bytes."""

    model: str
    nodes: int
    weights: int
    rows: list[Row]
    arena: Arena

    def row(self, what: str) -> Row:
        return next(row for row in self.rows if row.what == what)

    @property
    def best(self) -> lowtide.Plan:
        """The plan with the smallest peak that computes nothing twice."""
        return self.row("order, in place").plan

    def to_json(self) -> str:
        rows = [{"what": row.what, "peak": row.peak, "overhead": row.overhead, "proven": row.proven} for row in self.rows]
        arena = {"bytes": self.arena.size, "live_peak": self.arena.peak, "alignment": self.arena.alignment, **self.arena.greedy}
        return json.dumps({"model": self.model, "nodes": self.nodes, "weights": self.weights, "peaks": rows, "arena": arena}, indent=1)

    def __str__(self) -> str:
        first, peak = self.rows[0].peak or 1, self.arena.peak
        lines = [f"{self.model}: {self.nodes} ops, weights {size_text(self.weights)}; without these:", "",
                 f"{'peak':24} {'bytes':>14} {'':>9} {'share':>7} {'more time':>9}"]
        for row in self.rows:
            proven = "  proven smallest" if row.proven else ""
            lines.append(f"{row.what:24} {row.peak:14,} {size_text(row.peak):>9} {100 * row.peak / first:6.1f}% {100 * row.overhead:8.1f}%"
                         f"{proven}")
        lines += ["", f"{'arena':24} {'bytes':>14} {'':>9} above the peak of \"order, in place\""]
        for name, size in [("lowtide", self.arena.size), *((f"greedy, {n.replace('_', ' ')}", n_) for n, n_ in self.arena.greedy.items())]:
            lines.append(f"{name:24} {size:14,} {size_text(size):>9} {100 * (size / peak - 1 if peak else 0):6.2f}%")
        return "\n".join(lines)


def compare(model: Model, *, time: float | None = 5.0, work: int | None = None, seed: int = 1, threads: int = 0,
            alignment: int = ALIGNMENT) -> Table:
    """The table of a model.  time: seconds for all of it.  work: for each search."""
    time = seconds(time)
    search = _Searches(model, Limits(time, work, seed, threads))
    rows = [search.given(), search.row("in place", 0.15, "given", model.graph), search.row("order", 0.2, "free", _apart(model.graph)),
            search.row("order, in place", 0.2, "free", model.graph)]
    rows[3] = dataclasses.replace(min(rows[3], *rows[:3], key=lambda row: row.peak), what=rows[3].what, proven=rows[3].proven)
    rows.append(search.recomputed(0.3, rows[-1]))
    arena = model.place(rows[3].plan, alignment=alignment, time=None if time is None else 0.15 * time, work=work)
    return Table(model.graph.name, model.graph.num_ops, model.weights, rows, arena)


class _Searches:
    """The searches for the rows.  Each has a share of the time."""

    def __init__(self, model: Model, limits: Limits) -> None:
        self._graph, self._weights, self._limits = model.graph, model.weights, limits

    def given(self) -> Row:
        return Row("as given", self._graph.own_peak - self._weights, 0.0, False, lowtide.own_plan(self._graph))

    def row(self, what: str, share: float, order: str, graph: lowtide.Graph) -> Row:
        """The smallest peak of plans that compute nothing twice.  graph: the model's, or the same with fewer pairs in place."""
        fit = lowtide.fit(graph, "0%", order=order, techniques=["in_place"], **self._limits.share(share))
        assert fit.outcome is not None, "the given order is such a plan"
        found = self._of(what, fit.outcome, fit.floor)
        return found if graph is self._graph else dataclasses.replace(found, plan=lowtide.Plan(found.plan.steps))

    def recomputed(self, share: float, best: Row) -> Row:
        """The smallest peak of all plans.  best: without recomputation."""
        limits = dataclasses.replace(self._limits, time=self._limits.share(share)["time"])
        outcome, floor = smallest(self._graph, best.peak + self._weights, "free", ["in_place", "recompute"], limits)
        if outcome is None:
            return dataclasses.replace(best, what="recomputed", proven=best.peak + self._weights <= floor)
        return self._of("recomputed", outcome, floor)

    def _of(self, what: str, outcome: lowtide.Outcome, floor: int) -> Row:
        assert outcome.peak is not None and outcome.plan is not None
        return Row(what, outcome.peak - self._weights, outcome.overhead or 0.0, outcome.peak <= floor, outcome.plan)


def _apart(graph: lowtide.Graph) -> lowtide.Graph:
    """The graph with nothing in place."""
    return graph.edited(ops={op.index: {"in_place": []} for op in graph.ops if op.in_place})
