"""An ONNX model as a graph, and what can be made of its plans."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import onnx

import lowtide

from ..frontend.options import Options
from ..frontend.planning.kept import kept
from ..frontend.planning.search import Found, refusal
from ..frontend.planning.smallest import Limits, smallest
from ..frontend.roofline import DEVICES
from . import control_flow
from .arena import ALIGNMENT, Arena, arena_of
from .dims import Dims, check_used, flat, inputs
from .emit import emit
from .errors import ModelError
from .in_place import RUNTIMES
from .infer import Scope
from .lower import Lowered, lower
from .read import read

_TECHNIQUES = ("recompute", "in_place")  # that a saved model can follow


class Model:
    """The result of `load`.

    graph: the ops and tensors.  path: of the file.  runtime: whose kernels run in place.  weights: bytes of the parameters, which a
    runtime holds throughout.
    """

    def __init__(self, path: Path, proto: Any, lowered: Lowered, graph: lowtide.Graph, runtime: str) -> None:
        self.path, self.graph, self.runtime = path, graph, runtime
        self.weights = sum(t.bytes for t in graph.tensors if t.role == "parameter")
        self._proto, self._lowered = proto, lowered

    def plan(self, budget: int | str | None = None, **options: Any) -> lowtide.Outcome:
        """A plan within the budget, as of lowtide.plan: the whole peak, weights included; "act:60%" is a share of what is
        neither weights nor inputs.  Without a budget, the plan with the smallest peak that computes nothing twice.

        options: those of lowtide.frontend.Options: order, time, work, seed, threads, techniques and others.  Raises BudgetError.
        """
        asked = Options("100%" if budget is None else budget, **{"time": 3.0, "techniques": _TECHNIQUES, **options})
        limits = Limits(asked.time, asked.work, asked.seed, asked.threads)
        techniques = sorted(asked.techniques)
        if not asked.techniques <= set(_TECHNIQUES):
            raise ModelError(f"a planned model can follow the techniques {' and '.join(_TECHNIQUES)} alone, not "
                             f"{', '.join(sorted(asked.techniques - set(_TECHNIQUES)))}; lowtide.plan takes its graph with others")
        if budget is None:
            techniques = ["in_place"]
        return kept(self.graph, asked.order, techniques, (budget and asked.budget, asked.plan_key()),
                    lambda: self._searched(budget is None, asked, techniques, limits))

    def _searched(self, leanest: bool, asked: Options, techniques: list[str], limits: Limits) -> lowtide.Outcome:
        """leanest: the smallest peak instead of the budget of the options."""
        if leanest:
            fitting = lowtide.fit(self.graph, "0%", order=asked.order, techniques=techniques, **limits.share(1)).outcome
            assert fitting is not None, "the given order is such a plan"
            return fitting
        problem = lowtide.Problem(self.graph, asked.budget, order=asked.order, techniques=techniques)
        outcome = lowtide.plan(problem, solver=asked.solver, options=dict(asked.solver_options), **limits.share(1))
        if outcome.plan is None:
            found, _ = smallest(self.graph, self.graph.own_peak, asked.order, techniques, limits)
            raise refusal(problem, outcome, None if found is None else Found([], found, found.peak or 0))
        return outcome

    def save(self, path: str | os.PathLike[str], plan: lowtide.Plan | lowtide.Outcome) -> None:
        """Write the model with its nodes in the planned order, and once more for each time that they are computed again.

        A model whose weights lie in other files is written beside those.  Raises ModelError and lowtide.PlanError.
        """
        made = emit(self._proto, self._lowered, self._steps_of(plan).sequence)
        external = any(t.data_location == onnx.TensorProto.EXTERNAL for t in made.graph.initializer)
        if external and Path(path).resolve().parent != self.path.resolve().parent:
            raise ModelError(f"{path}: the weights of {self.path} lie in files beside it, so the planned model has to be written into "
                             f"{self.path.resolve().parent}")
        onnx.save(made, os.fspath(path))

    def place(self, plan: lowtide.Plan | lowtide.Outcome, *, alignment: int = ALIGNMENT, time: float | None = None,
              work: int | None = None) -> Arena:
        """Offsets for all values of a plan in one arena; time and work as of lowtide.place."""
        return arena_of(self.graph, self._lowered, self._steps_of(plan), alignment, time, work)

    def _steps_of(self, plan: lowtide.Plan | lowtide.Outcome) -> lowtide.Plan:
        found = plan.plan if isinstance(plan, lowtide.Outcome) else plan
        if found is None:
            raise ModelError("this outcome has no plan")
        if found.transforms or any(kind in ("offload", "prefetch") for kind, *_ in found.steps):
            raise ModelError("this plan splits ops or copies to the host, which no ONNX model says: plan with the techniques recompute and "
                             "in_place alone")
        lowtide.verify(self.graph, found)
        return found

    def __repr__(self) -> str:
        return f"<lowtide.onnx.Model: {self.path}, {self.graph.num_ops} ops>"


def load(path: str | os.PathLike[str], dims: Dims | None = None, *, runtime: str = "generic", device: str = "cpu",
         free_inputs: bool = False, name: str = "") -> Model:
    """The model of an ONNX file.  Nothing runs, and weights are not read.

    dims: open dimensions, by the name that the model gives them ({"batch": 1}), by value and axis ({"x.0": 1}), or whole shapes
        ({"x": (1, 3, 224, 224)}); of values inside, too, where their extents depend on the data.
    runtime: whose kernels may run in place: "onnxruntime" or "generic" (in_place.py).
    device: whose times are estimated, a name of lowtide.devices().
    free_inputs: may an input's memory be used for other values once it is read?  Otherwise the caller holds it throughout.
    name: the graph's name, for people.

    Raises ModelError for a model that cannot be planned, and OSError for a file that cannot be opened.
    """
    if runtime not in RUNTIMES:
        raise ModelError(f"runtime must be one of {', '.join(RUNTIMES)}, not {runtime!r}")
    if device not in DEVICES:
        raise ModelError(f"device must be one of {', '.join(DEVICES)}, not {device!r}")
    extents = flat(dims)
    proto = read(path)
    scope = Scope(proto, proto.graph, extents)
    try:
        scope.infer(inputs(proto.graph, extents), control_flow.results)
        check_used(extents, proto.graph, scope.values)
        lowered = lower(scope, DEVICES[device], runtime, free_inputs)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    return Model(Path(path), proto, lowered, lowered.builder.finish(name or Path(path).name, lowered.outputs), runtime)
