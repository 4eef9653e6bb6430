"""One compiled region: the graph that Dynamo hands over is captured, planned and run by its plan.

AOTAutograd traces forward and backward as one joint graph, without decompositions, and asks us to
part it (`_Region.partition`): there the graph is lowered, planned and emitted.  Both halves then run as
straight-line code (execute.py).  What no plan can run falls back to AOTAutograd's own partition, with a
warning, or fails, as the options say; a budget that cannot be kept fails always.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .costs import pricing
from .emit import emit
from .errors import CaptureError
from .execute import compile_graph
from .inductor import compile_with_inductor
from .lowering import lower
from .operators import leaves
from .planning import Report, plan_program
from .settings import Settings
from .sharing import Group

_reports: list[Report] = []
_numbers = itertools.count()


class LowtideWarning(UserWarning):
    """A region runs without a plan; the text says why."""


def reports() -> list[Report]:
    """What became of the regions that this process compiled, in their order."""
    return list(_reports)


def forget_reports(after: int) -> None:
    """Keep the first `after` reports: the regions of the others are planned anew."""
    del _reports[after:]


def compile_region(gm: fx.GraphModule, example_inputs: list[Any], settings: Settings, group: Group,
                   only_find: bool = False) -> Callable[..., Any]:
    """A function that runs gm on inputs like example_inputs, by plans that keep the budget.

    group: the regions of the same model.  only_find: enter this one there, and plan nothing.
    """
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and is_traceable_wrapper_subclass(value):
            return fall_back(f"an input is a {type(value).__name__}, a subclass of Tensor, which hides the storages "
                              "that a plan counts", settings, gm)
    if any(_is_symbolic(value) for value in example_inputs):
        return _EachShape(gm, settings, group)
    return _Region(settings, group, only_find).compile(gm, example_inputs)


def fall_back(reason: str, settings: Settings, otherwise: Any) -> Any:
    """`otherwise`, after a warning with the reason; or CaptureError, as the settings say."""
    words = f"this region runs without a plan, so no budget is kept: {reason}"
    if settings.fallback == "error":
        raise CaptureError(words)
    warnings.warn(f"lowtide: {words}", LowtideWarning, stacklevel=3)
    return otherwise


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(n, torch.SymInt) and not n.node.is_constant() for n in (*value.shape, *value.stride()))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


class _EachShape:
    """A region whose sizes Dynamo left open: a plan of its own for every size that comes."""

    def __init__(self, gm: fx.GraphModule, settings: Settings, group: Group) -> None:
        self._gm, self._settings, self._group = gm, settings, group
        self._known: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        key = tuple((a.shape, a.stride(), a.dtype, a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args)
        key += (torch.is_grad_enabled(),)
        if key not in self._known:
            self._known[key] = _Region(self._settings, self._group).compile(self._gm, list(args))
        return self._known[key](*args)


class _Region:
    """One graph on its way from Dynamo to running code."""

    def __init__(self, settings: Settings, group: Group, only_find: bool = False) -> None:
        self._settings, self._group, self._only_find = settings, group, only_find
        self._number = next(_numbers)
        self._inputs: list[Any] = []
        self._handed_out = 0

    def compile(self, gm: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self._inputs = list(example_inputs)
        if self._settings.inner == "inductor":
            return compile_with_inductor(gm, example_inputs, self.partition)
        compiler = aot_autograd(fw_compiler=self._run("forward"), bw_compiler=self._run("backward"),
                                inference_compiler=self._run("inference"), partition_fn=self.partition)
        try:
            return compiler(gm, example_inputs)
        finally:
            self._inputs = []

    def _run(self, side: str) -> Callable[..., Any]:
        def compile_side(module: fx.GraphModule, _: Any) -> Callable[..., Any]:
            run = compile_graph(module, f"region {self._number} {side}")
            if side != "forward" or not self._group.watched:
                return run

            def watched(args: list[Any]) -> Any:
                given = {t.untyped_storage()._cdata for t in args if isinstance(t, torch.Tensor)}
                results = run(args)
                left = [t.untyped_storage() for t in results[self._handed_out:] if isinstance(t, torch.Tensor)]
                self._group.saved[self._number] = [StorageWeakRef(s) for s in left if s._cdata not in given]
                return results

            watched._boxed_call = True
            return watched

        return compile_side

    def partition(self, joint: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int,
                  **rest: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        """What AOTAutograd calls: the forward and backward graphs of the plan."""
        try:
            tensors = [t for n in joint.graph.find_nodes(op="placeholder") for t in leaves(n.meta.get("val"))]
            device = next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))
            price = pricing(self._settings.costs, device, real=True)
            program = lower(joint, num_fwd_outputs, price, f"region {self._number}",
                            replays=self._settings.inner == "eager",
                            trained={i for i, t in enumerate(self._inputs) if isinstance(t, torch.Tensor)
                                     and t.is_leaf and t.requires_grad})
            self._handed_out = num_fwd_outputs
            resident = self._settings.resident(leaves(self._inputs), device)
            if device.type == "cpu" and self._settings.reserve is None:
                resident += self._group.saved_now()
            if self._group.finding:
                self._group.found.append((program, resident))
            if self._only_find:
                return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)
            settled, report = plan_program(program, self._settings, self._group.beside(program, resident))
        except CaptureError as error:
            parts = default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)
            return fall_back(str(error), self._settings, parts)
        _reports.append(report)
        return emit(program, settled.computes)
