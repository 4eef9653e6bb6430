"""Plans the computation of a neural network within a memory budget.

    graph = lowtide.Graph.load("resnet50.graph.json.gz")
    outcome = lowtide.plan(graph, "60%")
    outcome.save("resnet50.plan.json")

Bytes and ticks are int, shares and overheads are fractions. Bad input raises `Error`; every result of a
search is an `Outcome`, never an exception. `lowtide.torch` and `lowtide.onnx` are loaded at their
first use.
"""

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
    "save_trace", "simulate", "solvers", "transform", "verify",
]

_core._offer_engines(*_engines.paths())
del _core, _engines

# Tracebacks and pickles call them by the names that users know.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = "lowtide"
del _name


TYPE_CHECKING = False  # for type checkers it is true, and typing takes time to load
if not TYPE_CHECKING:  # to a type checker it would say that there is every name

    def __getattr__(name):
        if name in ("torch", "onnx"):
            import importlib

            return importlib.import_module(f"lowtide.{name}")
        raise AttributeError(f"module 'lowtide' has no attribute '{name}'")


del TYPE_CHECKING
