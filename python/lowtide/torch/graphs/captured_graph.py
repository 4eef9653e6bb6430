"""One captured graph of Dynamo, compiled, planned and run by its plan.

AOTAutograd traces forward and backward as one joint graph, without decompositions, and asks for its partition
(`CapturedGraph.partition`).  There the graph is lowered and planned (planning.py), and code is generated.  Both halves run as
straight-line code (execute.py).  A graph that cannot be planned uses AOTAutograd's own partition, with a warning, or fails,
depending on the options.  A budget that cannot be kept always fails.
"""

from __future__ import annotations

import itertools
import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import fx

from ...frontend import progress
from ...frontend.errors import BudgetError, CallerError, CaptureError, fall_back
from ..clusters.higher_order import has_higher_order
from ..clusters.open_cluster import compiled_at_other_sizes
from ..clusters.prepare import traced_for
from ..clusters.rewrite import NotClustered, NotCompiled, ready_for_clusters, with_clusters
from ..compat.aot import TracingContext, aot_autograd, default_partition, nothing_donated, numbers_stay, written_inputs
from ..compat.dynamo import TorchDynamoException, compile_lock
from ..device.host import is_on_host
from ..emission.emit import emit, emit_forward
from ..emission.execute import boxed, compile_graph
from ..emission.parted import Part, located, parts_of
from ..emission.saved import compile_backward, compile_forward
from ..optimizer.backwards import mark
from ..program.program import Program
from ..ranks.failure import RankError
from ..runtime.assumed_tangent import place_of_assumed_tangent
from ..runtime.backward_looks import look_at_backwards
from ..runtime.parted_backward import first_part, in_parts, leaf_of
from ..settings import Settings
from ..step_errors import UnknownParameter
from ..tensors.operators import is_tangent, late_nodes, leaves
from ..tensors.storages import device_among, storages, trained_arguments
from ..tensors.wrapped import name_by_wrapper
from ..tracing.open_sizes import OpenSizes
from ..tracing.own_kernels import kernels_of
from ..tracing.scalars import NotOpen, SizeByNumber, Symbols
from .graph_layout import GraphLayout
from .group import Group
from .inner import Choice, EagerIsFast, first_choice
from .outside_gradients import mark_captured
from .planning import GraphPlanner, Traced
from .recording import Recording, stays
from .records import GraphRecord
from .written import Reads

_numbers = itertools.count()
one_tracing = compile_lock  # a thread at a time: what is compiled at a call is not within the tracer, which sees to that itself


