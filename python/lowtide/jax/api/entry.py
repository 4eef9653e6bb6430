"""`optimize`: a training step that keeps a budget, in place of jax.jit(step)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax

from ...frontend import progress
from ...frontend.errors import CaptureError
from ...frontend.options import PlannerOptions
from ...frontend.planning.report import publish
from ...frontend.techniques import Techniques
from ..compat import copied, is_tracer
from ..emission.op_by_op import OpByOp
from ..program.price import pricing
from ..program.program import program_of
from ..settings import Settings, sheet_of
from ..tracing.step import Caller, Traced
from .report import StepReport, compared
from .within import Planned, planned_within


def optimize(step: Callable[..., Any], *args: Any, budget: int | str, techniques: Techniques | None = None, exact: bool = False,
             kwargs: Mapping[str, Any] | None = None, static_argnums: Any = None, static_argnames: Any = None,
             donate_argnums: Any = None, donate_argnames: Any = None, **options: Any) -> OptimizedStep:
    """A function that is used in place of jax.jit(step), and takes at most `budget` bytes.

    It is planned for the shapes and types of its arguments: those of `args` and `kwargs` at once, others at their first call,
    as jax.jit compiles.  Without `args` nothing is planned before the first call.

    step: a function of a whole training step: loss, gradients and updates.  args, kwargs: its arguments, or ShapeDtypeStructs.
    budget: the most bytes that XLA's code may take: temporaries, arguments and outputs, less what they share; an int, "12GiB",
        or a share of what jax.jit(step) takes ("60%"; "act:50%": the arguments, and half of the rest).
    techniques: those that plans may use: "recompute", "in_place", "offload".  By default all; "offload" on GPU and TPU alone.
    exact: run op by op; the bytes held are the plan's.  Slower, and without XLA's fusions.  A share is then one of the peak
        without a plan.
    static_argnums, static_argnames, donate_argnums, donate_argnames: as for jax.jit.
    options: those of the planner: order, time, work, seed, threads, solver, solver_options, costs, link, host_budget, progress.
        costs: "auto" (the data sheet of the device), "measured" (each op is timed here), "flops", or a device's name.

    Raises BudgetError, which names the smallest total reached; CaptureError for a step that cannot be traced; ValueError or
    TypeError for wrong options.
    """
    statics = {"static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
               "donate_argnames": donate_argnames}
    caller = Caller(step, statics)
    unknown = sorted(options.keys() - PlannerOptions.__annotations__.keys())
    if unknown:
        raise TypeError(f"optimize has no option {unknown[0]!r}; it has {', '.join(sorted(PlannerOptions.__annotations__))}")
    settings = Settings(budget, techniques=techniques, exact=exact, platform=_platform(args, kwargs), **options)
    optimized = OptimizedStep(caller, settings)
    if args or kwargs:
        optimized.plan(*args, **(kwargs or {}))
    return optimized


def _platform(args: Any, kwargs: Any) -> str:
    for leaf in jax.tree.leaves((args, kwargs)):
        sharding = getattr(leaf, "sharding", None)
        if sharding is not None:
            return next(iter(sharding.device_set)).platform
    return jax.default_backend()


class OptimizedStep:
    """The planned step: called like the step itself.  reports: the plan of each signature so far."""

    def __init__(self, caller: Caller, settings: Settings) -> None:
        self._caller, self._settings = caller, settings
        self._planned: dict[Hashable, tuple[Planned, Traced]] = {}
        self._looked: set[Hashable] = set()
        functools.update_wrapper(self, caller.step, updated=())

    @property
    def reports(self) -> list[StepReport]:
        return [planned.report for planned, _ in self._planned.values()]

    @property
    def report(self) -> StepReport:
        """Of the latest signature."""
        if not self._planned:
            raise LookupError(f"{self._caller.name} has no plan yet: it is planned at its first call, or by plan(...)")
        return self.reports[-1]

    @property
    def held(self) -> int | None:
        """Of a step that runs op by op: the most bytes of arrays that its latest call has held at once; otherwise None."""
        for planned, _ in reversed(self._planned.values()):
            if isinstance(planned.call, OpByOp):
                return planned.call.held
        return None

    def plan(self, *args: Any, **kwargs: Any) -> StepReport:
        """The report of the plan for these arguments, made now if there is none yet."""
        _, key = self._caller.split(args, kwargs)
        return self._for(key, args, kwargs)[0].report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, key = self._caller.split(args, kwargs)
        if any(map(is_tracer, leaves)):
            raise CaptureError(f"{self._caller.name} is planned as a whole step: call it outside of jit, grad, vmap and the like")
        planned, traced = self._for(key, args, kwargs)
        first = key not in self._looked
        given = _copies(leaves, traced) if first else []
        results = planned.call(*leaves)
        if first:
            self._looked.add(key)
            self._look(planned, traced, given, results)
        return jax.tree.unflatten(traced.result, results)

    def _for(self, key: Hashable, args: Any, kwargs: Any) -> tuple[Planned, Traced]:
        if key not in self._planned:
            with progress.line():
                progress.stage(f"tracing {self._caller.name}")
                traced = self._caller.trace(args, kwargs)
                price = pricing(self._settings.costs, sheet_of(traced.device))
                in_place = "in_place" in self._settings.techniques
                exact = self._settings.exact
                program = program_of(traced.flat, price, self._caller.name, in_place, exact, outputs_from_start=not exact)
                planned = planned_within(traced, program, price, self._settings)
            publish(planned.report, None)
            self._planned[key] = planned, traced
        return self._planned[key]

    def _look(self, planned: Planned, traced: Traced, given: list[Any], results: Any) -> None:
        """Compare the results of the first call with those of jax.jit."""
        if planned.call is planned.plain.call:
            planned.report.bits = "runs as jax.jit without a plan, which keeps the budget"
        elif any(equation.effects for equation in traced.flat.equations):
            planned.report.bits = "results not compared with jax.jit's: the step has effects, which happen once"
        elif traced.device.platform != "cpu":
            planned.report.bits = "results not compared with jax.jit's, which might not fit the device"
        else:
            planned.report.bits = compared(results, planned.plain.call(*given), traced.result_names)


def _copies(leaves: list[Any], traced: Traced) -> list[Any]:
    """The arguments for a second run, copied where the first one may overwrite them."""
    return [copied(leaf) if given_up else leaf for leaf, given_up in zip(leaves, traced.flat.donated, strict=True)]
