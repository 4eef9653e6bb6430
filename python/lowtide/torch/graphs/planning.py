"""The joint graph of a captured graph -> its planned code: lowered, constrained by the memory of others, planned."""

from __future__ import annotations

import functools
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Optional

import torch
from torch import fx

import lowtide

from ...frontend import progress
from ...frontend.errors import BudgetError, CaptureError, LowtideWarning, some
from ...frontend.options import Counted
from ...frontend.planning.answers import Answers
from ...frontend.planning.constraints import Constraints
from ...frontend.planning.planner import plan_program
from ...frontend.planning.report import Report, Technique, publish
from ...frontend.planning.schedule import Schedule, schedule
from ...frontend.planning.sharing import Assignment, GraphToPlan
from ...frontend.techniques import TRANSFORMS
from ..clusters.cluster import CLUSTER
from ..clusters.overwriting import assumed, needed, probe
from ..clusters.prepare import Ready
from ..clusters.rewrite import NotClustered, draws, with_clusters
from ..compat.distributed import running_ddp
from ..device.meter import bytes_held
from ..pricing.costs import pricing
from ..pricing.remembered import Remembered
from ..program.lowering import lower
from ..program.lowerings.update import Updates
from ..program.program import Program, made_gradient_bytes, updated_inputs, with_gradient
from ..ranks.collectives import gathers, has_collectives
from ..runtime.assumed_tangent import AssumedTangent
from ..settings import Settings
from ..step_errors import UnknownParameter
from ..tensors.effects import ranks
from ..tensors.operators import is_marked, leaves
from ..tensors.storages import device_among, gradient_bytes, storages, trained_arguments
from ..tensors.wrapped import unwrapped
from ..tracing.against_eager import differences
from ..tracing.open_sizes import OpenSizes
from ..tracing.origins import labels_of
from ..tracing.training_step import forward_graph, joint_graph, with_open_sizes
from ..transforms.computed_again import again_in, as_backward, with_computed_again
from ..transforms.plannable import PlannableProgram
from ..transforms.whole import in_one_call
from .group import Group
from .inner import Choice, EagerIsFast, compare
from .near_sizes import AtSizes, NearSizes
from .recording import bytes_beside_record
from .records import GraphRecord
from .watch import MARKS, TOGETHER, GraphWatch, buckets

MakeProgram = Callable[[], Optional[PlannableProgram]]
CompareWith = Callable[[Report, PlannableProgram, lowtide.Graph], None]

_LITTLE = 0.05  # of overhead, within which no other way is looked for
_ROUNDS = 3  # plans to make as if clusters wrote in place that were not yet compiled to do so


@dataclass(frozen=True)
class Traced:
    """The joint graph that AOTAutograd traced from a captured graph.

    gm, inputs: what was traced.  trains: does it have a backward?  sizes: its symbolic sizes.
    unclustered: the joint graph before its clusters became ops, if they did.
    """

    gm: fx.GraphModule
    inputs: list[Any]
    joint: fx.GraphModule
    num_forward_outputs: int
    trains: bool
    sizes: OpenSizes | None = None
    unclustered: Ready | None = None

    @functools.cached_property
    def device(self) -> torch.device:
        """The first device among its inputs that is not the host, if there is one."""
        return device_among(t for n in self.joint.graph.find_nodes(op="placeholder") for t in leaves(n.meta.get("val")))

    @functools.cached_property
    def trained(self) -> set[int]:
        """Which arguments are leaves that are trained."""
        return trained_arguments(self.inputs)


@dataclass(frozen=True)
class Terms:
    """The terms on which a graph is planned.

    constraints: the memory of others.  budget: in bytes, None for that of the settings.  start: a known plan.  agreed: the
    assignment shared with the other graphs of the model, if there is one.  beside: of a budget of reserved bytes that ranks share,
    those for what this rank's allocator holds; given: the budget with these, where `budget` is without.
    """

    constraints: Constraints
    budget: int | None
    start: lowtide.Plan | None = None
    agreed: Assignment | None = None
    given: int | str | None = None
    beside: int = 0


