"""A region's joint graph -> what it computes by its plan: lowered, constrained by what others hold, planned."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.nn.parallel import DistributedDataParallel

import lowtide

from ...frontend.errors import BudgetError, CaptureError, LowtideWarning, some
from ...frontend.planning.constraints import Constraints
from ...frontend.planning.planner import plan_program
from ...frontend.planning.report import Report, Technique, publish
from ...frontend.planning.schedule import Schedule, schedule
from ...frontend.planning.sharing import RegionToPlan
from ...frontend.techniques import TRANSFORMS
from ..device.meter import bytes_held
from ..pricing.costs import pricing
from ..pricing.remembered import Remembered
from ..program.lowering import lower
from ..program.lowerings.update import Updates
from ..program.program import Program, made_gradient_bytes, updated_inputs, with_gradient
from ..runtime.guess import Guess
from ..settings import Settings
from ..step_errors import UnknownParameter
from ..tensors.operators import is_marked, leaves
from ..tensors.storages import gradient_bytes, storages, trained_arguments
from ..tracing.against_eager import differences
from ..tracing.open_sizes import OpenSizes
from ..tracing.origins import labels_of
from ..tracing.training_step import joint_graph
from ..transforms.computed_again import again_in, as_backward, with_computed_again
from ..transforms.plannable import PlannableProgram
from ..transforms.whole import in_one_call
from .group import Group
from .near_sizes import AtSizes, NearSizes
from .records import RegionRecord
from .watch import MARKS, TOGETHER, RegionWatch, buckets

_LITTLE = 0.05  # of overhead, within which no other way is looked for


class RegionPlanner:
    """Plans one region, each time that it is compiled.

    record: where it notes what it found.  find: a number under which the group plans the region later, with others;
    None: it is planned at once.  watch: for what others hold beside the latest plan; None where there is none.  updates:
    what makes its updates, if the backward is to make them.  near: the latest plan at other sizes, if these are open.
    """

    def __init__(self, settings: Settings, group: Group, record: RegionRecord, find: int | None) -> None:
        self._settings, self._group, self._record, self._find = settings, group, record, find
        self._price: Remembered | None = None
        self.watch: RegionWatch | None = None
        self.updates = group.updates(settings)
        self.near: NearSizes | None = None
        self.kept_within: int | None = None  # the smallest budget of a plan that reads nothing that others may write to
        self.written: set[int] = set()  # inputs that others were seen to write to between forward and backward
        self.written_results: set[int] = set()  # the same of results
        self._guess: Guess | None = None  # whose code finds it as long as somebody holds it

    def plan(self, gm: fx.GraphModule, inputs: list[Any], joint: fx.GraphModule, num_fwd_outputs: int,
             trains: bool, sizes: OpenSizes | None = None) -> Schedule | None:
        """The schedule of a joint graph's program; None for a region that is planned later.

        gm, inputs: what the joint graph was traced from.  trains: has it a backward?  sizes: that are open in it.  Raises
        CaptureError and BudgetError.
        """
        record, group = self._record, self._group
        self.near = None
        record.trains = trains
        tensors = [t for n in joint.graph.find_nodes(op="placeholder") for t in leaves(n.meta.get("val"))]
        device = next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))
        settings = self._settings.on(device)
        if self._price is None:
            self._price = Remembered(pricing(settings.costs, device, real=True))
            self._part_price = Remembered(pricing(settings.costs, device, real=True))
        trained = trained_arguments(inputs)
        traced = differences(gm, joint)
        program = self._lowered(gm, inputs, joint, num_fwd_outputs, trains, settings, device)
        taken = updated_inputs(program) if program.updates is not None else []
        record.updated = storages(inputs[i] for i in taken)
        if self.updates:
            self.updates.slots = {i: inputs[i] for i in taken}
            self.updates.homes = list(program.homes().values())
        if any(map(is_marked, joint.graph.nodes)):
            self._say_once("marks", MARKS)
        if group.options is not None:  # or the model is known, and what stands in for results of other regions is none of it
            group.train(inputs)
        to_plan = group.enter(settings, program, device, inputs, made_gradient_bytes(program, trained),
                              record.updated, self._find is not None)
        if self._find is not None:
            group.to_plan[self._find] = to_plan
            return None
        agreed = record.assignment
        known = group.assignments.get(to_plan.key) if group.assignments else None
        if agreed or known:
            record.to_plan = record.to_plan or to_plan
            agreed = agreed or known
            constraints, budget, start = agreed.constraints, agreed.budget, agreed.start
        else:
            constraints = group.constraints(to_plan, inputs, not trains or device.type != "cpu")
            budget, start = group.bytes_of(trains), None
            if budget is None and not trains and "%" in str(settings.budget):
                budget = self._share_of_training(gm, inputs, program, to_plan, device)
            record.to_plan = to_plan
        if settings.inner == "eager" and settings.techniques & TRANSFORMS and not constraints.alone:
            self._say_once("together", TOGETHER)
        record.leaves = storages(inputs[i] for i in with_gradient(program, trained))
        same = None if agreed or settings.techniques & TRANSFORMS else group.same(record, program, constraints)
        if same:  # but for a number that the tracer took for a constant
            record.report, record.constraints = same.report, constraints
            record.steps, record.place = same.steps, same.place
            self._tell(same.report)
            self.watch = self._watch_for(inputs, same.report, constraints.saved_earlier, device)
            return schedule(program, same.steps)

        def again() -> Program | None:
            try:
                made = with_computed_again(joint) if trains and not sizes else None
                return made and as_backward(self._lowered(gm, inputs, made, num_fwd_outputs, trains, settings, device))
            except Exception:  # noqa: BLE001: what nobody has foreseen is no reason against the plan of the graph as it is
                return None

        try:
            planned, report = self._planned(program if not agreed or agreed.keeps else program.without_kept(), settings,
                                            constraints, budget, start, again)
        except BudgetError as error:
            # the forwards that wait were planned before this one was known: from the next step on it is different
            if agreed or not constraints.saved_earlier or not error.smallest:
                raise
            planned, report = self._planned(program, settings, constraints, error.smallest, None, again)
            report.budget = error.budget
        record.report, record.constraints, record.steps, record.assignment = report, constraints, planned.steps, None
        report.updated, report.outside = len(taken), group.outside.count
        report.exactness = replace(report.exactness, traced=traced)
        self._tell(report)
        self.watch = self._watch_for(inputs, report, constraints.saved_earlier, device)
        is_shared = any(r is not record and r.place == record.place for r in group.regions)
        record.place = publish(report, None if is_shared else record.place)
        self._guess = planned.program.guess
        if sizes:
            self.near = NearSizes(planned, sizes, constraints, settings.budget if budget is None else budget, report)
        return planned

    def _lowered(self, gm: fx.GraphModule, inputs: list[Any], joint: fx.GraphModule, num_fwd_outputs: int, trains: bool,
                 settings: Settings, device: torch.device) -> PlannableProgram:
        """The program of a joint graph of these."""
        trained = trained_arguments(inputs)
        program = lower(joint, num_fwd_outputs, self._price, f"region {self._record.number}",
                        replays=settings.inner == "eager", trained=trained, techniques=settings.techniques,
                        updates=self._updates(inputs, trained, device) if trains else None,
                        changing=self.changing(inputs) if trains and not settings.whole else (),
                        results=self.written_results)
        reason = getattr(gm, "compile_subgraph_reason", None)
        if reason and reason.graph_break:  # a later region of the model may write to them, in every step
            program.kept = ()
        program.labels = {i: label.removeprefix("model.") if settings.whole else label for i, label in labels_of(gm).items()}
        if settings.whole and trains:
            _check_all_are_updated(program, trained)
            program = in_one_call(program)
        return PlannableProgram.of(program, price=self._part_price, loss_scale=settings.loss_scale,
                                   fused=settings.inner != "eager")

    def _planned(self, program: PlannableProgram, settings: Settings, constraints: Constraints, budget: int | None, start: Any,
                 again: Callable[[], PlannableProgram | None]) -> tuple[Schedule, Report]:
        """The plan of a program.  again: the program of the same step whose backward computes the largest results of the
        forward for itself (computed_again.py), which is planned where this one's plan does not keep the budget or takes long.

        Raises BudgetError.
        """
        refused = None
        try:
            planned, report = self._plan(program, settings, constraints, budget, start)
            if report.overhead <= _LITTLE or not report.transforms:
                return planned, report
        except BudgetError as error:
            refused, planned, report = error, None, None
        other = again() if settings.inner == "eager" and "split" in settings.techniques and constraints.alone else None
        if other is None:
            if refused:
                raise refused
            return planned, report
        try:
            schedule_, found = self._plan(other, settings, constraints, refused.budget if refused else report.budget)
        except BudgetError as error:
            if refused:
                raise min(refused, error, key=lambda e: e.smallest or math.inf) from None
            return planned, report
        if report is not None and found.duration >= report.duration:
            return planned, report
        own = constraints.graph(program)
        found.techniques.insert(0, Technique("recompute", "the largest results of the forward computed by the backward for itself",
                                             own.own_peak - found.own_peak, found.own_duration / own.duration - 1 if own.duration else 0.0,
                                             again_in(other.runs, other.graph)))
        found.own_peak, found.own_duration, found.ops = own.own_peak, own.duration, own.num_ops
        return schedule_, found

    def _plan(self, program: PlannableProgram, settings: Settings, constraints: Constraints, budget: int | None,
              start: Any = None) -> tuple[Schedule, Report]:
        """The schedule and the report of a plan that reads nothing in its backward that somebody may write to before it;
        where no such plan keeps the budget, of one that does (written.py looks whether somebody has)."""
        try:
            return plan_program(program, settings, constraints, budget, start)
        except BudgetError as error:
            if not program.kept:
                raise
            self.kept_within = error.smallest
        return plan_program(program.without_kept(), settings, constraints, budget, start)

    def changing(self, inputs: list[Any]) -> set[int]:
        """Which inputs others may write to between forward and backward: all but parameters, which whoever trains leaves
        alone until the backward has run, as far as nobody was seen to write to them."""
        return {i for i, value in enumerate(inputs)
                if isinstance(value, torch.Tensor) and (i in self.written or not isinstance(value, torch.nn.Parameter))}

    def meet(self, there: AtSizes) -> None:
        """The region runs at sizes at which it takes that; its record keeps the most."""
        record, report = self._record, there.report
        if report.peak > record.report.peak and record.to_plan:
            record.to_plan = replace(record.to_plan, program=there.program)
        most = {name: max(getattr(record.report, name), getattr(report, name))
                for name in ("peak", "early_peak", "late_peak", "between", "saved", "inputs", "budget", "own_peak")}
        for name, value in most.items():
            setattr(record.report, name, value)
        if self.watch:
            self.watch.grow(record.report.peak, record.report.between, record.report.budget)

    def _watch_for(self, inputs: list[Any], report: Report, saved_earlier: int, device: torch.device) -> RegionWatch:
        """saved_earlier: bytes of earlier forwards that the plan counts, unless a reserve takes their place."""
        shared, reserve = bool(self._group.assignments), self._settings.reserve
        allocator = device.type != "cpu" and reserve is None
        counted = saved_earlier if shared or reserve is None else 0
        standing = gradient_bytes(inputs)
        counted += reserve or (standing + buckets(standing) if allocator else 0)
        base = self._settings.standing(bytes_held(leaves(inputs)), device) - counted
        if not shared and not allocator and reserve is None:
            base += saved_earlier
        return RegionWatch(self._group.watch, (report.peak, report.between, report.budget), counted=counted,
                           saved_earlier=saved_earlier, base=base, reserved=reserve is not None, allocator=allocator)

    def _say_once(self, cause: str, words: str) -> None:
        """A warning that comes once for each model."""
        if cause not in self._group.watch.causes:
            self._group.watch.causes.add(cause)
            warnings.warn(f"lowtide: {words}", LowtideWarning, stacklevel=3)

    def _tell(self, report: Report) -> None:
        """The updates, what the plan takes."""
        if self.updates:
            self.updates.peak, self.updates.budget = report.peak, report.budget

    def _updates(self, inputs: list[Any], trained: set[int], device: torch.device) -> Updates | None:
        """The updates of a region with these inputs, if its backward is to make them.  Raises CaptureError."""
        if self.updates is None:
            return None
        if DistributedDataParallel._get_active_ddp_module() is not None:
            raise CaptureError("update='backward' within DistributedDataParallel: gradients are averaged over the ranks when "
                               "the backward has made them, and updates would come before; use update='step'")
        rules = self.updates.rules(inputs, sorted(trained), self._settings.state_home)
        return Updates(rules, device.type != "cpu", self.updates.key) if rules.of else None

    def _share_of_training(self, gm: fx.GraphModule, inputs: list[Any], alone: Program, to_plan: RegionToPlan,
                           device: torch.device) -> int | None:
        """The budget in bytes of the training step that a forward without a backward is a part of, if it is."""
        traced = joint_graph(gm, inputs)
        if traced is None:
            return None
        joint, num_fwd_outputs = traced
        trained = trained_arguments(inputs)
        try:
            program = lower(joint, num_fwd_outputs, pricing(self._settings.costs, device, real=True),
                            alone.graph["name"], trained=trained, techniques=self._settings.on(device).techniques,
                            updates=self._updates(inputs, trained, device))
        except CaptureError:
            return None
        graph = lowtide.Graph.from_dict(program.graph | {"resident_bytes": to_plan.resident})
        return lowtide.Problem(graph, self._settings.budget).budget


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
