"""A program and a budget -> the schedule that will run.

`plan_program` has these stages, each a function or a method below, in this order:

* constrain: the graph with the memory of others, and limits (constraints.py);
* plan: transforms and a plan, from the cache or by a search (search.py);
* schedule: the plan in the order of the generated code (schedule.py, copies.py);
* verify: check that the schedule keeps the budget.  Code cannot make every copy of a plan; if it then needs more memory, or the
  allocator reserves more, plan again (reserved.py);
* report: describe the plan (report.py, breakdown.py).

The budget limits the whole peak: inputs and parameters of the graph, memory of others, and all tensors live during the step.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
from dataclasses import dataclass
from typing import Any

import lowtide

from ... import cache
from .. import progress
from ..errors import BudgetError, CaptureError, LowtideWarning, size_text
from ..options import Footprint, Options
from ..program import Program
from ..techniques import TRANSFORMS, without_transforms
from . import breakdown
from .answers import Answers
from .as_code import ATTEMPTS, as_code, plan_on
from .constraints import Constraints
from .report import Report, held_by
from .reserved import within_reserved
from .schedule import Schedule
from .search import NotInParts, Search, Transforms
from .taken import Taken, taken
from .updates import updates_in_one_call, updates_together


def plan_program(program: Program, options: Options, constraints: Constraints, budget: int | None = None,
                 start: lowtide.Plan | None = None, answers: Answers | None = None) -> tuple[Schedule, Report]:
    """The plan of `program` under these constraints.

    budget: bytes, instead of the budget of the options.  start: a known plan, if any.  answers: what is known there is not
    searched, and what is found is noted there.  Raises BudgetError if no plan keeps the budget.
    """
    began = time.perf_counter()
    progress.stage("planning")
    question = Question(program, options, constraints, budget, answers=answers)
    if options.footprint == "reserved":
        answer = _within_reserved(question, start)
    else:
        answer = _keeping_the_budget(question, start)
    return answer.schedule, _report(answer, question.limit, time.perf_counter() - began)


_LITTLE_WORKSPACE = 1 << 20  # bytes: from the allocator's segments of small blocks
_ROUNDS = 4  # plans to try for what the allocator reserves, where searches cannot measure it


class Question:
    """A planning question: a program with its constraints.

    limit: the budget in bytes.  smallest: search for the plan with the smallest peak ("live") or with the smallest footprint ("reserved"),
    not for the fastest one.  program: the program that may be transformed; given: the original one.  graph: with the memory of others.
    """

    def __init__(self, program: Program, options: Options, constraints: Constraints, budget: int | None,
                 smallest: Footprint | None = None, answers: Answers | None = None) -> None:
        self.given, self.options, self.constraints, self.smallest = program, options, constraints, smallest
        self._answers = answers
        self.terms = options.planning(constraints.alone, program.device)
        self.plain_terms = without_transforms(self.terms)
        self.program = program.splittable() if TRANSFORMS & set(self.terms.get("techniques", ())) else program
        self.graph = constraints.graph(self.program)
        self.limit = options.bytes_of(options.budget if budget is None else budget, self.graph, program.device)
        self._footprint = {} if smallest == "live" else options.measured_by(program.device)
        self._check_host_budget()
        self._held = constraints.for_copies(self.program) if self.plain_terms else constraints
        held_graph = self.graph if self._held is constraints else self._held.graph(self.program)
        self.problem = lowtide.Problem(held_graph, self.limit, order=options.order,
                                       live_limits=self._held.live_limits(self.program), **self.terms)
        self.reduced = self.problem.without_limits()  # its graph determines the tensors to keep
        # transforms -> the program and problem made of them
        self._latest: tuple[Transforms, tuple[Program, lowtide.Problem]] = [], (self.program, self.problem)

    def again(self, options: Options, budget: int, smallest: Footprint | None = None) -> Question:
        """The same question with other options and another budget."""
        return Question(self.given, options, self.constraints, budget, smallest, self._answers)

    def _check_host_budget(self) -> None:
        at_home = sum(self.program.graph.tensor(t).bytes for t in self.program.homes())
        room = self.plain_terms.get("host_budget")
        if room is not None and at_home > room:
            raise BudgetError(f"host_budget: {room} bytes are less than the {at_home} of the optimizer's state, whose home is "
                              "the host", 0, None, self.limit)

    def answer(self, start: lowtide.Plan | None) -> Answer:
        """Finds, schedules and verifies a plan.  Raises BudgetError."""
        try:
            found = self._found(start)
        except NotInParts as error:
            warnings.warn(f"lowtide: {self.program.graph.name} does not run in parts: {error}", LowtideWarning, stacklevel=3)
            return self.again(self.options.without_transforms(), self.limit).answer(start)
        if found.facts["instead"]:
            warnings.warn(f"lowtide: {found.facts['instead']}", LowtideWarning, stacklevel=3)
        return self._verified(found)

    # ---- plan

    def transformed(self, transforms: Transforms) -> tuple[Program, lowtide.Problem]:
        """The program after these transforms, and its planning problem."""
        if not transforms:
            return self.program, self.problem
        if transforms != self._latest[0]:
            made = self.program.transformed(transforms)
            problem = lowtide.Problem(self._held.graph(made), self.limit, order=self.options.order, **self.plain_terms)
            self._latest = transforms, (made, problem)
        return self._latest[1]

    def _found(self, start: lowtide.Plan | None) -> _Found:
        """From the answers or the cache, or searched.  Raises BudgetError and NotInParts."""
        limits = (self.reduced.graph.hash, self.limit, self.options.order, self.options.plan_key(), self.terms.get("link"),
                  self.terms.get("host_budget"), self.smallest, self._footprint)
        key, file = repr(limits), cache.path_of("plans", *limits, lowtide.__version__)
        answered = None if self._answers is None else self._as_found(self._answers.entry(key))
        if answered is not None:
            return answered
        try:
            found = self._as_found(cache.read(file)) or self._searched(start)
        except (BudgetError, NotInParts) as error:
            if self._answers is not None:
                self._answers.found[key] = error
            raise
        entry = found.facts | {"transforms": found.transforms, "steps": list(found.plan.steps)}
        if not found.cached and found.facts["stopped_by"] != "cancelled":  # a later start would find a better plan
            cache.write(file, entry)
        if self._answers is not None:
            self._answers.found[key] = entry
        return found

    def _as_found(self, entry: Any) -> _Found | None:
        """The result of an earlier search, if it is valid here."""
        try:
            transforms = entry["transforms"]
            plan = plan_on(self.problem.machine, [(str(kind), *map(int, rest)) for kind, *rest in entry["steps"]])
            lowtide.verify(self.transformed(transforms)[1], plan)
            return _Found(transforms, plan, {key: entry[key] for key in ("bound", "status", "floor", "instead")}, cached=True)
        except (TypeError, KeyError, ValueError, CaptureError):
            return None

    def _searched(self, start: lowtide.Plan | None) -> _Found:
        """Raises BudgetError and NotInParts."""
        search = Search(self.problem, self.reduced, self.terms, self.plain_terms, self.options, self.transformed, self._peak_of,
                        self._footprint)
        found, floor = search.smallest() if self.smallest else search.run(start)
        outcome = found.outcome
        floor = max(0, floor - self._held.resident + self.constraints.resident)
        facts = {"bound": outcome.bound, "status": outcome.status, "floor": floor, "instead": found.instead,
                 "stopped_by": outcome.stopped_by}
        return _Found(found.transforms, outcome.plan, facts, cached=False)

    # ---- schedule

    def _peak_of(self, made: Program, plan: lowtide.Plan) -> int:
        """The peak of a plan's generated code in bytes."""
        code = as_code(made, self.constraints, plan, self.problem.machine)
        return lowtide.simulate(code.graph, code.plan).peak

    # ---- verify

    def _verified(self, found: _Found) -> Answer:
        """The generated code of the plan, with its cost if it keeps the budget."""
        made, _ = self.transformed(found.transforms)
        code = as_code(made, self.constraints, found.plan, self.problem.machine)
        cost: lowtide.Cost | None
        try:
            cost = code.cost(self.limit, self.plain_terms)
        except lowtide.PlanError:
            if not self.plain_terms:
                raise
            cost = None
        answer = Answer(self, found, made, code.schedule, code.plan, code.graph, cost)
        if cost is None or self.options.layout == "exact":  # whose block has places for the allocations of one update at a time
            return answer
        # the model of the allocator has each update's workspace at another time
        most_workspace = _LITTLE_WORKSPACE if self.options.footprint == "reserved" else None
        if not code.schedule.copied:
            answer = self._with_late_updates(answer, most_workspace)
        together = updates_in_one_call(answer.graph, answer.plan, most_workspace)
        return dataclasses.replace(answer, schedule=dataclasses.replace(answer.schedule, together=together))

    def _with_late_updates(self, answer: Answer, most_workspace: int | None) -> Answer:
        """The same plan with updates that wait for others, if it keeps what the first keeps."""
        order = updates_together(answer.graph, answer.plan, most_workspace)
        if order is None:
            return answer
        code = as_code(answer.program, self.constraints, lowtide.Plan([("compute", op) for op in order]), self.problem.machine)
        try:
            cost = code.cost(answer.peak, self.plain_terms)
        except lowtide.PlanError:
            return answer
        late = Answer(self, answer.found, answer.program, code.schedule, code.plan, code.graph, cost)
        by_allocator = self.options.footprint == "reserved"
        return answer if by_allocator and late.taken.reserved > max(self.limit, answer.taken.reserved) else late

    def answer_with(self, plan: lowtide.Plan, facts: dict[str, Any]) -> Answer:
        """The answer that this plan of the given program is.  facts: of a search for the same budget."""
        return self._verified(_Found([], plan, facts | {"status": "feasible"}, cached=False))


