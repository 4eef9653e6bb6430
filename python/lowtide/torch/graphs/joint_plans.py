"""Plans the graphs of a model together, once the record of their calls shows the memory beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ...frontend.planning.sharing import GraphToPlan, Pass, share_budget
from ..device.meter import bytes_held
from ..ranks.buckets import Buckets
from ..settings import Settings
from ..tensors.storages import Sizes, device_among
from .accounts import Accounts, saved
from .calls import Calls
from .records import GraphRecord, ObservedPass

MOST_PLANS = 8  # of one graph, with others; a model that calls its graphs in ever new orders has to end somewhere


def plan_together(accounts: Accounts, calls: Calls, trained: Sizes, budget: int | None, settings: Settings,
                  args: tuple[Any, ...], buckets: Buckets, alone: bool = True) -> Iterator[tuple[ObservedPass, int]]:
    """Plan the graphs of all steps that break the budget, and of those that share a graph with them: of each such set of
    steps the pass that takes the most, with the bytes beside it, while it is planned.

    trained: storages for which the optimizer keeps a state.  budget: in bytes, once it is shared.  args: of the call that
    begins.  alone: may this rank plan by what it alone sees?  If not, the passes are found and nothing is planned.

    Raises BudgetError.
    """
    staying, now = accounts.staying(), calls.known.gradients()
    steps = list(calls.steps()) if calls.fresh is None else calls.fresh
    if not any(not accounts.fits(pass_, accounts.others(pass_, step, staying, now) + saved(pass_))
               for step in steps for pass_ in step if pass_.captured.to_plan and pass_.captured.plans < MOST_PLANS):
        return  # so that new orders of calls that fit cost no more than themselves
    fixed = bytes_held(args) + sum(staying.values())
    for steps in _connected(list(calls.steps())):
        passes = [(pass_, accounts.others(pass_, step, staying, now)) for step in steps for pass_ in step
                  if pass_.captured.to_plan]
        broken = [(pass_, others + saved(pass_)) for pass_, others in passes
                  if not accounts.fits(pass_, others + saved(pass_))]
        if not broken:
            continue
        captured_graphs = {pass_.captured for pass_, _ in passes}
        most = max(broken, key=lambda pair: accounts.peak(*pair))
        if not alone or max(captured.plans for captured in captured_graphs) >= MOST_PLANS:
            yield most
            continue
        present = [t for t in (*args, *calls.known.present()) if isinstance(t, torch.Tensor)]
        _refresh(captured_graphs, present, trained, settings, buckets, known_budget=bool(budget))
        wanted = settings.budget if budget is None else budget
        to_share = [Pass(pass_.captured.to_plan, pass_.backward, others, tuple(w.to_plan for w in pass_.waiting if w.to_plan))
                    for pass_, others in passes if pass_.captured.to_plan]
        assignments = share_budget(to_share, wanted, settings.order, fixed, settings.terms_of, limits=settings.sharing_limits,
                                   varies=len({_depth(step) for step in steps}) > 1)
        yield most
        for captured in captured_graphs:
            assert captured.to_plan is not None, "its passes were shared"
            captured.plans += 1
            agreed, report = assignments[captured.to_plan.key], captured.report
            if report is None or agreed.constraints != captured.constraints or agreed.budget != report.budget:
                captured.assignment = agreed


def _refresh(captured_graphs: set[GraphRecord], present: list[torch.Tensor], trained: Sizes, settings: Settings,
             buckets: Buckets, known_budget: bool) -> None:
    """Note what their settings say others hold now, in the place of what they said when each was compiled."""
    for captured in captured_graphs:
        known = captured.to_plan
        assert known is not None, "it has a plan"
        device = device_among(present)
        standing, state = settings.standing(bytes_held(present), device, known.program), \
            settings.state(device, trained, captured.updated) + buckets.beside(device, settings.reserved)
        covers = standing if settings.reserve is not None and not known_budget else 0
        captured.to_plan = GraphToPlan(known.program, standing + state, known.gradients, covers)


def _depth(step: list[ObservedPass]) -> int:
    """How many forwards of a step wait at most."""
    return max(len(pass_.waiting) for pass_ in step)


def _connected(steps: list[list[ObservedPass]]) -> Iterator[list[list[ObservedPass]]]:
    """The steps, those together that have a graph in common."""
    sets: list[tuple[set[GraphRecord], list[list[ObservedPass]]]] = []
    for step in steps:
        captured_graphs, together = {pass_.captured for pass_ in step}, [step]
        apart = []
        for others, theirs in sets:
            if captured_graphs & others:
                captured_graphs, together = captured_graphs | others, [*theirs, *together]
            else:
                apart.append((others, theirs))
        sets = [*apart, (captured_graphs, together)]
    return (together for _, together in sets)