class GraphPlanner:
    """Plans one captured graph each time that it is compiled.

    `plan` has these stages, in this order: lower and price (program/), constrain (memory of others), plan, transform, schedule and
    verify (frontend/planning), and record the result for the run time.

    record: of its results.  find: a number under which the group plans the graph later, together with others; None: it is planned
    at once.  watch: for memory of others beside the latest plan; None without one.  updates: the optimizer's updates in the backward,
    if any.  near: the latest plan at other sizes, if sizes are symbolic.
    """

    def __init__(self, settings: Settings, group: Group, record: GraphRecord, find: int | None) -> None:
        self._settings, self._group, self._record, self._find = settings, group, record, find
        self._prices: tuple[Remembered, Remembered] | None = None  # of whole ops, and of parts
        self.watch: GraphWatch | None = None
        self.updates = group.updates(settings)
        self.near: NearSizes | None = None
        self.kept_within: int | None = None  # the smallest budget of a plan that reads nothing that others may write to
        self.written: set[int] = set()  # inputs that others were seen to write to between forward and backward
        self.written_results: set[int] = set()  # the same of results
        self._answers: Answers | None = None  # of the first rank's searches, while several ranks plan together
        self.inner: Choice | None = None  # of kernels, where the options leave it open
        self._assumed_tangent: AssumedTangent | None = None  # whose code finds it as long as somebody holds it

    def use(self, settings: Settings, inner: Choice | None = None) -> None:
        """From now on plan with these.  inner: as the attribute."""
        self._settings, self.inner = settings, inner

    def plan(self, traced: Traced) -> Schedule | None:
        """The schedule of a traced graph's program; None for a graph that is planned later.

        Raises CaptureError, BudgetError and RankError.
        """
        if self._group.gathers_again and self._group.ranks is None and has_collectives(traced.joint):
            with self._group.planning_again(self._settings):  # or this rank would gather in another order than the others
                return self._plan_for(traced)
        return self._plan_for(traced)

    def _plan_for(self, traced: Traced) -> Schedule | None:
        group = self._group
        settings = group.limited(self._settings).on(traced.device)
        if group.ranks is None and ranks() > 1 and has_collectives(traced.joint):
            settings = settings.with_estimates()
        self.near, self._record.trains = None, traced.trains
        differs = differences(traced.gm, traced.joint)  # from eager execution; lowering changes the graph
        program = self._lowered(traced, settings)
        if self.inner and not self.inner.why:
            self.inner = Choice(True, self._compared(traced, program, settings))
        to_plan = self._enter(traced, program, settings)
        if self._find is not None:
            group.to_plan[self._find] = to_plan
            return None
        terms = self._terms(traced, program, to_plan, settings)
        settings, terms = self._agreed(program, settings, terms)
        same = None if terms.agreed or settings.techniques & TRANSFORMS else group.same(self._record, program, terms.constraints)
        if same and same.report and same.schedule is not None:  # but for a number that the tracer took for a constant
            planned, report = replace(schedule(program, same.schedule.steps), together=same.schedule.together), same.report
            if report.exactness.traced != differs:
                report, same = replace(report, exactness=replace(report.exactness, traced=differs)), None
        else:
            try:
                planned, report = self._planned_by_all(traced, program, settings, terms)
            except BudgetError as error:
                raise error.with_beside(terms.beside) from None
            report.beside = terms.beside
            report.budget += terms.beside
            report.updated, report.outside = len(self._record.updated), group.outside.count
            report.exactness = replace(report.exactness, traced=differs)
            if self.inner:
                report.inner = self.inner.in_words(program.graph)
        self._note(traced, settings, terms, planned, report, same)
        if report.peak > report.budget:  # since forwards that wait have saved too much
            group.leave_room(self._record, traced.inputs, settings)
        return planned

    # ---- lower and price

    def _lowered(self, traced: Traced, settings: Settings, joint: fx.GraphModule | None = None) -> PlannableProgram:
        """The program of the traced joint graph, or of another one of the same step."""
        if self._prices is None:
            costs, by_clock = settings.costs_on(traced.device), not settings.estimated
            self._prices = (Remembered(pricing(costs, traced.device, real=True, by_clock=by_clock)),
                            Remembered(pricing(costs, traced.device, real=True, by_clock=by_clock)))
        price, part_price = self._prices
        price.agreed = part_price.agreed = self._group.ranks.prices if self._group.ranks else None
        progress.stage("lowering the graph")
        inputs, trained = traced.inputs, traced.trained
        program = lower(traced.joint if joint is None else joint, traced.num_forward_outputs, price,
                        f"graph {self._record.number}", trained=trained,
                        techniques=settings.techniques, updates=self._updates(inputs, trained, traced.device) if traced.trains else None,
                        changing=self.changing(inputs) if traced.trains and not settings.whole else (),
                        results=self.written_results, gathers_again=self._group.ranks is not None,
                        draws_again=not settings.cuda_graph)
        reason = getattr(traced.gm, "compile_subgraph_reason", None)
        if reason and reason.graph_break:  # a later graph of the model may write to them, in every step
            program.kept = ()
        program.labels = {i: label.removeprefix("model.") if settings.whole else label
                          for i, label in labels_of(traced.gm).items()}
        if settings.whole and traced.trains:
            _check_all_are_updated(program, trained)
            program = in_one_call(program)
        return PlannableProgram.of(program, price=part_price, loss_scale=settings.loss_scale,
                                   fused=settings.fuses)

    def _compared(self, traced: Traced, program: PlannableProgram, settings: Settings) -> str:
        """How much less time the program takes than one of eager kernels, in words.  Raises EagerIsFast."""
        trace = joint_graph if traced.trains else forward_graph
        found = trace(traced.gm, traced.inputs) if traced.sizes is None else with_open_sizes(trace, traced.gm, traced.inputs, traced.sizes)
        if found is None:
            raise EagerIsFast("those of eager execution could not be priced")
        try:
            eager = self._lowered(traced, replace(settings, inner="eager"), found[0])
        except CaptureError:
            return "those of eager execution cannot be planned"
        return compare(eager.graph, program.graph)

    # ---- constrain

    def _enter(self, traced: Traced, program: PlannableProgram, settings: Settings) -> GraphToPlan:
        """What it takes to plan the graph, beside others."""
        group, record, inputs = self._group, self._record, traced.inputs
        taken = updated_inputs(program) if program.updates is not None else []
        record.updated = storages(inputs[i] for i in taken)
        if self.updates:
            self.updates.slots = {i: inputs[i] for i in taken}
            self.updates.homes = list(program.homes().values())
            sizes: defaultdict[int, list[int]] = defaultdict(list)
            for t, (slot, _) in program.states().items():
                if program.graph.tensor(t).home != "host":
                    sizes[slot].append(program.graph.tensor(t).bytes)
            self.updates.state_sizes = dict(sizes)
        if any(map(is_marked, traced.joint.graph.nodes)):
            self.say_once("marks", MARKS)
        if group.options is not None:  # or the model is known, and what stands in for results of other graphs is none of it
            group.train(inputs)
        trained = traced.trained
        if group.sharded is not None:  # which counts the gradients of gathered parameters itself
            trained = trained - group.sharded.gathered(inputs)
        made = group.enter(settings, program, traced.device, inputs, made_gradient_bytes(program, trained),
                           record.updated, self._find is not None)
        return replace(made, resident=made.resident + bytes_beside_record(program, inputs)) if settings.cuda_graph else made

    def _terms(self, traced: Traced, program: PlannableProgram, to_plan: GraphToPlan, settings: Settings) -> Terms:
        """The terms agreed upon with other graphs, or else those of the memory beside this one now."""
        group, record = self._group, self._record
        if traced.trains:
            group.meet_block(to_plan, traced.inputs, settings)
        agreed = record.assignment or group.agreed(to_plan, traced.trains)
        if agreed:
            record.to_plan = record.to_plan or to_plan
            terms = Terms(agreed.constraints, agreed.budget, agreed.start, agreed)
        else:
            constraints = group.constraints(to_plan, traced.inputs, not traced.trains or traced.device.type != "cpu")
            budget = group.bytes_of(traced.trains)
            if budget is None and not traced.trains and "%" in str(settings.budget):
                budget = self._share_of_training(traced, program, to_plan)
            record.to_plan = to_plan
            terms = Terms(constraints, budget)
        if settings.techniques & TRANSFORMS and not terms.constraints.alone:
            self.say_once("together", TOGETHER)
        record.leaves = storages(traced.inputs[i] for i in with_gradient(program, traced.trained))
        return terms

    def _agreed(self, program: PlannableProgram, settings: Settings, terms: Terms) -> tuple[Settings, Terms]:
        """The settings and terms that several ranks agree upon, where they plan together; and what the budget limits."""
        ranks, device = self._group.ranks, program.device
        counted = settings.default_footprint(device)

        def counting(counted: Counted, constraints: Constraints) -> Settings:
            shared = terms.agreed is not None or constraints.saved_earlier > 0 or not constraints.alone
            gathered = "parameters are gathered in other streams" if self._group.sharded is not None else ""
            return settings.counting(counted, constraints.graph(program), "several graphs share the budget" if shared else gathered)

        def in_bytes(constraints: Constraints, counted: Counted, budget: int | str) -> int:
            return counting(counted, constraints).bytes_of(budget, constraints.graph(program), device)

        budget = settings.budget if terms.budget is None else terms.budget
        terms = replace(terms, given=terms.budget)
        ours = counting(counted, terms.constraints)
        state = ours.allocator_state(device)
        if ranks is None:
            return ours, replace(terms, constraints=replace(terms.constraints, allocator_state=state))
        beside = 0
        if state is not None:  # differs between ranks, which search one plan
            graph = terms.constraints.graph(program)
            beside = max(0, state.beside(graph, ours.allocator or ""))
            budget = ours.bytes_of(budget, graph, device) - beside
            terms = replace(terms, budget=max(0, budget), beside=beside)
        link, host_budget = ranks.link(settings.planning(terms.constraints.alone, program.device))
        if link is not None:
            settings = replace(settings, link=link, host_budget=host_budget)
        constraints, budget, counted = ranks.terms(program.graph.hash, terms.constraints, budget, counted, in_bytes)
        given = budget + beside if isinstance(budget, int) else budget  # of all ranks, so that they agree at other sizes as well
        return replace(counting(counted, constraints), budget=budget), replace(terms, constraints=constraints, budget=None, given=given)

    # ---- plan

    def _planned_by_all(self, traced: Traced, program: PlannableProgram, settings: Settings, terms: Terms) -> tuple[Schedule, Report]:
        """The plan of the program on these terms, the same on all ranks that plan together.  Raises BudgetError."""
        ranks = self._group.ranks
        if ranks is None:
            return self._planned(traced, program, settings, terms)
        try:
            return ranks.planned(lambda answers: self._with(answers, traced, program, settings, terms))
        finally:
            self._answers = None

    def _with(self, answers: Answers, traced: Traced, program: PlannableProgram, settings: Settings, terms: Terms) \
            -> tuple[Schedule, Report]:
        self._answers = answers
        return self._planned(traced, program, settings, terms)

    def _planned(self, traced: Traced, program: PlannableProgram, settings: Settings, terms: Terms) -> tuple[Schedule, Report]:
        """The plan of the program on these terms.  Raises BudgetError."""
        if terms.agreed and not terms.agreed.keeps:
            program = program.without_kept()
        try:
            return self._planned_either_way(traced, program, settings, terms)
        except BudgetError as error:
            # the forwards that wait were planned before this one was known: from the next step on it is different
            if terms.agreed or not terms.constraints.saved_earlier or not error.smallest:
                raise
            refused = error
        planned, report = self._planned_either_way(traced, program, settings, replace(terms, budget=refused.smallest, start=None))
        report.budget = report.budget if refused.budget is None else refused.budget
        return planned, report

    def _planned_either_way(self, traced: Traced, program: PlannableProgram, settings: Settings, terms: Terms) \
            -> tuple[Schedule, Report]:
        """The plan of the program as it was traced, or of another one of the same step, which is planned where those before do not keep
        the budget or take long: with clusters that write over inputs that die, then with draws as clusters of their own; with eager
        kernels one whose backward computes the largest results of the forward for itself (computed_again.py).

        Raises BudgetError.
        """
        best: tuple[Schedule, Report] | BudgetError
        try:
            best = self._plan(program, settings, terms)
        except BudgetError as error:
            best = error
        limited = replace(terms, budget=best.budget if isinstance(best, BudgetError) else best[1].budget, start=None)
        for make, compare_with in self._other_ways(traced, settings, limited, best):
            if not isinstance(best, BudgetError) and (best[1].overhead <= _LITTLE or not (best[1].transforms or settings.fuses)):
                break
            other = make()
            if other is None:
                continue
            try:
                schedule_, found = self._plan(other, settings, limited)
            except BudgetError as error:
                best = min(best, error, key=lambda e: e.smallest or math.inf) if isinstance(best, BudgetError) else best
                continue
            if isinstance(best, BudgetError) or found.duration < best[1].duration:
                compare_with(found, other, terms.constraints.graph(program))
                best = schedule_, found
        if isinstance(best, BudgetError):
            raise best from None
        return best

    def _other_ways(self, traced: Traced, settings: Settings, terms: Terms, first: tuple[Schedule, Report] | BudgetError) \
            -> Iterator[tuple[MakeProgram, CompareWith]]:
        """Other programs of a step, and what makes the report of each one of the program as it was traced.  first: the plan of the
        latter."""
        may_split = "split" in settings.techniques and terms.constraints.alone
        if settings.fuses and "in_place" in settings.techniques:
            best = None if isinstance(first, BudgetError) else first[1].duration
            yield functools.partial(self._with_twins, traced, settings, terms, best), lambda *_: None
        if settings.fuses and may_split:
            yield functools.partial(self._with_draws_apart, traced, settings), _with_own
        if not settings.fuses and may_split:
            yield functools.partial(self._with_computed_again, traced, settings), _with_own_backward

    def _with_twins(self, traced: Traced, settings: Settings, terms: Terms, best: int | None) -> PlannableProgram | None:
        """The program in which clusters may write over inputs that die, if some do so that have to in a plan on these terms which takes
        less time than `best` (clusters/overwriting.py)."""
        calls = traced.joint.graph.find_nodes(op="call_function", target=CLUSTER)
        is_other = False
        for _ in range(_ROUNDS):
            with assumed(calls) as may:
                wanted = self._to_overwrite(self._lowered(traced, settings), settings, terms, best) if may else []
            found = probe(wanted)
            is_other = is_other or any(found)
            if all(found):
                break
        return self._lowered(traced, settings) if is_other else None

    def _to_overwrite(self, program: PlannableProgram, settings: Settings, terms: Terms, best: int | None) -> list[fx.Node]:
        """The calls of clusters that have to write over an input in a plan of the program on these terms, or with the smallest peak that
        is found; none if that takes no less time than `best`."""
        kept_within = self.kept_within
        try:
            try:
                planned, report = self._plan(program, settings, terms)
            except BudgetError as error:
                if not error.smallest:
                    return []
                planned, report = self._plan(program, settings, replace(terms, budget=error.smallest))
        except BudgetError:
            return []
        finally:
            self.kept_within = kept_within
        if best is not None and report.duration >= best:
            return []
        memory = lowtide.simulate(report.graph, report.plan).memory
        limit = report.budget if report.footprint == "live" else 0
        ran = planned.program
        assert isinstance(ran, Program), "as the one that was planned"
        nodes = [ran.runs[op].node for op in sorted(needed(planned.steps, report.graph, memory, limit))]
        return [node for node in nodes if node is not None and node.target is CLUSTER]

    def _with_draws_apart(self, traced: Traced, settings: Settings) -> PlannableProgram | None:
        """The program whose random numbers are drawn by clusters of their own, so that those which read them may be split, if it draws any."""
        if traced.unclustered is None or not draws(traced.unclustered):
            return None
        try:
            joint = with_clusters(traced.unclustered, real=True, in_parts=True)
        except NotClustered:
            return None
        return self._lowered(traced, settings, joint)

    def _with_computed_again(self, traced: Traced, settings: Settings) -> PlannableProgram | None:
        """The program whose backward computes the largest results of the forward for itself, if there is one."""
        if not traced.trains or traced.sizes:
            return None
        try:
            made = with_computed_again(traced.joint)
            return None if made is None else as_backward(self._lowered(traced, settings, made))
        except Exception:  # what nobody has foreseen is no reason against the plan of the graph as it is
            return None

    def _plan(self, program: PlannableProgram, settings: Settings, terms: Terms) -> tuple[Schedule, Report]:
        """The schedule and the report of a plan whose backward reads no tensor that others may write before it.  If no such plan keeps the
        budget, of one that does read such tensors (written.py checks for writes).
        """
        try:
            return plan_program(program, settings, terms.constraints, terms.budget, terms.start, self._answers)
        except BudgetError as error:
            if not program.kept:
                raise
            self.kept_within = error.smallest
        return plan_program(program.without_kept(), settings, terms.constraints, terms.budget, terms.start, self._answers)

    # ---- note

    def _note(self, traced: Traced, settings: Settings, terms: Terms, planned: Schedule, report: Report,
              same: GraphRecord | None) -> None:
        """Record the result.  same: a graph with the same plan, whose report this one shares."""
        record, group, constraints, program = self._record, self._group, terms.constraints, planned.program
        assert isinstance(program, PlannableProgram), "as the one that was planned"
        record.report, record.constraints, record.schedule = report, constraints, planned
        group.gathers_again = group.gathers_again or group.ranks is not None and _gathers_again(planned)
        if self.updates:
            self.updates.peak, self.updates.budget = report.peak, report.budget
        self.watch = self._watch_for(traced.inputs, report, constraints.saved_earlier, program, traced.device)
        if same:
            record.place = same.place
        else:
            record.assignment = None
            is_shared = any(r is not record and r.place == record.place for r in group.captured_graphs)
            record.place = publish(report, None if is_shared else record.place)
            self._assumed_tangent = program.assumed_tangent
        if traced.sizes:
            budget = self._settings.budget if terms.given is None else terms.given
            self.near = NearSizes(planned, program, traced.sizes, constraints, budget, report, settings)

    # ---- while the code runs

    def meet(self, there: AtSizes) -> None:
        """The graph runs at sizes at which it takes that; its record keeps the most."""
        record, report, known = self._record, there.report, self._record.report
        assert known is not None, "it is planned"
        if report.peak > known.peak and record.to_plan:
            record.to_plan = replace(record.to_plan, program=there.program)
        most = {name: max(getattr(known, name), getattr(report, name))
                for name in ("peak", "early_peak", "late_peak", "between", "saved", "inputs", "budget", "own_peak")}
        for name, value in most.items():
            setattr(known, name, value)
        if self.watch:
            self.watch.grow(known.peak, known.between, known.budget)

    def changing(self, inputs: list[Any]) -> set[int]:
        """The inputs that others may write between forward and backward: all except parameters, which are normally not changed before the
        backward, unless a write was observed.
        """
        return {i for i, value in enumerate(inputs)
                if isinstance(value, torch.Tensor) and (i in self.written or not isinstance(value, torch.nn.Parameter))}

    def _watch_for(self, inputs: list[Any], report: Report, saved_earlier: int, program: PlannableProgram,
                   device: torch.device) -> GraphWatch:
        """saved_earlier: bytes of earlier forwards that the plan counts, unless a reserve takes their place."""
        shared, reserve = bool(self._group.assignments), self._settings.reserved
        allocator = device.type != "cpu" and reserve is None
        counted = saved_earlier if shared or reserve is None else 0
        standing = gradient_bytes(inputs)
        counted += reserve or (standing + buckets(standing) if allocator else 0)
        uncounted = counted  # by what stands there
        counted += self._group.buckets.beside(device, reserve)
        base = self._settings.standing(bytes_held(leaves(inputs)) + self._group.copied, device, program) - uncounted
        if not shared and not allocator and reserve is None:
            base += saved_earlier
        return GraphWatch(self._group.watch, (report.peak, report.between, report.budget), counted=counted,
                           saved_earlier=saved_earlier, base=base, reserved=reserve is not None, allocator=allocator)

    def say_once(self, cause: str, words: str) -> None:
        """A warning that comes once for each model."""
        if cause not in self._group.watch.causes:
            self._group.watch.causes.add(cause)
            warnings.warn(f"lowtide: {words}", LowtideWarning, stacklevel=3)

    def _updates(self, inputs: list[Any], trained: set[int], device: torch.device) -> Updates | None:
        """The updates of a graph with these inputs, if its backward is to make them.  Raises CaptureError."""
        if self.updates is None:
            return None
        if running_ddp() is not None:
            raise CaptureError("update='backward' within DistributedDataParallel: gradients are averaged over the ranks when "
                               "the backward has made them, and updates would come before; use update='step', or lowtide.torch.step, "
                               "which updates after the backward")
        if any(isinstance(inputs[i], torch.Tensor) and unwrapped(inputs[i]) is not inputs[i] for i in trained):
            raise CaptureError("update='backward' of parameters of which each rank holds a part (DTensor): the optimizer's rules "
                               "are for whole parameters; use update='step', or lowtide.torch.step, which updates after the backward")
        rules = self.updates.rules(inputs, sorted(trained), self._settings.state_home)
        return Updates(rules, device.type != "cpu", self.updates.key) if rules.of else None

    def _share_of_training(self, traced: Traced, alone: PlannableProgram, to_plan: GraphToPlan) -> int | None:
        """The budget in bytes of the training step that a forward without a backward is a part of, if it is."""
        found = joint_graph(traced.gm, traced.inputs)
        if found is None:
            return None
        joint, num_forward_outputs = found
        trained = trained_arguments(traced.inputs)
        try:
            program = lower(joint, num_forward_outputs, pricing(self._settings.costs, traced.device, real=True),
                            alone.graph.name, trained=trained, techniques=self._settings.on(traced.device).techniques,
                            updates=self._updates(traced.inputs, trained, traced.device))
        except CaptureError:
            return None
        graph = program.graph.edited(resident_bytes=to_plan.resident)
        settings = self._settings.counting(self._settings.default_footprint(traced.device), graph)
        return settings.bytes_of(settings.budget, graph, traced.device)


