"""Plans the computation of a neural network within a memory budget.

    graph = lowtide.Graph.load("resnet50.graph.json.gz")
    outcome = lowtide.plan(graph, "60%")
    outcome.save("resnet50.plan.json")

Bytes and ticks are int, shares and overheads are fractions. Bad input raises `Error`; every result of a
search is an `Outcome`, never an exception. `lowtide.torch`, `lowtide.jax` and `lowtide.onnx` are loaded at
their first use.
"""

from __future__ import annotations

from lowtide import _core, _engines
from lowtide._core import (
    Block,
    BlockBudget,
    Context,
    Cost,
    Curve,
    CurveProgress,
    Device,
    Error,
    Fit,
    FitProgress,
    Footprint,
    Graph,
    Incumbent,
    InternalError,
    ModelClaim,
    Op,
    Option,
    Outcome,
    Part,
    Placement,
    Plan,
    PlanError,
    Problem,
    Progress,
    RepeatedBlock,
    Tensor,
    Timeline,
    WrongGraphError,
    __version__,
    apply,
    costs_of,
    curve,
    devices,
    fit,
    footprint,
    generate,
    own_plan,
    partition,
    place,
    plan,
    plan_allocations,
    priced_on,
    register_solver,
    replay_allocations,
    report_html,
    report_text,
    save_snapshot,
    save_trace,
    simulate,
    solvers,
    transform,
    verify,
)

__all__ = [
    "Block", "BlockBudget", "Context", "Cost", "Curve", "CurveProgress", "Device", "Error", "Fit", "FitProgress",
    "Footprint", "Graph", "Incumbent", "InternalError", "ModelClaim", "Op", "Option", "Outcome", "Part", "Plan",
    "Placement", "PlanError", "Problem", "Progress", "RepeatedBlock", "Tensor", "Timeline", "WrongGraphError", "__version__",
    "apply", "costs_of", "curve", "devices", "fit", "footprint", "generate", "own_plan", "partition", "place", "plan",
    "plan_allocations", "priced_on", "register_solver", "replay_allocations", "report_html", "report_text", "save_snapshot",
    "save_trace", "simulate", "solvers", "sweep", "transform", "verify",
]

_core._offer_engines(*_engines.paths())
del _core, _engines

TYPE_CHECKING = False  # for type checkers it is true, and typing takes time to load
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor
    from typing import Any


def sweep(grid: str | os.PathLike[str] | Mapping[str, Any], *, results: str | os.PathLike[str] | None = None,
          scheduler: str | Executor | None = None, workers: int | None = None,
          progress: Callable[[int, int], object] | None = None) -> Any:
    """Plans every combination of graphs, budgets and settings; goes on where an earlier call was stopped.

    grid: a sweep file, or a dict with the same keys: the arguments of `plan`, each with one value or a list of values.
        `graph` may also be Graphs, or a dict from names to Graphs.
    results: a file to which each result is written when it is there.  What it has already is not planned again.
    scheduler: "processes" of this machine, "ray", or a concurrent.futures.Executor.  By default Ray's cluster if this process
        is connected to one, else processes.
    workers: the most plans at the same time; all cores by default.
    progress: called with the numbers of tasks done and of all.  By default a line on a terminal shows them.

    Returns an object with `rows`, `errors`, `complete`, `to_csv()`; its text is a table.
    """
    import importlib

    module = importlib.import_module("lowtide.sweeps.sweep")
    return module.sweep(grid, results=results, scheduler=scheduler, workers=workers, progress=progress)


# Tracebacks and pickles call them by the names that users know.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = "lowtide"
del _name

if not TYPE_CHECKING:  # to a type checker it would say that there is every name

    def __getattr__(name):
        if name in ("torch", "jax", "onnx"):
            import importlib

            return importlib.import_module(f"lowtide.{name}")
        raise AttributeError(f"module 'lowtide' has no attribute '{name}'")


del TYPE_CHECKING
