"""`capture` and `explain`: the graph of a step, and the overhead of each budget; nothing runs, and nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import lowtide

from ...frontend.options import Order, check_order, seconds, whole
from ...frontend.planning.explanation import Explanation, explained
from ...frontend.price import Price
from ...frontend.techniques import Techniques
from ..loops.plan import Loops
from ..program.price import pricing
from ..program.program import Program, program_of
from ..settings import Settings, sheet_of
from ..tracing.step import Caller


def capture(step: Callable[..., Any], *args: Any, costs: str = "auto", kwargs: Mapping[str, Any] | None = None,
            static_argnums: Any = None, static_argnames: Any = None, donate_argnums: Any = None, donate_argnames: Any = None,
            name: str = "") -> lowtide.Graph:
    """The Lowtide graph of a training step.

    An op is a group of equations that XLA fuses; donated arguments may be freed.  The peak is an estimate of XLA's total.

    step, args, kwargs: as for `optimize`.  args may be ShapeDtypeStructs.  costs: "auto" (the data sheet of the arguments'
    device), "flops", "measured" or a device's name.  The others: as for jax.jit.  name: the graph's, for people.

    Raises CaptureError for a step that cannot be traced; ValueError or TypeError for wrong options.
    """
    statics = {"static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
               "donate_argnames": donate_argnames}
    return _captured(Caller(step, statics), args, kwargs or {}, costs, name)[0].graph


def explain(step: Callable[..., Any], *args: Any, costs: str = "auto", kwargs: Mapping[str, Any] | None = None,
            static_argnums: Any = None, static_argnames: Any = None, donate_argnums: Any = None, donate_argnames: Any = None,
            order: Order = "free", points: int = 12, time: float | None = 3.0, techniques: Techniques | None = None,
            show: bool = True) -> Explanation:
    """The overhead of a step for a range of budgets, from the smallest possible one to the peak without a plan.

    Budgets and peaks are the graph's, which estimate XLA's total; `optimize` counts XLA's own.  Where a step scans over layers or
    time, the graph is that with the loops that `optimize` would take for half the peak.  save_html of the result draws the curve.

    step, args, costs and the like: as for `capture`.  order, points, time: as for lowtide.curve.  techniques: as for `optimize`.
    show: also print the explanation.

    Raises CaptureError for a step that cannot be traced; ValueError or TypeError for wrong options.
    """
    check_order(order)
    time, points = seconds(time), whole("points", points, 2, 10_000)
    statics = {"static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
               "donate_argnames": donate_argnames}
    settings = Settings("50%", order=order, techniques=techniques)
    program, price = _captured(Caller(step, statics), args, kwargs or {}, costs, "", outputs_from_start=True)
    program = Loops(program, price, settings).within(program.graph.own_peak // 2)
    terms = settings.planning(True, None)
    found = explained(program.graph, points, "lowtide.jax.Explanation", order=order, time=time, **terms)
    if show:
        print(found)
    return found


def _captured(caller: Caller, args: Any, kwargs: Mapping[str, Any], costs: str, name: str,
              outputs_from_start: bool = False) -> tuple[Program, Price]:
    traced = caller.trace(args, kwargs)
    price = pricing(costs, sheet_of(traced.device))
    return program_of(traced.flat, price, name or f"{caller.name} (JAX)", outputs_from_start=outputs_from_start), price
