"""Several captured graphs of one model share one budget.

At a graph break each graph is compiled separately, and the tensors that one graph saves for its backward are live while the
next one runs.  A list of passes (`Pass`) records which graphs run beside which: a pass is a run of a graph's forward or
backward, with the memory that others hold then under any plans, and the waiting forwards.  A graph that waits while another
runs is limited in what it may save.  All graphs save the same fraction of their unplanned savings; those that hardly save anything
are not limited.  A few fractions are tried, then some near the best, and the one with the least total time is used.

Loses: if one graph is much cheaper to recompute than another.  Separate fractions would be better.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import lowtide

from ..errors import BudgetError, CaptureError, size_text
from ..program import Program
from ..techniques import TRANSFORMS, bytes_of, without_copies, without_transforms
from .as_code import ATTEMPTS, as_code
from .constraints import Constraints, given_bytes, input_bytes
from .copies import COPIES

# a program, and whether nothing limits what it saves -> the arguments of a Problem of it, except graph, budget and order
TermsOf = Callable[[Program, bool], dict[str, Any]]
Limits = Mapping[str, Any]  # time or work, as of lowtide.plan

_FRACTIONS = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.0)
_LIMITS: Limits = {"time": 0.2}  # of planning for one graph and fraction
_HALVINGS = 4  # of the range in which the smallest budget lies
_FEWER_BREAKS = "the fewer graph breaks, the better (TORCH_LOGS=graph_breaks shows them)"
_SMALLER_UNITS = "fully_shard of smaller modules gathers fewer parameters at a time, and reshard_after_forward=True keeps fewer"
_WORSE = 2  # fractions in a row that take more time, after which no smaller one is tried
_NEARER = 3  # of the range of fractions in which the best one lies
_LITTLE = 0.02  # of all savings, so much of which one graph need not be limited


@dataclass(frozen=True)
class GraphToPlan:
    """The data for planning a graph, alone or with others.

    resident: bytes that its settings reserve for others.  covers: the part of these that may be memory seen in other graphs.
    gradients: bytes of gradients that leaves hold after its backward.
    """

    program: Program
    resident: int
    gradients: int
    covers: int = 0

    @functools.cached_property
    def key(self) -> str:
        """The hash of its lowtide.Graph: captured graphs that are equal have one plan."""
        return self._graph.hash

    @property
    def signature(self) -> str:
        """The same for graphs that differ in times alone."""
        return blake2b(repr(signature(self.program)).encode(), digest_size=16).hexdigest()

    @functools.cached_property
    def saves(self) -> tuple[int, int]:
        """The fewest and the most bytes that it may save: its outputs, and all tensors that are live between forward and backward without
        a plan, except its inputs."""
        assert self.program.barrier is not None, "it has a forward and a backward"
        plan = lowtide.own_plan(self._graph)
        position = plan.steps.index(("compute", self.program.barrier))
        graph, barrier = self._graph, self._graph.op(self.program.barrier)
        tangents = sum(graph.tensor(t).bytes for t in barrier.outputs)
        handed_out = sum(graph.tensor(t).bytes for t in barrier.inputs if graph.tensor(t).producer is not None)
        live = lowtide.simulate(self._graph, plan).memory[position]
        return handed_out, live - input_bytes(self.program) - tangents

    @property
    def _graph(self) -> lowtide.Graph:
        return self.program.graph

    def room(self, others: int) -> int:
        """Bytes to leave for its reserve and for this many bytes of other graphs."""
        return self.resident + max(0, others - self.covers)


@dataclass(frozen=True)
class Pass:
    """A run of a graph's forward or backward.  others: bytes that others hold meanwhile under any plans.  waiting:
    graphs whose forwards have saved something, once for each time."""

    captured: GraphToPlan
    backward: bool
    others: int
    waiting: tuple[GraphToPlan, ...]


@dataclass(frozen=True)
class Between:
    """A moment between passes, such as a collective of FSDP2.  others, waiting: as of a pass."""

    others: int
    waiting: tuple[GraphToPlan, ...]


@dataclass(frozen=True)
class Assignment:
    """What a graph is planned with: its constraints, the budget in bytes, and a plan that keeps both, None for one that
    changes the graph.  keeps: does that plan read nothing in its backward that others may write to before it?"""

    constraints: Constraints
    budget: int
    start: lowtide.Plan | None
    keeps: bool = True

    # It goes from rank to rank; a Plan goes as the text of its file.

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"start": self.start and self.start.to_json()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"start": state["start"] and lowtide.Plan.from_json(state["start"])})


def one_after_another(calls: list[GraphToPlan], held: int) -> list[Pass]:
    """The passes of these forwards and then, last first, of their backwards.  held: bytes of model and inputs."""
    def others(captured: GraphToPlan) -> int:
        return max(0, held - given_bytes(captured.program))

    passes = [Pass(captured, False, others(captured), tuple(calls[:i])) for i, captured in enumerate(calls)]
    made = 0
    for i, captured in reversed(list(enumerate(calls))):
        passes.append(Pass(captured, True, others(captured) + made, tuple(calls[:i])))
        made += captured.gradients
    return passes


def with_one_more(passes: list[Pass]) -> list[Pass]:
    """The passes of steps with one more waiting forward than any observed step: the one that saves the most waits twice."""
    waiting = [captured for pass_ in passes for captured in pass_.waiting]
    if not waiting:
        return passes
    largest = max(waiting, key=lambda captured: captured.saves[1])
    return [replace(pass_, waiting=(*pass_.waiting, largest)) if pass_.waiting else pass_ for pass_ in passes]


def share_budget(passes: list[Pass], budget: int | str, order: str, fixed: int,
                 terms_of: TermsOf = lambda _, __: {}, varies: bool = False, between: Sequence[Between] = (),
                 limits: Limits = _LIMITS) -> dict[str, Assignment]:
    """What to plan each graph of these passes with, by their keys, so that all of them keep the budget.

    fixed: bytes that no plan changes.  varies: does the number of forwards that wait change from step to step?  Then one
    more than was seen fits, too, if that can be.  between: moments that keep the budget, too.  limits: of planning
    for one graph and fraction.

    Raises BudgetError if no way is found.
    """
    captured_graphs, waiting, limit, largest = _of(passes, budget, fixed)
    best = None
    for tried in (with_one_more(passes), passes) if varies else (passes,):
        best = best or _best(tried, captured_graphs, waiting, limit, order, terms_of, between, limits)
    if best is None and any(captured.program.kept for captured in captured_graphs.values()):
        keys = {key: replace(captured, program=captured.program.without_kept()) for key, captured in captured_graphs.items()}
        assignments = share_budget([replace(pass_, captured=keys[pass_.captured.key],
                                            waiting=tuple(keys[captured.key] for captured in pass_.waiting)) for pass_ in passes],
                                   budget, order, fixed, terms_of, varies,
                                   [replace(moment, waiting=tuple(keys[captured.key] for captured in moment.waiting)) for moment in between], limits)
        return {key: replace(assignments[captured.key], keeps=not captured_graphs[key].program.kept) for key, captured in keys.items()}
    if best is None:
        fewest = constraints_of(passes, {key: captured_graphs[key].saves[0] for key in waiting})
        floor = 0
        for key, captured in captured_graphs.items():  # of one byte: refused at once, with the floor
            terms = terms_of(captured.program, fewest[key].alone)
            _, graph, _ = _constrained(captured.program, fewest[key], terms)
            floor = max(floor, lowtide.plan(graph, 1, work=1, **terms).floor or 0)
        floor = max(floor, max((_at(moment, {key: captured_graphs[key].saves[0] for key in waiting}) for moment in between), default=0))
        unplanned = max(largest.own_peak, max((_at(moment, {key: captured_graphs[key].saves[1] for key in waiting})
                                               for moment in between), default=0))
        smallest = _smallest(passes, captured_graphs, waiting, (max(limit, floor), unplanned), order, terms_of, between, limits)
        raise _refusal(passes, limit, floor, smallest, _SMALLER_UNITS if between else _FEWER_BREAKS)
    return best


def _best(passes: list[Pass], captured_graphs: dict[str, GraphToPlan], waiting: set[str], limit: int, order: str,
          terms_of: TermsOf, between: Sequence[Between], limits: Limits) -> dict[str, Assignment] | None:
    """The assignments with the least total time among those tried; None if none is found."""
    def tried(fraction: float) -> tuple[int, dict[str, Assignment]] | None:
        return _try(passes, captured_graphs, waiting, fraction, limit, order, terms_of, between, limits)

    least = sum(pass_.captured.program.graph.duration for pass_ in passes if not pass_.backward)
    best: tuple[int, dict[str, Assignment]] | None = None
    of = above = 1.0  # the best fraction, and the one that was tried before it
    worse = 0  # fractions in a row
    for before, fraction in zip((1.0, *_FRACTIONS), _FRACTIONS):
        found = tried(fraction)
        if found and (best is None or found[0] < best[0]):
            best, of, above, worse = found, fraction, before, 0
        else:
            worse += best is not None
        if not waiting or best and best[0] <= least or worse == _WORSE:
            break
    for _ in range(_NEARER if best and above > of else 0):
        middle = (of + above) / 2
        found = tried(middle)
        if found and best and found[0] < best[0]:
            best, of = found, middle
        else:
            above = middle
    return best and best[1]


def _of(passes: list[Pass], budget: int | str, fixed: int) -> tuple[dict[str, GraphToPlan], set[str], int, lowtide.Graph]:
    """The graphs of these passes by their keys, the keys of waiting ones, the budget in bytes, and the graph with the largest peak."""
    captured_graphs = {pass_.captured.key: pass_.captured for pass_ in passes}
    waiting = {captured.key for pass_ in passes for captured in pass_.waiting}
    most = constraints_of(passes, {key: captured_graphs[key].saves[1] for key in waiting})
    largest = max((most[key].graph(captured.program) for key, captured in captured_graphs.items()),
                  key=lambda g: g.own_peak)
    return captured_graphs, waiting, _bytes(budget, largest, fixed), largest


def _try(passes: list[Pass], captured_graphs: dict[str, GraphToPlan], waiting: set[str], fraction: float, limit: int,
         order: str, terms_of: TermsOf, between: Sequence[Between], limits: Limits) -> tuple[int, dict[str, Assignment]] | None:
    """The total time of plans in which waiting graphs save this fraction of their range, and the plans; None if one has no plan."""
    saved = _saved(passes, captured_graphs, waiting, fraction)
    if any(_at(moment, saved) > limit for moment in between):
        return None
    times = Counter(pass_.captured.key for pass_ in passes if not pass_.backward)
    assignments: dict[str, Assignment] = {}
    total = 0
    for key, constraints in constraints_of(passes, saved).items():
        program = captured_graphs[key].program
        terms = terms_of(program, constraints.alone)
        found = _planned(program, constraints, limit, order, limits, terms)
        if found is None and "link" in terms:
            found = _planned(program, constraints, limit, order, limits, without_copies(terms))
        if found is None:
            return None
        duration, plan = found
        assignments[key] = Assignment(constraints, limit, None if plan.transforms else plan)
        total += duration * times[key]
    return total, assignments


def _saved(passes: list[Pass], captured_graphs: dict[str, GraphToPlan], waiting: set[str], fraction: float) -> dict[str, int]:
    """The bytes that waiting graphs may save."""
    ranges = {key: captured_graphs[key].saves for key in waiting}
    times = Counter(pass_.captured.key for pass_ in passes if not pass_.backward)
    of_all = {key: times[key] * (most - least) for key, (least, most) in ranges.items()}
    little = _LITTLE * sum(of_all.values())
    return {key: least + int((fraction if of_all[key] > little else 1.0) * (most - least)) for key, (least, most) in ranges.items()}


def _planned(program: Program, constraints: Constraints, limit: int, order: str, limits: Limits,
             terms: dict[str, Any]) -> tuple[int, lowtide.Plan] | None:
    """A plan and its time; None if none is found whose code keeps the limit."""
    program, graph, live_limits = _constrained(program, constraints, terms)
    narrower = limit
    for _ in range(ATTEMPTS):
        outcome = lowtide.plan(graph, narrower, order=order, live_limits=live_limits, **limits, **terms)
        if outcome.plan is None or outcome.duration is None:
            return None
        if not any(kind in COPIES for kind, *_ in outcome.plan.steps):
            return outcome.duration, outcome.plan
        try:
            made = program.transformed(outcome.plan.transforms) if outcome.plan.transforms else program
            code = as_code(made, constraints, outcome.plan, outcome.plan.machine)
            code.cost(limit, without_transforms(terms))
        except CaptureError:
            return None
        except lowtide.PlanError:
            excess = lowtide.simulate(code.graph, code.plan).peak - limit
            if excess <= 0 or excess >= narrower:
                return None
            narrower -= excess
        else:
            return outcome.duration, outcome.plan
    return None


def _constrained(program: Program, constraints: Constraints,
                 terms: dict[str, Any]) -> tuple[Program, lowtide.Graph, dict[int, int | str]]:
    """The program that may be transformed, its graph with the memory of others, and its live limits."""
    if TRANSFORMS & set(terms.get("techniques", ())):
        program = program.splittable()
    held = constraints.for_copies(program) if "link" in terms else constraints
    return program, held.graph(program), held.live_limits(program)


def _at(moment: Between, saved: dict[str, int]) -> int:
    """Bytes at a moment if waiting graphs save so many."""
    return moment.others + sum(saved[captured.key] for captured in moment.waiting)


def _smallest(passes: list[Pass], captured_graphs: dict[str, GraphToPlan], waiting: set[str], ends: tuple[int, int],
              order: str, terms_of: TermsOf, between: Sequence[Between], limits: Limits) -> int:
    """A budget that can be kept, near the least, between these: without a plan the latter is kept."""
    low, high = ends
    for _ in range(_HALVINGS):
        limit = (low + high) // 2
        if high - low <= high // 100:
            break
        if any(_try(passes, captured_graphs, waiting, fraction, limit, order, terms_of, between, limits) for fraction in (0.0, 0.3)):
            high = limit
        else:
            low = limit
    return high


def constraints_of(passes: list[Pass], saved: dict[str, int]) -> dict[str, Constraints]:
    """The constraints of each graph if those that wait save so many bytes.

    A graph that runs more than once has one plan: it has to do for the most that is held beside any run.
    """
    forwards: Counter[str] = Counter()
    backwards: Counter[str] = Counter()
    earlier: Counter[str] = Counter()
    for pass_ in passes:
        key, waits = pass_.captured.key, sum(saved[captured.key] for captured in pass_.waiting)
        most = backwards if pass_.backward else forwards
        most[key] = max(most[key], pass_.captured.room(pass_.others + waits))
        earlier[key] = max(earlier[key], waits)
    return {key: Constraints(forwards[key], max(0, backwards[key] - forwards[key]), saved.get(key), earlier[key])
            for key in forwards}


def shared_bytes(calls: list[GraphToPlan], budget: int | str, held: int) -> int:
    """The budget of graphs that run one after another, in bytes."""
    return _of(one_after_another(calls, held), budget, held)[2]


def _bytes(budget: int | str, graph: lowtide.Graph, fixed: int) -> int:
    """The budget in bytes; a share is one of that graph's peak without a plan."""
    text = str(budget).replace(" ", "")
    if text.startswith("act:") and text.endswith("%"):
        fixed = min(fixed, graph.own_peak)
        return fixed + int((graph.own_peak - fixed) * float(text[4:-1]) / 100)
    return bytes_of(budget, graph)


def _refusal(passes: list[Pass], limit: int, floor: int, smallest: int, hint: str) -> BudgetError:
    calls = sum(not pass_.backward for pass_ in passes)
    if calls > 1:
        words = (f"no way was found to share the budget of {size_text(limit)} ({limit} bytes) among the {calls} graphs, one after "
                 "another, that the tracer made of this model")
    else:
        words = (f"no plan was found that keeps this step within {size_text(limit)} ({limit} bytes) beside what earlier steps held while "
                 "their graph ran, such as gradients made before")
        hint = "hold less beside it: gradients set to None before the forward, one backward for each forward"
    return BudgetError(f"{words}; the smallest budget found takes {size_text(smallest)} ({smallest} bytes), and no plans can take less than "
                       f"{size_text(floor)}; {hint}", floor, smallest, limit)


def signature(program: Program) -> Any:
    """The properties of a program that determine its plan, without times, since two measurements differ."""
    graph = program.graph
    ops = [(op.kind, op.inputs, op.outputs, op.workspace, op.recomputable, op.after, op.mutates, op.in_place, op.origin,
            json.loads(op.attributes or "{}").get("source")) for op in graph.ops]
    return ops, [(t.bytes, t.role) for t in graph.tensors], graph.outputs