@dataclass(frozen=True)
class _Found:
    """transforms, plan: the result of the search.  facts: figures of the search for the report."""

    transforms: Transforms
    plan: lowtide.Plan
    facts: dict[str, Any]
    cached: bool


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    program: after the transforms.  schedule: of that program.  plan, graph: the schedule as a lowtide.Plan of a lowtide.Graph.  cost:
    from the verifier; None if the code exceeds the budget, because it cannot make every copy of the plan.
    """

    question: Question
    found: _Found
    program: Program
    schedule: Schedule
    plan: lowtide.Plan
    graph: lowtide.Graph
    cost: lowtide.Cost | None

    @functools.cached_property
    def taken(self) -> Taken:
        """What the plan takes from the device, by the model of its allocator."""
        options = self.question.options
        return taken(self.graph, self.plan, options.allocator_on(self.program.device) or "", options.layout, self.program.barrier,
                     self.question.constraints.allocator_state)

    @property
    def peak(self) -> int:
        return self.timeline.peak

    @property
    def duration(self) -> int:
        return self.timeline.duration

    @functools.cached_property
    def timeline(self) -> lowtide.Timeline:
        """The live bytes at each step of the code, whether it keeps the budget or not."""
        return lowtide.simulate(self.graph, self.plan)


def _keeping_the_budget(question: Question, start: lowtide.Plan | None) -> Answer:
    """An answer whose code keeps the question's budget of live bytes.  start: a known plan, if any.  Raises BudgetError."""
    answer = question.answer(start)
    return _with_fewer_copies(question, answer, start) if answer.cost is None else answer


