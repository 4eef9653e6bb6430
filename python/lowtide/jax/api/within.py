"""A traced step and a budget -> the executable that keeps it.

The planner's peak is an estimate of XLA's total, so the total is read of each executable, and the step is planned again for
less where it is over: at most four executables, with jax.jit's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import lowtide

from ...frontend import progress
from ...frontend.errors import BudgetError, size_text
from ...frontend.planning.constraints import Constraints
from ...frontend.planning.planner import plan_program
from ...frontend.planning.report import Report
from ...frontend.planning.schedule import Schedule
from ...frontend.price import Price
from ...frontend.techniques import bytes_of
from ..emission.compiled import Executable, executable_of, lowered
from ..emission.function import planned_function
from ..emission.op_by_op import OpByOp
from ..emission.ties import ties_on
from ..loops.plan import Loops
from ..program.program import Program
from ..settings import Settings
from ..tracing.step import Traced
from .report import StepReport

_COMPILES = 4  # at most, with jax.jit's
_SHARE = 0.3  # of the seconds that compiling without a plan takes: at most those of a plan, unless the caller gave a limit
_GAP = 0.08  # of the plain total: the largest gap in XLA's memory that is expected
_MORE = 0.25  # of what the latest executable took more than its plan, that the next plan leaves free beside it
_SLACK = 0.01  # of the plain total, which a plan leaves free


@dataclass
class Planned:
    """call: runs the step on flat arguments.  plain: the executable of jax.jit(step).  report: of the plan."""

    call: Callable[..., Any]
    plain: Executable
    report: StepReport


def planned_within(traced: Traced, program: Program, price: Price, settings: Settings) -> Planned:
    """program: of the step, with these prices.  Raises BudgetError, which names the smallest total reached."""
    progress.stage("compiling without a plan")
    began = time.perf_counter()
    plain = executable_of(traced.lowered)
    settings = settings.within_seconds(_SHARE * (time.perf_counter() - began))
    plain = replace(plain, call=traced.of_leaves(plain.call))
    budget = budget_in_bytes(settings.budget, plain)
    loops = Loops(program, price, settings)
    if settings.exact:
        return _op_by_op(program, loops, settings, plain)
    attempts = _Attempts(traced, program, loops, settings, plain, budget)
    if plain.total > budget:
        return attempts.run()
    if traced.marked:  # by the caller: the budget may leave room for more than these marks keep
        with contextlib.suppress(BudgetError):
            return attempts.run(most=1)
    return attempts.plain()


def budget_in_bytes(budget: int | str, plain: Executable) -> int:
    """A share is one of XLA's total without a plan; "act:" counts from the arguments on."""
    tensors = [{"name": "arguments", "bytes": plain.arguments, "role": "input", "stays": True},
               {"name": "others", "bytes": plain.total - plain.arguments}]
    graph = lowtide.Graph.from_dict({
        "format": "lowtide-graph", "version": 1, "tick": "ns", "tensors": tensors, "outputs": [1],
        "ops": [{"name": "step", "inputs": [0], "outputs": [1], "time": 1}]})
    return bytes_of(budget, graph)


class _Attempts:
    """Plans and executables, one after another, until one keeps the budget."""

    def __init__(self, traced: Traced, program: Program, loops: Loops, settings: Settings, plain: Executable, budget: int) -> None:
        self._traced, self._program, self._loops, self._settings = traced, program, loops, settings
        self._plain, self._budget = plain, budget
        self._ties = ties_on(settings.platform)
        self._totals = [plain.total]
        self._floor = 0  # the smallest peak that the planner has found; 0: not searched

    def plain(self) -> Planned:
        """What jax.jit makes of the step."""
        _, report = plan_program(self._program, self._settings, Constraints(), self._program.graph.own_peak)
        return self._planned(self._plain, self._program, report)

    def run(self, most: int = _COMPILES - 1) -> Planned:
        slack = int(_SLACK * self._plain.total)
        limit, tried = self._budget - self._gap() - 2 * slack, set()
        for attempt in range(1, most + 1):
            program, schedule, report = self._plan(limit)
            if report.peak in tried:
                break
            tried.add(report.peak)
            executable = self._compile(program, schedule)
            self._totals.append(executable.total)
            if executable.total <= self._budget:
                return self._planned(executable, program, report)
            limit = self._budget - int((1 + attempt * _MORE) * (executable.total - report.peak)) - slack  # each aims lower
        raise self._refusal()

    def _gap(self) -> int:
        """Bytes that XLA's code of a plan takes more than the plan, by estimate: what it takes more without a plan, and at least one
        gap, as large as the largest tensor, in the memory that it lays all temporaries out in."""
        graph = self._program.graph
        largest = max((t.bytes for t in graph.tensors if t.producer is not None), default=0)
        return max(self._plain.total - graph.own_peak, min(largest, int(_GAP * self._plain.total)))

    def _plan(self, limit: int) -> tuple[Program, Schedule, Report]:
        """A plan for this peak, or the smallest that can be found."""
        limit = max(limit, self._floor, 1)
        program = self._loops.within(limit)
        try:
            return program, *plan_program(program, self._settings, Constraints(), limit)
        except BudgetError as error:
            if error.smallest is None or error.smallest >= self._program.graph.own_peak:
                raise self._refusal() from error
            self._floor = error.smallest
            return program, *plan_program(program, self._settings, Constraints(), error.smallest)

    def _compile(self, program: Program, schedule: Schedule) -> Executable:
        progress.stage("compiling with a plan")
        function = planned_function(program, schedule.steps, self._ties)
        return executable_of(lowered(function, self._traced.leaves, self._traced.flat.donated), self._ties.options)

    def _planned(self, executable: Executable, program: Program, report: Report) -> Planned:
        full = _full(report, self._program, self._budget, self._plain, self._totals, executable.total)
        return Planned(executable.call, self._plain, replace(full, loops=program is not self._program))

    def _refusal(self) -> BudgetError:
        least, floor = min(self._totals), self._plain.arguments
        words = (f"no plan was found with which XLA's code of {self._traced.name} takes at most {size_text(self._budget)} "
                 f"({self._budget} bytes): the smallest total reached is {size_text(least)} ({least} bytes), {size_text(self._plain.total)} "
                 f"without a plan, {size_text(floor)} of them arguments, over {len(self._totals)} executables; give a larger "
                 "budget, donate_argnums, or smaller batches")
        return BudgetError(words, floor, least, self._budget)


def _op_by_op(program: Program, loops: Loops, settings: Settings, plain: Executable) -> Planned:
    budget = bytes_of(settings.budget, program.graph)
    chosen = loops.within(budget)
    schedule, report = plan_program(chosen, settings, Constraints(), budget)
    full = _full(report, program, budget, plain, [plain.total], None)
    return Planned(OpByOp(chosen, schedule.steps), plain, replace(full, loops=chosen is not program))


def _full(report: Report, original: Program, budget: int, plain: Executable, totals: list[int], total: int | None) -> StepReport:
    """original: the program of the step with its own loops, of which the overhead is a share."""
    known: dict[str, Any] = {f.name: getattr(report, f.name) for f in fields(Report)}
    known |= {"budget": budget, "own_duration": original.graph.duration, "own_peak": original.graph.own_peak}
    return StepReport(**known, total=total, own_total=plain.total, totals=totals)