def _with_own(report: Report, program: PlannableProgram, own: lowtide.Graph) -> None:
    """The report of a program as one of the graph `own` of the same step."""
    report.own_peak, report.own_duration, report.ops = own.own_peak, own.duration, own.num_ops


def _with_own_backward(report: Report, program: PlannableProgram, own: lowtide.Graph) -> None:
    """The same where the program's backward computes results of the forward for itself."""
    report.techniques.insert(0, Technique("recompute", "the largest results of the forward computed by the backward for itself",
                                          own.own_peak - report.own_peak, report.own_duration / own.duration - 1 if own.duration else 0.0,
                                          again_in(program.runs, program.graph)))
    _with_own(report, program, own)


def _gathers_again(planned: Schedule) -> bool:
    """Does a plan run an all-gather twice?"""
    program = planned.program
    assert isinstance(program, Program), "as the one that was planned"
    gathering = [op for op in planned.ops if (node := program.runs[op].node) is not None and gathers(node.target)]
    return len(set(gathering)) < len(gathering)


def _check_all_are_updated(program: Program, trained: set[int]) -> None:
    """Raises UnknownParameter for a parameter that the loss depends on and no optimizer knows: a whole step hands out no
    gradient, so the parameter would stay as it is."""
    updated = updated_inputs(program)
    missing = [program.labels.get(i, f"input {i}") for i in with_gradient(program, trained) if i not in updated]
    if missing:
        raise UnknownParameter("step: " + ("no optimizer knows " if program.updates is not None else "the optimizers know none of "
                               "the parameters that the loss depends on: ") + some(missing) + ". Give step a list of "
                               "optimizers that know all of them, step(model, [first, second], ...), or freeze what is "
                               "not to be trained (requires_grad_(False))")
