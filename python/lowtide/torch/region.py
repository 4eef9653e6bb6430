"""One compiled region: the graph that Dynamo hands over is captured, planned and run by its plan.

AOTAutograd traces forward and backward as one joint graph, without decompositions, and asks us to
part it (`_Region.partition`): there the graph is lowered, planned and emitted.  Both halves then run as
straight-line code (execute.py).  What no plan can run falls back to AOTAutograd's own partition, with a
warning, or fails, as the options say; a budget that cannot be kept fails always.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import TorchDynamoException
from torch._functorch.partitioners import default_partition
from torch._guards import TracingContext
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

import lowtide

from .beside import MARKS, Watch, buckets
from .calls import Region
from .costs import pricing
from .emit import emit, emit_forward
from .errors import BudgetError, CallerError, CaptureError, LowtideWarning, OverBudgetWarning
from .execute import compile_graph
from .group import Group
from .inductor import compile_with_inductor
from .lowering import lower
from .program import Program
from .meter import bytes_held
from .operators import is_marked, is_tangent, leaves
from .planning import Report, plan_program
from .prices import Remembered
from .scalars import SizeByNumber, Symbols, floats_of, ints_of, numbers_stay, with_sizes, without_items
from .settings import Settings
from .sharing import Found, made_gradient_bytes, with_gradient
from .schedule import schedule
from .storages import gradient_bytes, storages, trained_arguments
from .training_step import joint_graph

__all__ = ["LowtideWarning", "OverBudgetWarning", "compile_region", "fall_back", "reports"]

_SHAPES = 256  # plans that are kept of one region whose sizes or numbers change

_reports: list[Report] = []
_numbers = itertools.count()


def reports() -> list[Report]:
    """What became of the regions that this process compiled, in their order; the latest plan of each."""
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
    if any(_is_symbolic(value) for value in example_inputs) or settings.inner == "eager" and floats_of(gm):
        return _EachShape(gm, settings, group)
    return _Region(settings, group, number).compile(gm, example_inputs)


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
    """A region whose sizes Dynamo left open, or numbers: a plan of its own for every size that comes, and one for
    all values of a number that is none (scalars.py)."""

    def __init__(self, gm: fx.GraphModule, settings: Settings, group: Group) -> None:
        self._settings, self._group = settings, group
        eager = settings.inner == "eager"
        self._floats = floats_of(gm) if eager else []
        self._numbers = {*self._floats, *(ints_of(gm) if eager else ())}
        self._gm = without_items(gm, self._floats) if self._floats else gm
        self._known: dict[Any, list[_Region]] = {}  # the one that was compiled last is the last

    def __call__(self, *args: Any) -> Any:
        if self._floats:
            values = list(args)
            for i in self._floats:
                values[i] = values[i].item()
            args = tuple(values)
        for region in self._known.get(self._key(args), ()):
            if region.serves(args):
                return region(*args)
        return self._compile(args)(*args)

    def _key(self, args: tuple[Any, ...]) -> Any:
        return (tuple((a.shape, a.stride(), a.dtype, a.requires_grad) if isinstance(a, torch.Tensor) else a
                      for i, a in enumerate(args) if i not in self._numbers), torch.is_grad_enabled())

    def _compile(self, args: tuple[Any, ...]) -> _Region:
        while True:
            region = _Region(self._settings, self._group, numbers=sorted(self._numbers))
            try:
                region.compile(self._gm, list(args))
                break
            except SizeByNumber as error:
                self._numbers -= error.at
                self._known.clear()
        self._known.setdefault(self._key(args), []).append(region)
        if sum(map(len, self._known.values())) > _SHAPES:
            oldest = next(iter(self._known))
            self._known[oldest].pop(0).leave()
            if not self._known[oldest]:
                del self._known[oldest]
        return region


class _Region:
    """One graph on its way from Dynamo to running code; compiled anew when its group has planned it with others."""

    def __init__(self, settings: Settings, group: Group, find: int | None = None,
                 numbers: list[int] | None = None) -> None:
        self._settings, self._group, self._find = settings, group, find
        self._symbols = Symbols(numbers) if numbers else None
        self._number = next(_numbers)
        self._gm: Any = None
        self._inputs: list[Any] = []
        self._handed_out = 0
        self._facts = Region(self._number)
        self._compiled: Any = None
        self._lock = threading.Lock()  # held while it is compiled anew
        self._price: Remembered | None = None
        self._watch: Watch | None = None  # for what else stands beside the plan

    def compile(self, gm: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self._gm = gm
        stay = [t for t in example_inputs if _stays(t)]
        self._group.calls.know(stay, stay)
        self._compile(example_inputs)
        if self._find is None:
            self._group.regions.append(self._facts)
        return self

    def leave(self) -> None:
        """It is not called again."""
        if self._facts in self._group.regions:
            self._group.regions.remove(self._facts)

    def serves(self, args: tuple[Any, ...]) -> bool:
        """Was it traced for numbers like these?"""
        return self._symbols is None or self._symbols.hold(args)

    def __call__(self, *args: Any) -> Any:
        group, facts = self._group, self._facts
        if self._settings.inner != "eager":  # who runs its backward does not say so
            return self._compiled(*args)
        group.begin(facts, self._settings, args)
        with self._lock:
            if facts.share:
                self._compile(list(args))
        group.forward(facts, args)
        return self._compiled(*args)

    def _compile(self, example_inputs: list[Any]) -> None:
        self._inputs = list(example_inputs)
        try:
            if self._settings.inner == "inductor":
                self._compiled = compile_with_inductor(self._gm, example_inputs, self.partition)
                return
            compiler = aot_autograd(fw_compiler=self._run("forward"), bw_compiler=self._run("backward"),
                                    inference_compiler=self._run("inference"), partition_fn=self.partition)
            if self._symbols is None:
                self._compiled = compiler(self._gm, example_inputs)
                return
            with numbers_stay():
                gm = with_sizes(self._gm, example_inputs, self._symbols.at)
                self._compiled = compiler(gm, self._symbols.arguments(example_inputs))
            self._symbols.seal()
        except (BudgetError, CaptureError, SizeByNumber, Warning):
            raise
        except CallerError as error:
            raise error.__cause__ from None
        except Exception as error:  # the tracer's, or ours that nobody foresaw: no reason to end a training
            if isinstance(error, TorchDynamoException) and TracingContext.try_get():
                raise  # so the tracer tells itself to begin anew
            line = (str(error).strip().splitlines() or ["no message"])[0]
            self._compiled = fall_back(f"tracing failed with {type(error).__name__}: {line}", self._settings, self._gm)
            self._symbols = None  # as it is the graph serves all values
            self._facts.found = self._facts.report = None
        finally:
            self._inputs = []

    def _run(self, side: str) -> Callable[..., Any]:
        def compile_side(module: fx.GraphModule, _: Any) -> Callable[..., Any]:
            if side == "inference":
                module = self.forward_alone(module)
            run = compile_graph(module, f"region {self._number} {side}")
            if side == "backward":
                return self._taking(run, len(list(filter(is_tangent, module.graph.nodes))))
            return self._leaving(run) if side == "forward" else run

        return compile_side

    def _leaving(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, with a note of what it leaves for its backward."""
        group, facts, handed_out = self._group, self._facts, self._handed_out
        calls = group.calls
        kept, alone, size = None, False, 0  # a storage among its results; bytes of all that it leaves

        def leaving(args: list[Any]) -> Any:
            nonlocal kept, alone, size
            with group.lock:
                said = self._watch.forward(args, calls.waiting_bytes()) if self._watch else ()
            for category, words in said:
                warnings.warn(f"lowtide: {words}", category, stacklevel=2)
            given = storages(args) if kept is None else {}
            results = run(args)
            if kept is None:
                handed = storages(results[:handed_out])
                left = {key: bytes_ for key, bytes_ in storages(results).items() if key not in given}
                size = sum(left.values())
                private = {key: bytes_ for key, bytes_ in left.items() if key not in handed}
                alone = bool(private)
                key = max(private or left, key=left.__getitem__, default=None)
                kept = next((i for i, t in enumerate(results) if key in storages([t])), -1)
            if kept >= 0:
                with group.lock:
                    calls.leave(facts, results[kept], alone, size, results[:handed_out])
            return results

        leaving._boxed_call = True
        return leaving

    def _taking(self, run: Callable[..., Any], tangents: int) -> Callable[..., Any]:
        """`run`, after a look at what comes back from the code behind the region, and with a note that it runs."""
        group, facts = self._group, self._facts

        def taking(args: list[Any]) -> Any:
            with group.lock:
                said = self._watch.backward(args[len(args) - tangents:]) if self._watch else ()
            for category, words in said:
                warnings.warn(f"lowtide: {words}", category, stacklevel=2)
            group.backward(facts, args)
            return run(args)

        taking._boxed_call = True
        return taking

    def partition(self, joint: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int,
                  **rest: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        """What AOTAutograd calls: the forward and backward graphs of the plan."""
        self._handed_out = num_fwd_outputs
        parts = self._emitted(joint, num_fwd_outputs, trains=True)
        return parts or default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)

    def forward_alone(self, module: fx.GraphModule) -> fx.GraphModule:
        """The graph of the plan in the place of a graph without a backward."""
        (output,) = module.graph.find_nodes(op="output")
        return self._emitted(module, len(output.args[0]), trains=False) or module

    def _emitted(self, joint: fx.GraphModule, num_fwd_outputs: int, *, trains: bool) -> Any:
        """What the plan of a graph became; None for one that no plan can run, or that is planned later."""
        try:
            planned = self._plan(joint, num_fwd_outputs, trains)
            return planned and (emit if trains else emit_forward)(*planned)
        except CaptureError as error:
            return fall_back(str(error), self._settings, None)

    def _plan(self, joint: fx.GraphModule, num_fwd_outputs: int, trains: bool) -> tuple[Program, list[int]] | None:
        """The lowered graph and what it computes, in that order; None for a region that is planned later."""
        facts, group, settings = self._facts, self._group, self._settings
        if self._symbols:
            self._symbols.check(joint)
        facts.trains = trains
        tensors = [t for n in joint.graph.find_nodes(op="placeholder") for t in leaves(n.meta.get("val"))]
        device = next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))
        if self._price is None:
            self._price = Remembered(pricing(settings.costs, device, real=True))
        trained = trained_arguments(self._inputs)
        program = lower(joint, num_fwd_outputs, self._price, f"region {self._number}",
                        replays=settings.inner == "eager", trained=trained)
        if "marks" not in group.said.causes and any(map(is_marked, joint.graph.nodes)):
            group.said.causes.add("marks")
            warnings.warn(f"lowtide: {MARKS}", LowtideWarning, stacklevel=2)
        group.train(self._inputs)
        found = group.enter(settings, program, device, self._inputs, made_gradient_bytes(program, trained),
                            self._find is not None)
        if self._find is not None:
            group.found[self._find] = found
            return None
        agreed = facts.share
        known = group.shares.get(found.key) if group.shares else None
        if agreed or known:
            facts.found = facts.found or found
            agreed = agreed or known
            beside, budget, start = agreed.beside, agreed.budget, agreed.start
        else:
            beside = group.beside(found, self._inputs, not trains or device.type != "cpu")
            budget, start = group.bytes_of(trains), None
            if budget is None and not trains and "%" in str(settings.budget):
                budget = self._share_of_training(program, found, device)
            facts.found = found
        facts.leaves = storages(self._inputs[i] for i in with_gradient(program, trained))
        same = None if agreed else group.same(facts, program, beside)
        if same:  # but for a number that the tracer took for a constant
            facts.report, facts.beside, facts.steps, facts.place = same.report, beside, same.steps, same.place
            self._watch = self._watch_for(same.report, beside.before, device)
            return program, schedule(program, same.steps).computes
        try:
            planned, report = plan_program(program, settings, beside, budget, start)
        except BudgetError as error:
            # the forwards that wait were planned before this one was known: from the next step on it is different
            if agreed or not beside.before or not error.smallest:
                raise
            planned, report = plan_program(program, settings, beside, error.smallest)
            report.budget = error.budget
        facts.report, facts.beside, facts.steps, facts.share = report, beside, planned.steps, None
        self._watch = self._watch_for(report, beside.before, device)
        if facts.place is None or any(r is not facts and r.place == facts.place for r in group.regions):
            facts.place = len(_reports)
            _reports.append(report)
        _reports[facts.place] = report
        return program, planned.computes

    def _watch_for(self, report: Report, before: int, device: torch.device) -> Watch:
        """before: bytes of earlier forwards that the plan counts, unless a reserve takes their place."""
        shared, reserve = bool(self._group.shares), self._settings.reserve
        allocator = device.type != "cpu" and reserve is None
        counted = before if shared or reserve is None else 0
        standing = gradient_bytes(self._inputs)
        counted += reserve or (standing + buckets(standing) if allocator else 0)
        base = self._settings.standing(bytes_held(leaves(self._inputs)), device) - counted
        if not shared and not allocator and reserve is None:
            base += before
        return Watch(self._group.said, (report.peak, report.between, report.budget), counted=counted, before=before,
                     base=base, reserved=reserve is not None, allocator=allocator)

    def _share_of_training(self, alone: Program, found: Found, device: torch.device) -> int | None:
        """The budget in bytes of the training step that a forward without a backward is a part of, if it is."""
        traced = joint_graph(self._gm, self._inputs)
        if traced is None:
            return None
        joint, num_fwd_outputs = traced
        trained = trained_arguments(self._inputs)
        try:
            program = lower(joint, num_fwd_outputs, pricing(self._settings.costs, device, real=True),
                            alone.graph["name"], trained=trained)
        except CaptureError:
            return None
        graph = lowtide.Graph.from_dict(program.graph | {"resident_bytes": found.resident})
        return lowtide.Problem(graph, self._settings.budget).budget


def _stays(value: Any) -> bool:
    """Is it a parameter or, as the tracer has marked it, a buffer?"""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None
