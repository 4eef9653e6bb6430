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
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .beside import MARKS, Watch, buckets, gradient_storages
from .costs import pricing
from .emit import emit
from .errors import CaptureError, LowtideWarning, OverBudgetWarning, size_text
from .execute import compile_graph
from .inductor import compile_with_inductor
from .lowering import lower
from .operators import is_marked, is_tangent, leaves
from .planning import Report, plan_program
from .settings import Settings
from .sharing import Found, Group, gradient_bytes

_reports: list[Report] = []
_numbers = itertools.count()


def reports() -> list[Report]:
    """What became of the regions that this process compiled, in their order."""
    return list(_reports)


def compile_region(gm: fx.GraphModule, example_inputs: list[Any], settings: Settings, group: Group,
                   number: int | None = None) -> Callable[..., Any]:
    """A function that runs gm on inputs like example_inputs, by plans that keep the budget.

    group: the regions of the same model.  number: enter this one there under that, and plan nothing.
    """
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and is_traceable_wrapper_subclass(value):
            return fall_back(f"an input is a {type(value).__name__}, a subclass of Tensor, which hides the storages "
                              "that a plan counts", settings, gm)
    if any(_is_symbolic(value) for value in example_inputs):
        return _EachShape(gm, settings, group)
    return _Region(settings, group, number).compile(gm, example_inputs)


def fall_back(reason: str, settings: Settings, otherwise: Any) -> Any:
    """`otherwise`, after a warning with the reason; or CaptureError, as the settings say."""
    words = f"this region runs without a plan, so no budget is kept: {reason}"
    if settings.fallback == "error":
        raise CaptureError(words)
    warnings.warn(f"lowtide: {words}", LowtideWarning, stacklevel=3)
    return otherwise


