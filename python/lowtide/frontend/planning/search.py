"""A problem -> a plan for which code can be generated, or the smallest budget that has one.

Splits are first planned with estimated prices.  Then code is generated for the best transforms, its parts are priced by
measurement, and the transformed graph is planned again.  So two searches must succeed.  If the second fails, the smallest
budget that an earlier refusal named is tried, then the smallest that can be found.

Transforms that may change bits must pay: a plan without them is used if it keeps the budget and takes at most a thousandth
longer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import lowtide

from ..errors import BudgetError, CallerError, CaptureError, size_text
from ..options import Options
from ..program import Program
from ..techniques import CHANGE_BITS, TRANSFORMS

Transforms = list[dict[str, Any]]

_ANY_OVERHEAD = 100.0  # a hundred times as long, which no one will want to know more of
_WORTH_BITS = 1.001  # times the duration of a plan that changes bits: what a plan that changes none may take in its place
_EXACT_SHARE = 0.5  # of the limits, for the search for that plan
_FOOTPRINT_SHARE = 2  # of the limits, for a search that measures its plans, and plans again for other live bytes
_BELOW = (0.1, 0.05, 0.2, 0.1)  # of the smallest known peak: how much less searches with transforms are to take
_BELOW_SHARE = 0.5  # of the time, for each of them
_LEANER_SECONDS = 3.0  # of a search for the smallest peak, at most, unless more was given
_LEANER_WORK = 20  # times that of a search for a plan, where work is limited


@dataclass(frozen=True)
class Found:
    """outcome: of the graph that the transforms make, with a plan.  peak: bytes within which code runs it, where that was
    asked for.  instead: why auto has planned in the place of the solver that was named, in words; empty if it has not.

    Other captured graphs with the same ops and tensors may take it for theirs, so it holds no program: each has its own parameters.
    """

    transforms: Transforms
    outcome: Any
    peak: int = 0
    instead: str = ""


# hash of a graph, techniques -> what was found of the smallest peak
_smallest: dict[tuple[Any, ...], Found] = {}


class NotInParts(Exception):
    """No code can be made of the transforms that were chosen; says why."""


class Search:
    """The search for a plan of one problem.

    problem: to be solved.  reduced: the same problem, with constraints expressed in the graph only.  terms: the arguments of both
    beside graph, budget and order; plain_terms: those for an unchanged graph.  transformed_by: transforms -> the transformed program and
    its problem.  peak_of: the peak of the code of a program's plan; it may exceed the plan's, since code cannot make every copy.
    footprint: what the budget limits, beside live bytes, as lowtide.plan takes it.
    """

    def __init__(self, problem: lowtide.Problem, reduced: lowtide.Problem, terms: dict[str, Any], plain_terms: dict[str, Any], options: Options,
                 transformed_by: Callable[[Transforms], tuple[Program, lowtide.Problem]],
                 peak_of: Callable[[Program, lowtide.Plan], int], footprint: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._footprint = footprint
        self._problem, self._reduced, self._terms, self._plain_terms = problem, reduced, terms, plain_terms
        self._options, self._transformed_by, self._peak_of = options, transformed_by, peak_of
        assert reduced.budget is not None, "least time within a budget is what is asked"
        self._budget = reduced.budget
        self._key = reduced.graph.hash, *sorted(problem.techniques), str(problem.machine), problem.host_budget

    def run(self, start: lowtide.Plan | None) -> tuple[Found, int]:
        """A plan, and the bytes that no plan can go below.  start: a plan that may be known.

        Raises BudgetError, which names the smallest budget that was found to be kept, and NotInParts.
        """
        known = _smallest.get(self._key)
        outcome = self._plan(self._problem, self._start(start, known))
        found = self._as_run(outcome) if outcome.plan is not None else None
        by_auto = found is None
        smallest = self._known() if found is None else None
        if smallest is not None and smallest.peak <= self._budget:
            found = self._within(smallest)
        if found is None:
            found = self._smallest_plan(outcome)
            if found.peak > self._budget:
                raise refusal(self._problem, outcome, found, self._options.time)
            found = self._within(found)
        found = self._exact_in_place_of(found)
        if by_auto and self._options.solver != "auto":
            note = f" ({outcome.note})" if outcome.note else ""
            found = replace(found, instead=f"{self._options.solver} has found no plan of {self._problem.graph.name} within the "
                                           f"budget{note}; auto has")
        return found, outcome.floor or 0

    def _exact_in_place_of(self, found: Found) -> Found:
        """A bit-identical plan, if it costs the same; otherwise the plan found."""
        if not found.transforms or self._made(found.transforms)[0].exactness(found.transforms).is_kept:
            return found
        left = [name for name in self._terms["techniques"] if name not in CHANGE_BITS]
        if not left:
            return found
        terms = self._terms | {"techniques": left} if TRANSFORMS & set(left) else self._plain_terms
        problem = lowtide.Problem(self._problem.graph, self._problem.budget, order=self._problem.order, **terms)
        outcome = self._plan(problem, None, share=_EXACT_SHARE)
        if outcome.plan is None or outcome.duration > _WORTH_BITS * found.outcome.duration:
            return found
        try:
            exact = self._as_run(outcome)
        except NotInParts:
            return found
        return exact if exact is not None and exact.outcome.duration <= _WORTH_BITS * found.outcome.duration else found

    def smallest(self) -> tuple[Found, int]:
        """The same of the smallest peak that was found; of the smallest footprint, without transforms, where the budget limits that."""
        if self._footprint:
            outcome = self._leanest(self._problem.graph, {**self._plain_terms, **self._footprint})
            return Found([], outcome, outcome.peak), outcome.floor or 0
        outcome = self._plan(self._problem, None)
        return self._known() or self._smallest_plan(outcome), outcome.floor or 0

    def _plan(self, problem: lowtide.Problem, start: lowtide.Plan | None, solver: str | None = None, share: float = 1) -> Any:
        """solver: in the place of the one that the options name.  share: of the limits."""
        options = self._options
        share *= _FOOTPRINT_SHARE if self._footprint else 1
        solver = options.solver if solver is None else solver
        time = None if options.time is None else share * options.time
        work = None if options.work is None else int(share * options.work)
        return lowtide.plan(problem, time=time, work=work, seed=options.seed, threads=options.threads,
                            solver=solver,
                            options=dict(options.solver_options) if solver == options.solver else {},
                            progress=_with_caller_errors(options.progress), start=start, **self._footprint)

    def _start(self, start: lowtide.Plan | None, known: Found | None) -> lowtide.Plan | None:
        """A plan to begin with: `start` if it is one of this graph, or the smallest that is known, which auto has found.  The latter not
        where work alone is limited: what was searched before changes no plan then."""
        ours = known is not None and self._options.solver == "auto" and not known.transforms and self._options.time is not None
        smallest = known.outcome.plan if known is not None and ours else None
        try:
            fits = start is not None and lowtide.simulate(self._problem.graph, start).violation is None
        except ValueError:  # of a graph that transforms have made
            fits = False
        return start if fits else smallest

    def _as_run(self, outcome: Any) -> Found | None:
        """The plan with its parts as they are priced; None where the budget is too small for them."""
        transforms = outcome.plan.transforms
        _, exact = self._made(transforms)
        if transforms:
            outcome = self._plan(exact, lowtide.apply(self._problem.graph, outcome.plan)[1])
        return Found(transforms, outcome) if outcome.plan is not None else None

    def _made(self, transforms: Transforms) -> tuple[Program, lowtide.Problem]:
        try:
            return self._transformed_by(transforms)
        except CaptureError as error:
            raise NotInParts(str(error)) from error

    def _within(self, found: Found) -> Found:
        """The least memory at any price is known; within the budget less may do."""
        _, exact = self._made(found.transforms)
        outcome = self._plan(exact, found.outcome.plan, "auto")
        if outcome.plan is None:
            return found
        if outcome.plan.transforms:  # which the search came upon
            return self._as_run(outcome) or found
        return Found(found.transforms, outcome)

    def _smallest_plan(self, outcome: Any) -> Found:
        """What is found of the smallest peak, or was before: without transforms and with them where these are allowed.

        Raises BudgetError where none is smaller than that without a plan.
        """
        graph, best = self._reduced.graph, self._known()
        for allowed in (self._plain_terms, self._terms) if self._terms != self._plain_terms else (self._plain_terms,):
            if best is not None and best.peak <= self._budget:
                break
            best = self._smaller_as_run(best, self._leanest(graph, allowed))
        if self._terms != self._plain_terms:
            best = self._below(best)
        if best is not None and best.peak > best.outcome.peak:  # code leaves some of its copies out
            made, _ = self._transformed_by([])
            best = best if made.homes() else self._smaller(best, [], made, self._leanest(graph, {}))
        if best is None:
            raise refusal(self._problem, outcome, None)
        _smallest[self._key] = best
        return best

    def _below(self, best: Found | None) -> Found | None:
        """The known plan, or one in parts with a smaller peak.  A search within a budget may find transforms that `fit` misses.  It misses
        some itself where the budget is close below the known peak, so several budgets are tried."""
        graph, share = self._reduced.graph, 1 if self._options.time is None else _BELOW_SHARE
        for less in _BELOW:
            peak = graph.own_peak if best is None else best.peak
            if peak <= self._budget:
                break
            problem = lowtide.Problem(graph, int((1 - less) * peak), order=self._problem.order, **self._terms)
            outcome = self._plan(problem, None, "auto", share)
            with contextlib.suppress(NotInParts):
                best = self._smaller_as_run(best, outcome if outcome.plan is not None else None)
        return best

    def _smaller_as_run(self, best: Found | None, outcome: Any) -> Found | None:
        """The same as `_smaller` of an outcome of the graph as it is, None for no plan.  With transforms: of their smallest peak, as their
        parts are priced.  Raises NotInParts."""
        transforms = [] if outcome is None else outcome.plan.transforms
        made, exact = self._made(transforms)
        return self._smaller(best, transforms, made, self._leanest(exact.graph, self._plain_terms) if transforms else outcome)

    def _smaller(self, best: Found | None, transforms: Transforms, made: Program, outcome: Any) -> Found | None:
        """The one with the smaller peak of its code: the known plan, or that of this outcome."""
        if outcome is None:
            return best
        found = Found(transforms, outcome, max(outcome.peak, self._peak_of(made, outcome.plan)))
        return found if best is None or found.peak < best.peak else best

    def _known(self) -> Found | None:
        """A known plan with the smallest peak, perhaps of an equal captured graph, with its peak by the kernels measured for this graph."""
        known = _smallest.get(self._key)
        if known is None:
            return None
        made, _ = self._made(known.transforms)
        return replace(known, peak=max(known.outcome.peak, self._peak_of(made, known.outcome.plan)))

    def _leanest(self, graph: lowtide.Graph, allowed: dict[str, Any]) -> Any:
        options = self._options
        limits: dict[str, Any] = {}
        if options.work is None or options.time is not None:
            limits["time"] = max(options.time or 0.0, min(max(options.time or 1.0, 1.0), _LEANER_SECONDS))
        if options.work is not None:
            limits["work"] = _LEANER_WORK * options.work
        return lowtide.fit(graph, _ANY_OVERHEAD, order=self._problem.order, seed=options.seed, threads=options.threads,
                           **limits, **allowed).outcome


def refusal(problem: Any, outcome: Any, found: Found | None, seconds: float | None = None) -> BudgetError:
    """outcome: of the search for a plan.  found: of the smallest peak, if there is one.  seconds: that a search may take."""
    budget, own_peak, floor = problem.budget, problem.graph.own_peak, outcome.floor or 0
    words = f"no plan keeps this step within {size_text(budget)} ({budget} bytes): "
    if floor > budget:
        words += f"no plan of it can take less than {size_text(floor)} ({floor} bytes), proven"
    elif outcome.status == "infeasible":
        words += "none that keeps it saves as little for the backward as it may, proven"
    else:
        words += f"the search found none (no plan can take less than {size_text(floor)})"
    smallest = own_peak if found is None else found.peak
    words += f"; the smallest found takes {size_text(smallest)} ({smallest} bytes)"
    if found is not None and smallest < own_peak:
        overhead = max(0.0, found.outcome.duration / (problem.graph.duration or 1) - 1)  # parts may take less than the whole
        words += f" and {100 * overhead:.0f} % more time"
    words += f"; without a plan it takes {size_text(own_peak)}"
    if seconds is not None and TRANSFORMS & set(problem.techniques) and smallest > floor:
        words += f"; more time than {seconds:g} s may find smaller ones in parts (the option time)"
    return BudgetError(words, floor, smallest, budget)


def _with_caller_errors(progress: Callable[[Any], None] | None) -> Callable[[Any], None] | None:
    """The caller's function, whose exceptions are known as the caller's."""
    if progress is None:
        return None

    def tell(event: Any) -> None:
        try:
            progress(event)
        except Exception as error:
            raise CallerError from error

    return tell
