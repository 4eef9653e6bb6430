"""The captured graphs of one model: the memory that each leaves to others, and when they are planned together.

With `optimize` and inputs all graphs are found before the first step (`share_budget`).  Otherwise each is planned at its first
call, beside the memory that others hold then, and the record of calls (calls.py) shows what else they hold.  If a step exceeds
the budget, it gives a warning.  Before the next step all graphs of that step, and those that share a graph with it, are
planned together (together.py), and compiled again at their next call.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ...frontend.errors import BudgetError, OverBudgetWarning, size_text
from ...frontend.planning.constraints import Constraints, given_bytes
from ...frontend.planning.sharing import Assignment, GraphToPlan, one_after_another, share_budget, signature
from ...frontend.program import Program
from ..device.meter import bytes_held
from ..optimizer.graph_updates import GraphUpdates
from ..optimizer.updater import Updater
from ..ranks.buckets import Buckets
from ..ranks.one_plan import OnePlan
from ..ranks.together import several_ranks
from ..settings import Settings
from ..tensors.storages import Sizes, device_among, gradients_by_leaf, is_trained, storages
from .accounts import Accounts, saved
from .calls import Calls
from .inner import Choice
from .joint_plans import MOST_PLANS, plan_together
from .outside_gradients import OutsideGradients
from .over_budget import Cause, OverBudget
from .records import GraphRecord, ObservedPass
from .sharded_blocks import ShardedBlocks, blocks_around
from .sharded_step import ShardedStep
from .watch import ModelWatch


@dataclass
class Group:
    """The graphs of one model.

    trained: storages of parameters that the optimizer keeps a state for, with their bytes.  held: bytes of the
    model and of its inputs, where a graph's own do not tell (on a CPU).  options: kept because its id says which
    model a graph is of.

    to_plan: graphs that were compiled to be planned later, by number.  order: the numbers in the order of one
    forward's calls; a graph may run more than once.  assignments: by the hash of a captured graph.  budget: in
    bytes, once it is shared.  stands_for: the model's buffers by the ids of their copies, while a copy is rehearsed.
    copied: bytes of these copies, and of copies of the inputs, which stand beside the originals until the rehearsal is over.

    sharded: the step of a model under FSDP2, or its blocks, if it is one.  unit, code: the module whose graph is compiled now,
    and the code that was traced.
    predecessor: the assignment of the graph in whose place the one that is compiled now runs, if it has none of its own.
    primed: has a block been taken before the first step?

    calls: what has run.  buckets: those of DistributedDataParallel.  ranks: what several ranks agree upon, while they plan
    together.  planning: the block within which they do, for plans after those of `optimize`.  gathers_again: does a plan of all
    ranks run an all-gather twice, so that they have to make all later plans together?  inner: the kernels that were chosen for a
    graph, by the graph.
    """

    trained: dict[int, int] = field(default_factory=dict)
    held: int = 0
    options: Any = None
    to_plan: dict[int, GraphToPlan] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    assignments: dict[str, Assignment] = field(default_factory=dict)
    budget: int | None = None
    sharded: ShardedStep | ShardedBlocks | None = None
    unit: torch.nn.Module | None = None
    code: Any = None
    predecessor: Assignment | None = None
    stands_for: dict[int, torch.Tensor] = field(default_factory=dict)
    copied: int = 0
    primed: bool = False
    buckets: Buckets = field(default_factory=Buckets)
    ranks: OnePlan | None = None
    planning: Callable[[], AbstractContextManager[OnePlan | None]] = nullcontext
    gathers_again: bool = False
    calls: Calls = field(default_factory=Calls)
    captured_graphs: list[GraphRecord] = field(default_factory=list)
    watch: ModelWatch = field(default_factory=ModelWatch)
    lock: Any = field(default_factory=threading.RLock)  # never held while kernels run
    modules: list[weakref.ref[torch.nn.Module]] = field(default_factory=list)
    accounts: Accounts = field(init=False)
    over_budget: OverBudget = field(default_factory=OverBudget)
    outside: OutsideGradients = field(init=False)
    inner: dict[str, Choice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.accounts = Accounts(self.calls, self.captured_graphs)
        self.outside = OutsideGradients(self.captured_graphs)

    def train(self, tensors: Iterable[Any]) -> None:
        """Note which of these tensors the optimizer keeps a state for."""
        self.trained |= storages(t for t in tensors if is_trained(t))

    def updates(self, settings: Settings) -> GraphUpdates | None:
        """The updates of a graph, if its backward makes them."""
        if settings.update != "backward":
            return None
        return GraphUpdates(tuple(map(Updater.of, settings.optimizers)))

    def limited(self, settings: Settings) -> Settings:
        """The settings for plans that are made now.  A rank that plans alone searches by work, so that equal graphs get equal plans on
        all ranks."""
        return settings.by_work() if self.ranks is None and several_ranks() else settings

    def share_budget(self, settings: Settings) -> None:
        """Share the budget among the graphs found, for each of their calls.  Raises BudgetError."""
        settings = self.limited(settings)
        if isinstance(self.sharded, ShardedStep):
            passes, between = self.sharded.passes(self.to_plan)
            self.assignments = share_budget(passes, settings.budget, settings.order, self.sharded.fixed, settings.terms_of, between=between,
                                            limits=settings.sharing_limits)
        else:
            self.assignments = self._shared(settings)
        self.budget = next(iter(self.assignments.values())).budget

    def take(self, shares: dict[int, Assignment]) -> None:
        """The shares of the graphs found, by number, as another rank has found them."""
        self.assignments = {self.to_plan[number].key: assignment for number, assignment in shares.items()}
        self.budget = next(iter(self.assignments.values())).budget

    def _shared(self, settings: Settings) -> dict[str, Assignment]:
        """The terms of graphs that run one after another, the same on all ranks that plan together."""
        calls = [self.to_plan[number] for number in self.order if number in self.to_plan] or list(self.to_plan.values())

        def share(calls: list[GraphToPlan], held: int, budget: int | str) -> dict[str, Assignment]:
            return share_budget(one_after_another(calls, held), budget, settings.order, held, settings.terms_of, limits=settings.sharing_limits)

        shared = share if self.ranks is None else functools.partial(self.ranks.shared, share)
        return shared(calls, self.held, settings.budget)

    # ---- when a graph is planned

    def enter(self, settings: Settings, program: Program, device: torch.device, inputs: list[Any],
              gradients: int, updated: Sizes, find: bool) -> GraphToPlan:
        """A graph that is compiled now, and updates these parameters; find: to be planned with all others before
        anything runs."""
        if self.sharded is not None:
            reserved, covers = settings.reserved or 0, 0
            if isinstance(self.sharded, ShardedBlocks) and self.unit is None:
                covers = min(reserved, self.sharded.made_outside(inputs))  # a reserve counts what code outside of the blocks makes
            return GraphToPlan(program, reserved, gradients, covers)
        self.accounts.is_share = self.budget is None and "%" in str(settings.budget)
        given, state = bytes_held(inputs), settings.state(device, self.trained, updated)
        state += self.buckets.beside(device, settings.reserved)
        if find:
            return GraphToPlan(program, settings.standing(given + self.copied, device, program) + state, gradients)
        standing = settings.standing(given + self.copied + self._seen(self._own(inputs), True), device, program)
        # who gives a reserve has counted what is seen to stand; beside graphs that were found together it is more
        covers = standing if settings.reserve is not None and not self.assignments else 0
        return GraphToPlan(program, standing + state, gradients, covers)

    def compiles(self, module: torch.nn.Module, given: Callable[[torch.nn.Module], Iterable[Any]]) -> None:
        """The code of a module is compiled.  given: the arguments of a module that is called now."""
        self.unit = module
        if self.sharded is None:
            self.sharded = blocks_around(module, given)
            if self.sharded is not None:
                self.watch.causes.add("FSDP")  # nothing to say: it is counted

    def meet_block(self, captured: GraphToPlan, inputs: list[Any], settings: Settings) -> None:
        """A graph with these inputs is compiled: if it is of a block under FSDP2 that is compiled by itself, share the budget among
        all of its kind.  Raises BudgetError."""
        blocks, unit = self.sharded, self.unit
        if not isinstance(blocks, ShardedBlocks) or unit is None or captured.key in self.assignments:
            return
        blocks.meet(unit, self.code, captured, inputs)
        self._share_among(blocks, settings, settings.budget)

    def leave_room(self, record: GraphRecord, inputs: list[Any], settings: Settings) -> None:
        """A graph with these inputs does not keep the budget beside what other graphs have saved.  Blocks under FSDP2 leave it room from
        the next step on; other graphs do not."""
        blocks, report = self.sharded, record.report
        if not isinstance(blocks, ShardedBlocks) or self.budget is None or record.to_plan is None or report is None:
            return
        blocks.meet_last(self.code, record.to_plan, inputs)
        try:
            self._share_among(blocks, settings, self.budget)
        except BudgetError as error:
            blocks.forget_last(self.code)
            warnings.warn(f"lowtide: the budget is not kept: {report.name}, which is compiled beside the blocks of this model, takes "
                          f"{size_text(report.peak)} of {size_text(self.budget)} with what stands beside it, and no plan of the blocks "
                          f"leaves it room: {error}", OverBudgetWarning, stacklevel=2)
            return
        record.assignment = self.assignments[record.to_plan.key]

    def _share_among(self, blocks: ShardedBlocks, settings: Settings, budget: int | str) -> None:
        """Share the budget among blocks.  Those that were compiled are compiled again at their next call.  Raises BudgetError."""
        passes, between = blocks.passes()
        self.assignments = share_budget(passes, budget, settings.order, blocks.fixed, settings.terms_of, between=between,
                                        limits=settings.sharing_limits)
        self.budget = next(iter(self.assignments.values())).budget
        self.calls.known.leave_out(blocks.gathered_storages())
        for record in self.captured_graphs:
            if record.to_plan and record.report and record.to_plan.key in self.assignments:
                record.assignment = self.assignments[record.to_plan.key]

    def agreed(self, captured: GraphToPlan, trains: bool) -> Assignment | None:
        """The assignment of a graph; for one that has none, of a step of other sizes, that of the graph in whose place it runs.

        trains: has it a backward?
        """
        found = self.assignments.get(captured.key) if self.assignments else None
        if found is not None or self.predecessor is None:
            return found
        constraints = self.predecessor.constraints
        return Assignment(constraints if trains else Constraints(constraints.resident), self.predecessor.budget, None, self.predecessor.keeps)

    def constraints(self, captured: GraphToPlan, inputs: list[Any], with_gradients: bool) -> Constraints:
        """The constraints of a graph that is planned alone."""
        inputs = self._own(inputs)
        more = max(self.held - given_bytes(captured.program) - self.calls.beside(inputs), 0)
        if isinstance(self.sharded, ShardedBlocks):  # and this is code beside the blocks, such as the loss
            more += self.sharded.at_the_end
        return Constraints(captured.room(more + self._seen(inputs, with_gradients)),
                           saved_earlier=self.calls.waiting_bytes())

    def _own(self, inputs: list[Any]) -> list[Any]:
        """Inputs of a graph, the model's own buffers in the place of copies."""
        return [self.stands_for.get(id(value), value) for value in inputs]

    def _seen(self, inputs: list[Any], with_gradients: bool) -> int:
        """Bytes that are known to stand beside a graph with these inputs."""
        gradients = self.calls.known.gradients() | gradients_by_leaf(inputs) if with_gradients else {}
        return self.calls.waiting_bytes() + self.calls.beside(inputs) + sum(gradients.values())

    def bytes_of(self, trains: bool) -> int | None:
        """The budget in bytes, if it is known before the graph's own graph is; a forward alone has that of the
        training steps."""
        if self.budget is not None or trains:
            return self.budget
        return max((r.report.budget for r in self.captured_graphs if r.report and r.trains), default=None)

    def same(self, captured: GraphRecord, program: Program, constraints: Constraints) -> GraphRecord | None:
        """A graph of the same code that was planned alone, with the same kernels and sizes and under the same
        constraints."""
        return next((r for r in self.captured_graphs if r is not captured and r.report and r.to_plan and not r.plans
                     and r.constraints == constraints and r.trains == captured.trains
                     and signature(r.to_plan.program) == signature(program)), None)

    # ---- while graphs run (a model may run in several threads)

    def belongs_to(self, module: torch.nn.Module) -> None:
        """The code of the model's graphs is that module's; it is looked at when the first step is over."""
        if not any(ref() is module for ref in self.modules):
            self.modules.append(weakref.ref(module))
            self.outside.belongs_to(module)

    def _know_modules(self) -> None:
        for ref in self.modules:
            module = ref()
            if module is not None:
                tensors = [*module.parameters(), *module.buffers()]
                self.calls.know(tensors, tensors)
        self.modules.clear()

    def begin(self, captured: GraphRecord, settings: Settings, args: tuple[Any, ...]) -> None:
        """A forward of it is about to run.  Raises BudgetError if its step can be planned in no way."""
        with self.lock:
            counted = self.buckets.size
            if self.buckets.meet() and self.assignments:
                self._share_with_buckets(settings, args, counted)
            if self.calls.begins(captured):
                self._begin_burst(captured, settings, args)

    @contextlib.contextmanager
    def planning_again(self, settings: Settings) -> Iterator[None]:
        """Within the block the ranks that have planned together do so again, with these settings."""
        with self.planning() as self.ranks:
            try:
                if self.ranks:
                    self.ranks.allow(settings.time)
                yield
            finally:
                self.ranks = None

    def _share_with_buckets(self, settings: Settings, args: tuple[Any, ...], counted: int) -> None:
        """Share the budget again, beside buckets that were not there when the graphs were found.  counted: bytes of buckets that the
        shares count, and after an exception still do: the next call shares the budget again."""
        device = device_among(t for t in args if isinstance(t, torch.Tensor))
        more = self.buckets.beside(device, settings.reserved)
        before = self.to_plan
        self.to_plan = {number: replace(captured, resident=captured.resident + more) for number, captured in before.items()}
        try:
            with self.planning_again(settings):
                self.share_budget(settings)
        except BaseException:
            self.to_plan, self.buckets.size = before, counted
            raise

    def _begin_burst(self, captured: GraphRecord, settings: Settings, args: tuple[Any, ...]) -> None:
        self.accounts.first = captured
        if self.calls.bursts_begun:
            self._know_modules()
        self.watch.held.clear()
        self.watch.counted = len(self.calls.trained) > 1 or isinstance(self.sharded, ShardedStep)
        self._say()
        if self.calls.news and self.sharded is None:
            for pass_, others in plan_together(self.accounts, self.calls, self.trained, self.budget, self.limited(settings), args,
                                               self.buckets, alone=not self.gathers_again):
                self.meet_over_budget(pass_, others)
            self.calls.planned()

    def forward(self, captured: GraphRecord, args: Iterable[Any]) -> None:
        """It runs now."""
        with self.lock:
            self._look(captured, self.calls.forward(captured, args))
            if not captured.trains:  # or more may come that belongs into the same warning, until the backward begins
                self._say()

    def backward(self, captured: GraphRecord, args: list[Any], outside: list[Cause]) -> None:
        """Called when its backward runs.  outside: memory found by the graph's watch."""
        with self.lock:
            to_come, waiting = self.calls.beside_backwards(), self.calls.waiting_bytes()
            self._look(captured, self.calls.backward(captured, args))
            self._say(outside, to_come, waiting)

    def _look(self, captured: GraphRecord, pass_: ObservedPass | None) -> None:
        """Note it if a new pass breaks the budget."""
        if pass_ is None or captured.report is None or captured.assignment or self.sharded is not None:
            return
        others = self.accounts.others(pass_, [*self.calls.step], self.accounts.staying(), {}) + saved(pass_)
        if not self.accounts.fits(pass_, others):
            self.meet_over_budget(pass_, others)

    def meet_over_budget(self, pass_: ObservedPass, others: int) -> None:
        """Record a pass over the budget; the warning is given when all causes are known."""
        more = pass_.captured.plans < MOST_PLANS
        if self.gathers_again:
            outlook = "Its ranks gather parameters again in one order, so no rank plans its graphs again alone."
        elif more:
            outlook = "From the next step on its graphs are planned together."
        else:
            outlook = f"Its graphs were planned together {MOST_PLANS} times, for as many orders of calls, and are not again."
        self.over_budget.meet(self.accounts, pass_, others, outlook)

    def _say(self, outside: Iterable[Cause] = (), to_come: int = 0, waiting: int = 0) -> None:
        said = self.over_budget.say(self.accounts, list(outside), to_come, waiting)
        if said:
            category, words = said
            warnings.warn(words, category, stacklevel=4)