def _warn_of_excess(words: str) -> None:
    warnings.warn(f"lowtide: the budget is not kept: {words}", OverBudgetWarning, stacklevel=3)


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

    def __init__(self, settings: Settings, group: Group, find: int | None = None) -> None:
        self._settings, self._group, self._find = settings, group, find
        self._number = next(_numbers)
        self._inputs: list[Any] = []
        self._handed_out = 0
        self._report: Report | None = None
        self._before = 0  # bytes of other forwards that the plan counts
        self._watch: Watch | None = None  # for what else stands beside the plan

    def compile(self, gm: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self._inputs = list(example_inputs)
        try:
            if self._settings.inner == "inductor":
                return compile_with_inductor(gm, example_inputs, self.partition)
            compiler = aot_autograd(fw_compiler=self._run("forward"), bw_compiler=self._run("backward"),
                                    inference_compiler=self._run("inference"), partition_fn=self.partition)
            return compiler(gm, example_inputs)
        finally:
            self._inputs = []

    def _run(self, side: str) -> Callable[..., Any]:
        def compile_side(module: fx.GraphModule, _: Any) -> Callable[..., Any]:
            run = compile_graph(module, f"region {self._number} {side}")
            if side == "backward":
                return self._watched_backward(run, len(list(filter(is_tangent, module.graph.nodes))))
            return self._watched(run) if side == "forward" else run

        return compile_side

    def _watched_backward(self, run: Callable[..., Any], tangents: int) -> Callable[..., Any]:
        """`run`, after a look at what comes back from the code behind the region."""
        def watched(args: list[Any]) -> Any:
            for category, words in self._watch.backward(args[len(args) - tangents:]) if self._watch else ():
                warnings.warn(f"lowtide: {words}", category, stacklevel=2)
            return run(args)

        watched._boxed_call = True
        return watched

    def _watched(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, after a look at what other forwards have left, and with a note of what it leaves itself."""
        saved = self._group.saved
        largest, size = None, 0  # among its results, and bytes of all that it leaves

        def watched(args: list[Any]) -> Any:
            nonlocal largest, size
            self._check(saved.bytes())
            for category, words in self._watch.forward(args, saved.bytes()) if self._watch else ():
                warnings.warn(f"lowtide: {words}", category, stacklevel=2)
            given = {t.untyped_storage()._cdata for t in args if isinstance(t, torch.Tensor)} if largest is None else ()
            results = run(args)
            if largest is None:
                left = {t.untyped_storage()._cdata: i for i, t in enumerate(results[self._handed_out:], self._handed_out)
                        if isinstance(t, torch.Tensor) and t.untyped_storage()._cdata not in given}
                sizes = {i: results[i].untyped_storage().nbytes() for i in left.values()}
                largest, size = max(sizes, key=sizes.__getitem__, default=-1), sum(sizes.values())
            if size:
                saved.add(results[largest], size)
            return results

        watched._boxed_call = True
        return watched

    def _watch_for(self, report: Report, before: int, device: torch.device) -> Watch:
        """before: bytes of earlier forwards that the plan counts, unless a reserve takes their place."""
        shared, reserve = bool(self._group.shares), self._settings.reserve
        allocator = device.type != "cpu" and reserve is None
        counted = before if shared or reserve is None else 0
        standing = gradient_storages(self._inputs)
        counted += reserve or (standing + buckets(standing) if allocator else 0)
        base = self._settings.told(leaves(self._inputs), device) - counted
        if not shared and not allocator and reserve is None:
            base += before
        return Watch(self._group.said, (report.peak, report.between, report.budget), counted=counted, before=before,
                     base=base, reserved=reserve is not None, allocator=allocator)

    def _check(self, left: int) -> None:
        """Says so, once, if other forwards have left more than the plan has room for."""
        report = self._report
        if report is None or left <= self._before or report.peak + left - self._before <= report.budget:
            return
        peak = report.peak + left - self._before
        self._report = None
        _warn_of_excess(
            f"{size_text(left)} ({left} bytes) of other forwards wait for their backward while this region runs, and "
            f"its plan counts {size_text(self._before)}: the step can take {size_text(peak)} of "
            f"{size_text(report.budget)}. lowtide.torch.optimize with example_inputs plans for all that one forward "
            f"runs; for several forwards before one backward set reserve={left}")

    def partition(self, joint: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int,
                  **rest: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        """What AOTAutograd calls: the forward and backward graphs of the plan."""
        try:
            tensors = [t for n in joint.graph.find_nodes(op="placeholder") for t in leaves(n.meta.get("val"))]
            device = next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))
            price = pricing(self._settings.costs, device, real=True)
            trained = {i for i, t in enumerate(self._inputs) if isinstance(t, torch.Tensor)
                       and t.is_leaf and t.requires_grad}
            program = lower(joint, num_fwd_outputs, price, f"region {self._number}",
                            replays=self._settings.inner == "eager",
                            trained=trained)
            self._handed_out = num_fwd_outputs
            group = self._group
            if "marks" not in group.said.causes and any(map(is_marked, joint.graph.nodes)):
                group.said.causes.add("marks")
                warnings.warn(f"lowtide: {MARKS}", LowtideWarning, stacklevel=2)
            group.train(self._inputs)
            resident = self._settings.resident(leaves(self._inputs), device, group.trained)
            gradients = gradient_bytes(program, trained)
            if self._find is not None:
                group.found[self._find] = Found(program, resident, gradients)
                return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)
            # a GPU's allocator has counted what other forwards left, and who gives a reserve has
            beside = group.beside(program, resident, device.type != "cpu" or self._settings.reserve is not None)
            settled, report = plan_program(program, self._settings, beside, group.budget)
            for earlier, limit, more in group.follow(self._inputs, gradients, device.type == "cpu", report.late_peak,
                                                     report.budget):
                _warn_of_excess(f"an earlier region's backward runs beside {size_text(more)} of this one and can take "
                                f"{size_text(earlier)} of {size_text(limit)}: it was planned before this one was "
                                "known. lowtide.torch.optimize with example_inputs plans all regions together")
            self._report, self._before = report, max(beside.before, self._settings.reserve or 0)
            self._watch = self._watch_for(report, beside.before, device)
        except CaptureError as error:
            parts = default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)
            return fall_back(str(error), self._settings, parts)
        _reports.append(report)
        return emit(program, settled.computes)