def _within_reserved(question: Question, start: lowtide.Plan | None) -> Answer:
    """An answer for which the allocator reserves no more than the budget.  start: a known plan, if any.  Raises BudgetError."""
    options, limit = question.options, question.limit
    state, first = question.constraints.allocator_state, limit
    if state is not None:
        first = max(0, limit - state.beside(question.graph, options.allocator_on(question.program.device) or ""))
    rounds = _ROUNDS if options.layout or question.plain_terms or state else 1  # searches measure other plans as code does

    def plan(budget: int) -> Answer:
        return _keeping_the_budget(question if budget == limit else question.again(options, budget), start)

    def leanest(smallest: Footprint) -> Answer:
        answer = question.again(options, max(limit, question.graph.own_peak), smallest).answer(start)
        if answer.cost is None:
            raise BudgetError("code cannot make the copies of the plan with the fewest live bytes", 0, None, limit)
        return answer

    ways: list[Footprint] = ["live", "reserved"] if options.measured_by(question.program.device) else ["live"]
    return within_reserved(limit, first, rounds, plan, [functools.partial(leanest, way) for way in ways])


def _with_fewer_copies(question: Question, answer: Answer, start: lowtide.Plan | None) -> Answer:
    """Plans again for a budget lowered by the excess of the previous code; then for the smallest budget whose plan code can run;
    finally without copies.  answer: the first answer, whose code exceeds the budget.

    Raises BudgetError.
    """
    given, options, limit = question.given, question.options, question.limit
    floor, narrower = answer.found.facts["floor"], limit
    try:
        for _ in range(ATTEMPTS):
            taken = answer.timeline
            if taken.peak <= narrower or taken.violation is not None:
                break
            narrower -= taken.peak - narrower
            if narrower < max(floor, 1):  # no plan can keep it
                break
            answer = question.again(options, narrower).answer(start)
            if answer.cost is not None:
                return answer
    except BudgetError:
        pass
    if start is not None:
        known = question.answer_with(start, answer.found.facts)
        if known.cost is not None:
            return known
    words = f"no plan was found that keeps this step within {size_text(limit)} ({limit} bytes) and copies only what code can copy"
    try:
        answer = question.again(options, limit, "live").answer(start)
    except BudgetError as error:
        least = error.smallest
    else:
        if answer.cost is not None:
            return answer
        taken = answer.timeline
        least = taken.peak if taken.violation is None else None
    if least is not None:
        words += f"; the smallest found takes {size_text(least)} ({least} bytes)"
    if given.homes():
        raise BudgetError(words, floor, least, limit)
    try:
        return question.again(options.without_copies(), limit).answer(None)
    except BudgetError as error:
        smallest = min((n for n in (least, error.smallest) if n is not None), default=None)
        raise BudgetError(f"{words}; without copies: {error}", floor, smallest, limit) from None


