"""A program and a budget -> the schedule that will run, from the cache or from the planner.

The budget is the whole peak: the graph's inputs and parameters, what others hold beside the region (constraints.py),
and all that is live while a step runs.  The schedule is verified before it is returned.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import lowtide

from ... import cache
from ..errors import BudgetError, CaptureError, LowtideWarning, size_text
from ..price import Price
from ..program import Program
from ..settings import Settings
from ..techniques import TRANSFORMS
from ..transforms.made import made_program, splittable
from .constraints import Constraints
from .copies import COPIES
from .exactness import exactness
from .report import Report, Technique, held_by
from .schedule import Schedule, schedule
from .search import NotInParts, Search

_ATTEMPTS = 3  # at a plan whose copies code can make as they are


def plan_program(program: Program, settings: Settings, constraints: Constraints, budget: int | None = None,
                 start: Any = None, price: Price | None = None, attempts: int = _ATTEMPTS,
                 smallest: bool = False) -> tuple[Schedule, Report]:
    """The plan of `program` under these constraints.  budget: bytes in the place of the settings' budget.  start: a
    plan that may be known.  price: what parts of its ops cost.  attempts: how often a plan is asked for less than the
    budget, because it copies what no code can.  smallest: take the plan of the smallest peak that is found.

    Raises BudgetError if none keeps the budget.
    """
    began = time.perf_counter()
    given = program
    asked = settings.planning(constraints.alone, program.device)
    copies = _without_transforms(asked)
    program = splittable(program) if _transforms(asked) else program
    graph = constraints.graph(program)
    held = constraints.for_copies(program) if copies else constraints
    limit = lowtide.Problem(graph, settings.budget if budget is None else budget).budget
    at_home = sum(program.graph["tensors"][t]["bytes"] for t in program.homes())
    if copies and copies["host_budget"] is not None and at_home > copies["host_budget"]:
        raise BudgetError(f"host_budget: {copies['host_budget']} bytes are less than the {at_home} of the optimizer's state, whose "
                          "home is the host", 0, None, limit)
    problem = lowtide.Problem(held.graph(program), limit, order=settings.order, live_limits=held.live_limits(program), **asked)
    reduced = problem.without_limits()  # whose graph alone says what has to be kept
    file = cache.path_of("plans", reduced.graph.hash, problem.budget, settings.order, settings.plan_key(),
                         asked.get("link"), asked.get("host_budget"), smallest, lowtide.__version__)

    latest: tuple[Any, Any] = None, None  # transforms, and what was made of them

    def made_by(transforms: list[dict[str, Any]]) -> tuple[Program, Any]:
        """The program after these transforms, and what is asked of it."""
        nonlocal latest
        if not transforms:
            return program, problem
        if transforms != latest[0]:
            made = made_program(program, transforms, settings.guess(), price)
            latest = transforms, (made, lowtide.Problem(held.graph(made), problem.budget, order=settings.order, **copies))
        return latest[1]

    def as_code(made: Program, plan: Any) -> tuple[Schedule, Any, Program, Any]:
        """What code makes of a plan: its schedule, with the plan, the program and the graph of that."""
        scheduled = schedule(made, list(plan.steps))
        run = dataclasses.replace(made, graph=scheduled.graph)
        return scheduled, _on_machine(scheduled.steps, problem.machine), run, constraints.graph(run)

    def peak_of(made: Program, plan: Any) -> int:
        """Bytes that the code of a plan takes."""
        _, plan, _, final = as_code(made, plan)
        return lowtide.simulate(final, plan).peak

    known = _known(file, made_by, problem.machine)
    if known:
        transforms, plan, facts = known
        made, _ = made_by(transforms)
    else:
        try:
            search = Search(problem, reduced, asked, copies, settings, made_by, peak_of)
            found, floor = search.smallest() if smallest else search.run(start)
            floor = max(0, floor - held.resident + constraints.resident)
        except NotInParts as error:
            warnings.warn(f"lowtide: {program.graph['name']} does not run in parts: {error}", LowtideWarning, stacklevel=2)
            return plan_program(program, settings.without_transforms(), constraints, problem.budget, start)
        transforms, outcome = found.transforms, found.outcome
        (made, _), plan = made_by(transforms), outcome.plan
        facts = {"bound": outcome.bound, "status": outcome.status, "floor": floor, "instead": found.instead}
        if outcome.stopped_by != "cancelled":  # a poorer plan than the next start would find
            cache.write(file, facts | {"transforms": transforms, "steps": list(plan.steps)})
    if facts["instead"]:
        warnings.warn(f"lowtide: {facts['instead']}", LowtideWarning, stacklevel=2)
    program = made
    scheduled, plan, run, final = as_code(program, plan)
    try:
        cost = lowtide.verify(lowtide.Problem(final, limit, live_limits=constraints.live_limits(run), **copies), plan)
    except lowtide.PlanError:
        if not copies:
            raise
        return _with_fewer_copies(given, settings, constraints, limit, start, price, attempts, lowtide.simulate(final, plan),
                                  facts["floor"])
    report = Report(
        name=program.graph["name"], ops=graph.num_ops, budget=limit, peak=cost.peak, own_peak=graph.own_peak,
        **held_by(program, scheduled.steps, scheduled.graph, lowtide.simulate(final, plan).memory, constraints),
        floor=facts["floor"], resident=constraints.resident,
        duration=cost.duration,
        own_duration=graph.duration, bound=facts["bound"], status=facts["status"],
        seconds=time.perf_counter() - began, cached=known is not None, again=_again(program, scheduled.ops),
        transforms=list(map(_said, _together(transforms))), techniques=_techniques(graph, program, transforms, scheduled, cost),
        offloaded=_offloaded(program, scheduled), link=asked.get("link") if scheduled.copied else None,
        exactness=exactness(program, transforms, fused=settings.inner != "eager"),
        graph=final, plan=plan)
    return scheduled, report


def _transforms(asked: dict[str, Any]) -> frozenset[str]:
    """The transforms among the techniques that are allowed."""
    return TRANSFORMS & set(asked.get("techniques", ()))


def _without_transforms(asked: dict[str, Any]) -> dict[str, Any]:
    """The same for a graph that stays as it is."""
    if "link" not in asked:
        return {}
    techniques = [name for name in asked["techniques"] if name not in TRANSFORMS]
    return {"link": asked["link"], "host_budget": asked["host_budget"], "techniques": techniques}


def _on_machine(steps: Any, machine: Any) -> Any:
    """A plan of these steps, with the links that they use."""
    steps = list(steps)
    return lowtide.Plan(steps, machine=machine if any(kind in COPIES for kind, *_ in steps) else None)


def _with_fewer_copies(program: Program, settings: Settings, constraints: Constraints, budget: int, start: Any,
                       price: Price | None, attempts: int, timeline: Any, floor: int) -> tuple[Schedule, Report]:
    """The plan within as much less as the one of that timeline takes more, since no code can make all of its copies; then
    the smallest that code can make, and at last one without copies.  floor: of plans with them."""
    over = timeline.peak - budget
    if attempts and over > 0 and timeline.violation is None:
        try:
            scheduled, report = plan_program(program, settings, constraints, budget - over, start, price, attempts - 1)
        except BudgetError:
            pass
        else:
            report.budget = budget
            return scheduled, report
    words = f"no plan was found that keeps this step within {size_text(budget)} ({budget} bytes) and copies only what code can copy"
    if attempts < _ATTEMPTS:  # whoever asked for less than the budget goes on
        raise BudgetError(words, floor, timeline.peak, budget)
    try:
        return plan_program(program, settings, constraints, budget, start, price, 0, smallest=True)
    except BudgetError as error:
        least = error.smallest
    words += f"; the smallest found takes {size_text(least)} ({least} bytes)"
    if program.homes():
        raise BudgetError(words, floor, least, budget)
    try:
        return plan_program(program, settings.without_copies(), constraints, budget, None, price)
    except BudgetError as error:
        raise BudgetError(f"{words}; without copies: {error}", floor, min(least, error.smallest or least), budget) from None


def _offloaded(program: Program, scheduled: Schedule) -> dict[str, int]:
    tensors = program.graph["tensors"]
    return {tensors[t]["name"]: tensors[t]["bytes"] for t in scheduled.copied}


def _known(file: Any, made_by: Callable[[list[dict[str, Any]]], tuple[Program, Any]], machine: Any) -> Any:
    """Transforms, plan and facts from the cache if they are there and still hold; else None."""
    entry = cache.read(file)
    try:
        transforms = entry["transforms"]
        plan = _on_machine([(str(kind), *map(int, rest)) for kind, *rest in entry["steps"]], machine)
        lowtide.verify(made_by(transforms)[1], plan)
        return transforms, plan, {key: entry[key] for key in ("bound", "status", "floor", "instead")}
    except (TypeError, KeyError, ValueError, CaptureError):
        return None


def _techniques(graph: Any, program: Program, transforms: list[dict[str, Any]], schedule_: Schedule,
                plan: Any) -> list[Technique]:
    """What each technique did: the transforms one by one, then what the plan of their graph does."""
    found, whole, own = [], graph.duration or 1, graph
    end = 0
    for several in _together(transforms):
        end += len(several)
        last = end == len(transforms)  # whose parts were priced
        now = lowtide.Graph.from_dict(program.graph) if last else lowtide.transform(graph, transforms[:end])["graph"]
        ops = (index for t in several for index in t.get("ops", ()) if index < graph.num_ops)
        modules = Counter(_module(graph.op(index)) for index in ops)
        found.append(Technique(several[0]["kind"], _said(several), own.own_peak - now.own_peak, (now.duration - own.duration) / whole,
                               modules or Counter({"(the model itself)": 1})))
        own = now
    entries, computes = program.graph["ops"], schedule_.computes
    times = Counter(op for op, _ in computes)
    again = Counter({op: count - 1 for op, count in times.items() if count > 1})
    over = Counter(op for op, written in computes if written)
    saved = max(0, own.own_peak - plan.peak)
    away = Counter(schedule_.copied)
    if away:
        modules, waits = Counter(), plan.duration - sum(entries[op]["time"] for op, _ in computes)
        tensors = program.graph["tensors"]
        for op in entries:
            modules[op.get("origin") or "(the model itself)"] += sum(away[t] for t in op["outputs"])
        size = size_text(sum(tensors[t]["bytes"] * count for t, count in away.items()))
        found.append(Technique("offload", f"{away.total()} results, {size}, to the host and back", saved, waits / whole, +modules))
    for name, ops, detail in (("recompute", again, "computed again"), ("in_place", over, "written over what is read last")):
        if ops:
            modules = Counter()
            for op, count in ops.items():
                modules[entries[op].get("origin") or "(the model itself)"] += count
            cost = sum(count * entries[op]["time"] for op, count in ops.items()) / whole if name == "recompute" else 0.0
            found.append(Technique(name, f"{sum(ops.values())} results {detail}", saved, cost, modules))
    return found


def _module(op: Any) -> str:
    return op.origin or "(the model itself)"


def _together(transforms: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The transforms, with substitutions that follow one another as one."""
    found: list[list[dict[str, Any]]] = []
    for t in transforms:
        if found and t["kind"] == found[-1][0]["kind"] == "substitute":
            found[-1].append(t)
        else:
            found.append([t])
    return found


def _said(transforms: list[dict[str, Any]]) -> str:
    """A transform, or substitutions, in words."""
    first = transforms[0]
    if first["kind"] == "split":
        return f"split of {len(first['ops'])} ops into {first['parts']} parts"
    if first["kind"] == "substitute":
        rules = Counter(t["rule"] for t in transforms)
        return "substitutions: " + ", ".join(f"{count} by {rule}" for rule, count in rules.items())
    return "hoist of the backward into the forward"


def _again(program: Program, computes: list[int]) -> dict[str, Counter[str]]:
    again: dict[str, Counter[str]] = {}
    for op, times in Counter(computes).items():
        if times > 1:
            entry = program.graph["ops"][op]
            again.setdefault(entry.get("origin") or "(the model itself)", Counter())[entry["name"]] += times - 1
    return again
