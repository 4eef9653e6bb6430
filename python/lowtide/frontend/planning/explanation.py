"""What `explain` shows: the overhead of each budget of a graph, before a budget is chosen."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lowtide

from ..errors import size_text
from .report import time_text
from .taken import Taken, helps, taken

_ROWS = 20  # of the table of modules
_CHEAP = 0.01  # of overhead, which nobody will notice


@dataclass
class Explanation:
    """The result of `explain`.

    curve: a plan and a bound for each budget (lowtide.Curve).  smallest: the outcome for the smallest budget with a plan.  half:
    the outcome for the largest budget of at most half the baseline peak.  free: the smallest peak without overhead.  cheap: the
    smallest peak with at most one per cent.  Each is a lowtide.Outcome, or None if no plan was found.  every_technique: the same
    with `techniques="all"`; None in that explanation itself.  allocator: the settings of PyTorch's caching allocator, for a model
    that runs on a GPU or is priced for one; else None.
    """

    curve: lowtide.Curve
    smallest: lowtide.Outcome | None
    half: lowtide.Outcome | None
    free: lowtide.Outcome | None
    cheap: lowtide.Outcome | None
    every_technique: Explanation | None
    _name: str = "lowtide.Explanation"
    allocator: str | None = None

    def reserved(self, outcome: Any) -> Taken | None:
        """What the allocator reserves for the plan of an outcome, by its model; None where there is no such allocator."""
        if self.allocator is None or outcome is None:
            return None
        return taken(self.curve.graph, outcome.plan, self.allocator, None, None)

    def modules(self, outcome: Any) -> list[tuple[str, int, float]]:
        """The recomputations of a plan: (module path, computations, share of one pass's time), most time first.

        Paths are cut short where there would be more than twenty.
        """
        graph, plan = self.curve.graph, outcome.plan
        if plan.transforms:
            graph, plan = lowtide.apply(graph, plan)
        times = Counter(plan.sequence)
        again = [(graph.op(op).origin or "", count - 1, (count - 1) * graph.op(op).time)
                 for op, count in times.items() if count > 1]
        depth = max((path.count(".") for path, _, _ in again), default=0) + 1
        while True:
            rows: dict[str, list[int]] = {}
            for path, count, time in again:
                row = rows.setdefault(".".join(path.split(".")[:depth]), [0, 0])
                row[0] += count
                row[1] += time
            if len(rows) <= _ROWS or depth == 1:
                break
            depth -= 1
        whole = self.curve.graph.duration or 1
        table = [(path or "(the model itself)", count, time / whole) for path, (count, time) in rows.items()]
        return sorted(table, key=lambda row: -row[2])

    def take_better_of(self, other: Explanation) -> None:
        """Have its named outcomes be those of another explanation of the graph that are better, whose techniques are a part of these."""
        def better(ours: lowtide.Outcome | None, theirs: lowtide.Outcome | None, key: Callable[[Any], Any]) -> lowtide.Outcome | None:
            return min((outcome for outcome in (theirs, ours) if outcome is not None), key=key, default=None)

        def by_peak(outcome: Any) -> tuple[int, int]:
            return outcome.peak, outcome.duration

        self.smallest, self.free, self.cheap = (better(ours, theirs, by_peak) for ours, theirs in (
            (self.smallest, other.smallest), (self.free, other.free), (self.cheap, other.cheap)))
        self.half = better(self.half, other.half, lambda outcome: (-outcome.budget, outcome.duration))

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write the curve as a page that can be zoomed: that with every technique, and beside it that with the default."""
        (self.every_technique or self).curve.save_html(path, beside=self.curve if self.every_technique else None)

    def __str__(self) -> str:
        # two lines of the curve's text are said below, as budgets
        lines = [line for line in self.curve.to_text().splitlines() if not line.startswith(("full speed", "smallest"))]
        lines += ["", *self._budgets()]
        shown: Any = self.smallest if self.half is None else self.half
        if shown is not None and shown.overhead:
            lines += ["", f"computed again within {size_text(shown.budget)}, by module:",
                      f"{'module':40} {'computations':>12} {'time':>8}"]
            lines += [f"{path[-40:]:40} {count:12,} {100 * share:7.2f}%" for path, count, share in self.modules(shown)]
        if self.every_technique is not None:
            lines += ["", *self._with_every_technique(self.every_technique)]
        return "\n".join(lines)

    def _budgets(self) -> list[str]:
        half = "half" if self.half is None else f"at {100 * (self.half.budget or 0) / self.curve.own_peak:.1f} %"
        named = [("costs nothing", self.free), ("at most 1 %", self.cheap), (half, self.half), ("smallest", self.smallest)]
        found = [(word, self.reserved(outcome)) for word, outcome in named]
        lines = [_line(word, outcome, one) for (word, outcome), (_, one) in zip(named, found, strict=True)]
        if any(by_allocator is not None for _, by_allocator in found):
            lines += ["", "for these plans PyTorch's allocator reserves, by its model:"]
            lines += [f"{word:14} {size_text(one.reserved):>9}{helps(one)}" for word, one in found if one is not None]
        return lines

    def _with_every_technique(self, changed: Explanation) -> list[str]:
        """Its table beside this one's overheads, and its budgets."""
        if not any(point.plan and point.plan.transforms for point in [*changed.curve.points, changed.smallest] if point):
            return ['techniques="all" would change nothing: no region in parts pays']
        lines = ['with techniques="all", which may change the graph:', "",
                 f"{'budget':>10} {'share':>8} {'overhead':>11} {'default':>11}  transforms"]
        points: list[Any] = changed.curve.points  # of which each has a budget
        for point in reversed(points):
            known = min((p.overhead for p in _planned(self.curve) if p.peak <= point.budget), default=None)
            words = ", ".join(map(_in_short, point.plan.transforms)) if point.plan else ""
            lines.append(f"{size_text(point.budget):>10} {100 * point.budget / self.curve.own_peak:6.1f} % "
                         f"{_percent(point.overhead):>11} {_percent(known):>11}  {words}".rstrip())
        return [*lines, "", *changed._budgets()]

    def __repr__(self) -> str:
        return f"<{self._name}: {len(self.curve.points)} budgets>"


def explained(graph: lowtide.Graph, points: int, name: str, *, order: str, time: float | None, **terms: Any) -> Explanation:
    """The explanation of one curve of a graph.  name: of the class, for people.  terms: the techniques, as lowtide.plan takes them."""
    floor = lowtide.plan(graph, 1, work=1, **terms).floor or 1  # of one byte: refused at once, with the floor
    curve = lowtide.curve(graph, max(floor, graph.own_peak // 5), points=points, order=order, time=time, **terms)
    planned = _planned(curve)
    half = max((p for p in planned if 2 * p.budget <= curve.own_peak), key=lambda p: p.budget, default=None)
    free, cheap = (min((p for p in planned if p.duration <= limit), key=lambda p: p.peak, default=None)
                   for limit in (graph.duration, (1 + _CHEAP) * graph.duration))
    return Explanation(curve, curve.smallest, half, free, cheap, None, name)


def _planned(curve: Any) -> list[Any]:
    """The outcomes of a curve that have a plan: its points, and the smallest where it lies among or below them."""
    smallest = curve.smallest
    planned = [point for point in curve.points if point.plan is not None]
    return planned + ([smallest] if smallest is not None and smallest.budget >= curve.points[0].budget else [])


def _in_short(transform: dict[str, Any]) -> str:
    return f"{len(transform['ops'])} ops in {transform['parts']} parts" if transform["kind"] == "split" else transform["kind"]


def _percent(overhead: float | None) -> str:
    return "-" if overhead is None else f"{100 * overhead:.2f} %"


def _line(word: str, outcome: Any, by_allocator: Taken | None) -> str:
    """A budget that the plan keeps: of reserved bytes on a device whose allocator is known, which a budget limits there."""
    if outcome is None:
        return f"{word:14} no plan was found"
    budget = outcome.peak if by_allocator is None else by_allocator.reserved
    return f'{word:14} {size_text(outcome.peak):>9}  {time_text(outcome.overhead or 0):>18}   budget="{budget}"'
