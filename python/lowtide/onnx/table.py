"""What each technique is worth to a model: peaks without weights, and arenas."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import lowtide

from ..frontend.errors import size_text
from .arena import ALIGNMENT, Arena
from .model import Model

_SHARES = (0.16, 0.22, 0.22, 0.25, 0.15)  # of the time, for each row and the arena


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
        rows = [{key: value for key, value in dataclasses.asdict(dataclasses.replace(row, plan=None)).items() if key != "plan"}  # type: ignore[arg-type]
                for row in self.rows]
        arena = {"bytes": self.arena.bytes, "live_peak": self.arena.peak, "alignment": self.arena.alignment, **self.arena.greedy}
        return json.dumps({"model": self.model, "nodes": self.nodes, "weights": self.weights, "peaks": rows, "arena": arena}, indent=1)

    def __str__(self) -> str:
        first = self.rows[0].peak or 1
        lines = [f"{self.model}: {self.nodes} ops, weights {size_text(self.weights)}; without these:", "",
                 f"{'peak':24} {'bytes':>14} {'':>9} {'share':>7} {'more time':>9}"]
        for row in self.rows:
            proven = "  proven smallest" if row.proven else ""
            lines.append(f"{row.what:24} {row.peak:14,} {size_text(row.peak):>9} {100 * row.peak / first:6.1f}% {100 * row.overhead:8.1f}%"
                         f"{proven}")
        lines += ["", f"{'arena':24} {'bytes':>14} {'':>9} above the peak of \"order, in place\""]
        for name, size in [("lowtide", self.arena.bytes), *((f"greedy, {n.replace('_', ' ')}", n_) for n, n_ in self.arena.greedy.items())]:
            lines.append(f"{name:24} {size:14,} {size_text(size):>9} {100 * (size / (self.arena.peak or 1) - 1):6.2f}%")
        return "\n".join(lines)


def compare(model: Model, *, time: float | None = 5.0, work: int | None = None, seed: int = 1, threads: int = 0,
            alignment: int = ALIGNMENT) -> Table:
    """The table of a model.  time: seconds for all of it.  work: for each row and the arena."""
    graph = model.graph

    def found(share: float, order: str, techniques: list[str], overhead: str = "0%") -> Any:
        limit = None if time is None else share * time
        return lowtide.fit(graph, overhead, order=order, techniques=techniques, time=limit, work=work, seed=seed, threads=threads)

    def row(what: str, fit: Any) -> Row:
        outcome = fit.outcome
        proven = outcome.peak <= max(fit.floor, 0)
        return Row(what, outcome.peak - model.weights, outcome.overhead or 0.0, proven, outcome.plan)

    rows = [Row("as given", graph.own_peak - model.weights, 0.0, False, lowtide.own_plan(graph)),
            row("in place", found(_SHARES[0], "given", ["in_place"])), row("order", found(_SHARES[1], "free", ["recompute"])),
            row("order, in place", found(_SHARES[2], "free", ["recompute", "in_place"])),
            row("recomputed", found(_SHARES[3], "free", ["recompute", "in_place"], "1000%"))]
    rows = rows[:4] + [min(rows[3:], key=lambda r: r.peak)] if rows[4].peak >= rows[3].peak else rows
    if rows[4].what != "recomputed":
        rows[4] = dataclasses.replace(rows[4], what="recomputed")
    arena = model.place(rows[3].plan, alignment=alignment, time=None if time is None else _SHARES[4] * time, work=work)
    return Table(graph.name, graph.num_ops, model.weights, rows, arena)