class CapturedGraph:
    """One graph on its way from Dynamo to running code; compiled anew when its group has planned it with others."""

    def __init__(self, settings: Settings, group: Group, find: int | None = None,
                 numbers: list[int] | None = None, sizes: OpenSizes | None = None) -> None:
        """numbers: arguments for all of whose values one tracing is to serve.  sizes: the same of sizes, these numbers among
        its symbols; where that cannot be `compile` raises NotOpen."""
        self._settings, self._group, self._find = settings, group, find
        self._open = sizes
        self._shown: list[int] = []  # sizes of the plan
        self._fitting: set[tuple[int, ...]] = set()  # and others at which it keeps the budget
        self._clusters_at: Callable[[list[int]], bool] | None = None  # have its clusters run at sizes
        self._symbols = sizes or (Symbols(numbers) if numbers else None)
        self._gm: Any = None
        self._key = ""  # of the choice of kernels, where they are compared
        self._inputs: list[Any] = []
        self._handed_out = 0
        self._record = GraphRecord(next(_numbers))
        self._planner = GraphPlanner(settings, group, self._record, find)
        self._compiled: Any = None
        self._layout = GraphLayout(settings, group, self._record)
        self._recording: Recording
        self._reads = Reads(self._record.number, self._written)
        self._is_stale = False
        self._buckets = 0  # bytes of DDP's buckets when it was compiled
        self._parts: list[Part] = []  # of the backward that was compiled last
        self._lock = threading.Lock()  # held while it is compiled anew

    def compile(self, gm: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        self._gm = gm
        if self._settings.inner == "auto":
            self._choose(self._known_choice(example_inputs))
        stay = [self._group.stands_for.get(id(t), t) for t in example_inputs if stays(t)]
        self._group.calls.know(stay, stay)
        look_at_backwards()
        if self._find is None:
            self._group.outside.meet(example_inputs, self._settings)
        self._compile(example_inputs)
        if self._planner.inner and self._key:
            self._group.inner[self._key] = self._planner.inner
        if self._find is None:
            self._group.captured_graphs.append(self._record)
        return self

    def _known_choice(self, inputs: list[Any]) -> Choice:
        """Which kernels to take, with inner="auto": of a graph that was found before it is planned, those that were chosen then."""
        choice = first_choice(self._settings, device_among(leaves(inputs)))
        if choice.fused:  # with open sizes for all of them
            self._key = f"{[(t.dim() if self._open else t.shape, t.dtype) for t in leaves(inputs)]} {self._gm.graph}"
        return self._group.inner.get(self._key, choice)

    def _choose(self, inner: Choice) -> None:
        self._settings = replace(self._settings, inner="fused" if inner.fused else "eager")
        self._planner.use(self._settings, inner)

    @property
    def trains(self) -> bool:
        """Has it a backward?"""
        return self._record.trains

    def leave(self) -> None:
        """It is not called again."""
        if self._record in self._group.captured_graphs:
            self._group.captured_graphs.remove(self._record)

    def serves(self, args: tuple[Any, ...]) -> bool:
        """Was it traced for numbers like these, and does its plan keep the budget at these sizes?"""
        if self._symbols is None:
            return self._open is None
        if not self._symbols.hold(args):
            return False
        return self._open is None or self._fits(self._open, args)

    def _fits(self, open_: OpenSizes, args: tuple[Any, ...]) -> bool:
        sizes, near = tuple(open_.sizes(args)), self._planner.near
        if sizes not in self._fitting and not self._record.assignment:  # or it is planned anew when it is called
            if near is None or not near.any:
                return False
            there = near.at(args, self._shown)
            if there is None:
                return False
            if self._clusters_at:
                with progress.line():
                    if not self._clusters_at(list(sizes)):
                        return False
            self._planner.meet(there)
            self._fitting.add(sizes)
        return True

    def __call__(self, *args: Any) -> Any:
        group, record = self._group, self._record
        if self._planner.updates:
            self._planner.updates.check(args, self._settings.whole)
        group.begin(record, self._settings, args)
        with self._lock:
            stale, self._is_stale = self._is_stale, False
            if self._buckets != group.buckets.size:
                self._compile_with_buckets(list(args))
            elif record.assignment or stale:
                self._compile_anew(list(args))
        group.forward(record, args)
        group.outside.runs()
        results = self._compiled(*self._in_parts(args))
        self._reads.note(args, results)
        return results

    def _written(self, inputs: set[int], results: set[int]) -> None:
        """Others have written to these inputs and results between forward and backward."""
        planner = self._planner
        self._is_stale = self._is_stale or not (inputs <= planner.written and results <= planner.written_results)
        planner.written |= inputs
        planner.written_results |= results

    def _compile_with_buckets(self, args: list[Any]) -> None:
        """Anew on all ranks, since all have come to run it within DDP.  After an exception all do so again at the next call, whatever
        code each of them has by then."""
        before = self._buckets
        try:
            with self._group.planning_again(self._settings):
                self._compile_anew(args)
        except BaseException:
            self._buckets = before
            raise

    def _compile_anew(self, args: list[Any]) -> None:
        """As its group has planned it with others, or as what was written to asks for.  Where sizes cannot stay open with these
        arguments, such as two that share a storage, the code that there is goes on.

        After an exception the next call compiles again: what is noted of the code stays that of the code that there is.
        """
        of_sizes = self._shown, self._fitting, self._clusters_at
        compiled, buckets, parts = self._compiled, self._buckets, self._parts
        try:
            self._compile_or_refuse(args)
        except (NotOpen, SizeByNumber):
            self._shown, self._fitting, self._clusters_at = of_sizes
            self._record.assignment = None
            if self._compiled is compiled:
                self._parts = parts
        except BaseException:
            if self._compiled is compiled:
                self._shown, self._fitting, self._clusters_at = of_sizes
                self._buckets, self._parts = buckets, parts
                self._is_stale = True
            raise

    def _compile_or_refuse(self, args: list[Any]) -> None:
        """Anew.  Where sizes cannot stay open on this rank, those that plan with it keep the code that they have as well."""
        try:
            if self._record.assignment:
                self._compile_together(args)
            else:
                self._compile(args)
        except (NotOpen, SizeByNumber) as error:
            if self._group.ranks and not (isinstance(error, NotOpen) and error.on_all):
                self._group.ranks.refused(CaptureError("the sizes of a graph that serves several cannot stay open with these arguments"))
            raise

    def _compile_together(self, args: list[Any]) -> None:
        """Anew, as its group has planned it with others."""
        planned_for = self._shown
        try:
            self._compile(args)
        except BudgetError:
            if self._shown == planned_for:
                raise
            self._record.assignment = None  # of other sizes than these
            self._compile(args)

    def _compile(self, example_inputs: list[Any]) -> None:
        with one_tracing, progress.line():
            progress.stage("tracing the step")
            self._trace(example_inputs)

    def _trace(self, example_inputs: list[Any]) -> None:
        self._group.buckets.meet()
        self._inputs, self._buckets = list(example_inputs), self._group.buckets.size
        self._recording = Recording(self._settings, self._inputs, self._planner.updates, self._group.watch.causes)
        self._reads.forget()
        self._parts = []  # a new list: a backward that is compiled later belongs to the one of its forward
        if self._open:
            self._shown = self._open.sizes(example_inputs)
            self._fitting = {tuple(self._shown)}
        try:
            code = object()
            compiler = aot_autograd(fw_compiler=self._run("forward", code), bw_compiler=self._run("backward", code),
                                    inference_compiler=self._run("inference", code), partition_fn=self.partition,
                                    **traced_for(self._settings.fuses))
            with nothing_donated(), kernels_of(self._settings.fuses):
                if self._symbols is None:
                    self._compiled = compiler(self._gm, example_inputs)
                    return
                with numbers_stay():
                    gm = self._symbols.graph(self._gm, example_inputs)
                    self._compiled = compiler(gm, self._symbols.arguments(example_inputs))
            self._symbols.seal()
        except BudgetError as refused:
            if not (self._planner.inner and self._planner.inner.fused) or self._record.assignment:
                raise
            self._trace_eager_kernels(example_inputs, refused)
        except (CaptureError, RankError, UnknownParameter, SizeByNumber, NotOpen, Warning):
            raise
        except NotClustered as error:
            if self._open and not isinstance(error, NotCompiled):
                raise NotOpen from error
            asked = self._planner.inner is None
            if asked:
                self._planner.say_once(str(error), f"this graph runs on eager kernels, since {error}")
            self._choose(Choice(False, str(error), asked))
            self._trace(example_inputs)
        except EagerIsFast as found:
            self._choose(Choice(False, str(found)))
            self._trace(example_inputs)
        except CallerError as error:
            raise (error.__cause__ or error) from None  # what the caller's own function has raised
        except Exception as error:  # the tracer's, or ours that nobody foresaw: no reason to end a training
            if isinstance(error, TorchDynamoException) and TracingContext.try_get():
                raise  # so the tracer tells itself to begin anew
            if self._open:
                raise NotOpen from error
            line = (str(error).strip().splitlines() or ["no message"])[0]
            words = f"tracing failed with {type(error).__name__}: {line}"
            if self._group.ranks:
                words = str(self._group.ranks.refused(CaptureError(words)))
            self._compiled = fall_back(words, self._settings.fallback, self._gm)
            self._parts = []
            self._symbols = None  # as it is the graph serves all values
            self._record.to_plan = self._record.report = None
            self._group.outside.said()
        finally:
            self._inputs = []

    def _trace_eager_kernels(self, example_inputs: list[Any], refused: BudgetError) -> None:
        """Nobody has asked for fused kernels, and no plan over them keeps the budget."""
        self._choose(Choice(False, "no plan over fused kernels keeps the budget"))
        try:
            self._trace(example_inputs)
        except BudgetError as error:
            raise min(refused, error, key=lambda e: e.smallest or math.inf) from None

    def _run(self, side: str, code: object) -> Callable[..., Any]:
        """The compiler of a side; the two sides of a step have the same `code`."""
        parts, recording = self._parts, self._recording

        def compile_side(module: fx.GraphModule, _: Any) -> Callable[..., Any]:
            name, fixed = f"graph {self._record.number} {side}", self._open is None
            if side == "forward":
                run = self._layout.arranged(compile_forward(module, name, code, fixed=fixed), forward=True)
                run = recording.forward(module, run, self._handed_out, self._layout.block)
                return self._leaving(run, place_of_assumed_tangent(module))
            if side == "backward":
                tangents = len(list(filter(is_tangent, module.graph.nodes)))
                run = self._layout.arranged(_backward(module, name, code, fixed, parts), forward=False)
                return self._taking(recording.backward(run, tangents), tangents)
            module = self.forward_alone(module)
            (output,) = module.graph.find_nodes(op="output")
            return boxed(recording.forward(module, compile_graph(module, name, fixed=fixed), len(output.args[0])))

        return compile_side

    def _in_parts(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """The arguments of the compiled graph, whose backward may run in parts."""
        return in_parts(args, [part.places for part in self._parts]) if self._parts and torch.is_grad_enabled() else args

    def _divide(self, forward: fx.GraphModule, backward: fx.GraphModule) -> None:
        """Within DistributedDataParallel the backward runs in parts as large as its buckets."""
        inputs, limits = self._inputs, self._group.buckets.limits
        (output,) = backward.graph.find_nodes(op="output")
        differentiable = {i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.requires_grad}
        if limits is None or self._open or len(output.args[0]) != len(inputs) or written_inputs(forward) & {None, *differentiable}:
            return
        parameters = [i for i in trained_arguments(inputs) if isinstance(inputs[i], torch.nn.Parameter)]
        parts = parts_of(backward.graph, parameters, limits)
        if len(parts) > 1:
            self._parts.extend(parts)

    def _leaving(self, run: Callable[..., Any], assumed_tangent: int | None) -> Callable[..., Any]:
        """`run`, with a note of what it leaves for its backward.

        By one of these tensors it is known whether the forward still waits.  assumed_tangent: the index of the result that no
        backward passes on, where the others are gradients, which live on when the backward has run; None where any will do.
        """
        group, record, handed_out = self._group, self._record, self._handed_out
        calls, parts = group.calls, self._parts
        open_ = self._open is not None
        kept, alone, size = None, False, 0  # a storage among its results; bytes of all that it leaves

        def leaving(args: list[Any]) -> Any:
            nonlocal kept, alone, size
            with group.lock:
                outside = list(map(leaf_of, args)) if parts else args
                said = self._planner.watch.forward(outside, calls.waiting_bytes()) if self._planner.watch else ()
            for category, words in said:
                warnings.warn(f"lowtide: {words}", category, stacklevel=2)
            given = storages(args) if kept is None or open_ else {}
            self._layout.prime()
            results = run(args)
            if kept is None or open_:
                handed = storages(results[:handed_out])
                here = [t for t in results if not isinstance(t, torch.Tensor) or not is_on_host(t)]
                left = {key: bytes_ for key, bytes_ in storages(here).items() if key not in given}
                size = sum(left.values())
                private = {key: bytes_ for key, bytes_ in left.items() if key not in handed}
                alone = bool(private)
                key = max(private or left, key=left.__getitem__, default=None)
                kept = next((i for i, t in enumerate(results) if key in storages([t])), -1) if assumed_tangent is None else assumed_tangent
            if kept >= 0 and not self._settings.whole:
                with group.lock:
                    calls.leave(record, results[kept], alone, size, results[:handed_out])
            return results

        mark_captured(leaving, self._record.number)
        if self._planner.updates:
            mark(leaving, self._planner.updates)
        return boxed(leaving)

    def _taking(self, run: Callable[..., Any], tangents: int) -> Callable[..., Any]:
        """`run`, after a look at what comes back from the code behind the graph, and with a note that it runs."""
        group, record = self._group, self._record

        def taking(args: list[Any]) -> Any:
            with group.lock:
                outside = self._planner.watch.backward(args[len(args) - tangents:]) if self._planner.watch else []
            group.backward(record, args, outside)
            return run(args)

        return boxed(taking)

    def partition(self, joint: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int,
                  **rest: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        """Called by AOTAutograd: the forward and backward graphs of the plan."""
        self._handed_out = num_fwd_outputs
        parts = self._emitted(joint, num_fwd_outputs, trains=True)
        if parts:
            return parts
        _part_sides(joint.graph)
        return default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs, **rest)

    def forward_alone(self, module: fx.GraphModule) -> fx.GraphModule:
        """The graph of the plan in the place of a graph without a backward."""
        (output,) = module.graph.find_nodes(op="output")
        return self._emitted(module, len(output.args[0]), trains=False) or module

    def _emitted(self, joint: fx.GraphModule, num_fwd_outputs: int, *, trains: bool) -> Any:
        """The code of a graph's plan; None if no plan can run it, or if it is planned later."""
        try:
            name_by_wrapper(joint)
            if self._symbols:
                self._symbols.check(joint)
            if self._open and has_higher_order(joint):
                raise NotOpen  # what they take beside tensors was traced for sizes
            self._clusters_at = ready = None
            if self._settings.fuses:
                concrete = partial(self._open.concrete, args=self._inputs) if self._open else None
                ready = ready_for_clusters(joint, trained_arguments(self._inputs), real=True, concrete=concrete)
                joint = with_clusters(ready, real=True)
                if self._open and ready.layouts:
                    self._open.enter(joint, ready.layouts, ready.joint)
                    self._clusters_at = compiled_at_other_sizes(joint, self._open, self._shown)
                    self._clusters_at(self._shown)
            elif self._open:
                self._open.concrete(joint, self._inputs)
            planned = self._planner.plan(Traced(self._gm, self._inputs, joint, num_fwd_outputs, trains, self._open, ready))
            if planned is None:
                return None
            program = planned.program
            assert isinstance(program, Program), "as the one that was planned"
            progress.stage("making code of the plan")
            if not trains:
                return emit_forward(program, planned.computes, planned.transfers)
            forward, backward = emit(program, planned.computes, planned.transfers, self._layout.points(program), planned.together)
            self._divide(forward, backward)
            self._layout.learn(self._record.report)
            self._reads.learn(program, forward, (self._planner.changing(self._inputs), self._planner.written_results),
                              self._planner.kept_within)
            return forward, backward
        except CaptureError as raised:
            error = self._group.ranks.refused(raised) if self._group.ranks else raised
            if self._open:
                raise NotOpen(on_all=self._group.ranks is not None) from error
            if self._planner.updates:
                self._planner.updates.slots = {}
            return fall_back(str(error), self._settings.fallback, None)


def _part_sides(graph: fx.Graph) -> None:
    """Have the backward of a joint graph stand behind the forward, since AOTAutograd's partition takes what stands in front of the
    forward's last op for the forward's.  A copy of a tangent, for one, has been made right behind the tangent."""
    late, output = late_nodes(graph), graph.output_node()
    for node in list(graph.nodes):
        if node in late and node.op != "placeholder":
            output.prepend(node)


def _backward(module: fx.GraphModule, name: str, code: object, fixed: bool, parts: list[Part]) -> Callable[..., Any]:
    """The backward of a graph, in these parts if there are any."""
    if not parts:
        return compile_backward(module, name, code, fixed=fixed)
    parts = located(module.graph, parts)
    (output,) = module.graph.find_nodes(op="output")
    likes = [n.meta.get("val") if isinstance(n, fx.Node) else None for n in output.args[0]]
    run = compile_backward(module, name, code, fixed=fixed, parts=parts)
    return boxed(first_part(run, [part.places for part in parts], likes))
