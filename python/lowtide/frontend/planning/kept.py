"""Outcomes that outlive the process: a plan from the cache is an outcome again, as one of a search.

The driver makes outcomes, and verifies the plan in them.  So a plan that was kept is offered, with its proven bound, by a solver
of this process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import lowtide

from ... import cache

_SOLVER = "kept"
_one_at_a_time = threading.Lock()
_offered: list[tuple[lowtide.Plan, int | None]] = []  # what the solver says: a plan and a bound


def kept(graph: lowtide.Graph, order: str, techniques: list[str], key: tuple[Any, ...], search: Callable[[], lowtide.Outcome]) -> lowtide.Outcome:
    """The outcome of an equal search, by an earlier process perhaps; otherwise that of this search, which is kept.

    key: all that the outcome depends on beside these.
    """
    file = cache.path_of("outcomes", graph.hash, order, techniques, key, lowtide.__version__)
    entry = cache.read(file)
    try:
        plan = lowtide.Plan([(str(kind), *map(int, rest)) for kind, *rest in entry["steps"]])
        problem = lowtide.Problem(graph, int(entry["budget"]), order=order, techniques=techniques)
        lowtide.verify(problem, plan)
        return _answered(problem, plan, entry["bound"])
    except (TypeError, KeyError, ValueError):  # lowtide.Error among them
        pass
    outcome = search()
    if outcome.plan is not None and outcome.stopped_by != "cancelled":  # a later search would find a better plan
        cache.write(file, {"budget": outcome.budget, "bound": outcome.bound, "steps": list(outcome.plan.steps)})
    return outcome


def _answered(problem: lowtide.Problem, plan: lowtide.Plan, bound: int | None) -> lowtide.Outcome:
    with _one_at_a_time:
        if _SOLVER not in {name for name, *_ in lowtide.solvers()}:
            lowtide.register_solver(_SOLVER, _solve, summary="a plan that an earlier search has found")
        _offered[:] = [(plan, bound)]
        return lowtide.plan(problem, solver=_SOLVER)


def _solve(problem: lowtide.Problem, context: lowtide.Context) -> lowtide.Plan:
    plan, bound = _offered[0]
    if bound is not None:
        context.raise_bound(bound)
    return plan