def _report(answer: Answer, budget: int, seconds: float) -> Report:
    question, found, program, scheduled, cost = answer.question, answer.found, answer.program, answer.schedule, answer.cost
    assert cost is not None, "an answer that is reported keeps the budget"
    graph, constraints, transforms = question.graph, question.constraints, found.transforms
    options = question.options
    return Report(
        name=program.graph.name, ops=graph.num_ops, budget=budget, peak=cost.peak, own_peak=graph.own_peak,
        **held_by(program, scheduled.steps, scheduled.graph, answer.timeline.memory, constraints),
        floor=found.facts["floor"], resident=constraints.resident, duration=cost.duration, own_duration=graph.duration,
        bound=found.facts["bound"], status=found.facts["status"], seconds=seconds, cached=found.cached,
        again=breakdown.again(program, scheduled.ops),
        transforms=list(map(breakdown.said, breakdown.together(transforms))),
        techniques=breakdown.techniques(graph, program, transforms, scheduled, cost),
        offloaded=breakdown.offloaded(program, scheduled), link=question.terms.get("link") if scheduled.copied else None,
        exactness=program.exactness(transforms), graph=answer.graph, plan=answer.plan, footprint=options.footprint or "live",
        live_because=options.live_because, allocator=options.allocator_on(program.device), layout=options.layout,
        barrier=program.barrier, allocator_state=constraints.allocator_state,
        known_taken=answer.taken if options.footprint == "reserved" else None, inner=options.inner_in_words)
