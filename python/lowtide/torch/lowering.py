"""Joint FX graph of a training step -> Lowtide graph, and for each op the node that runs it.

A tensor is one storage; a node whose results all live in storages that exist already is a view and no
op.  Its bytes are those that the fake result shows, or what the kernel was seen to hold where that is more
(costs.py).  The order of the nodes is the order given.  Between forward and backward stands the barrier: it
takes the forward's results and makes the tangents, as control goes to the user and back.  It `mutates`
the inputs that the runtime overwrites when the forward has ended (buffers, running statistics), so no
plan reads them afterwards.

What is not one node, one op:

* Dropout is MASK (draws; input -> mask) and APPLY (input and mask -> output, may run again).  The kernel
  makes both at once, so MASK has the output as its workspace.
* Batch norm in training is STATISTICS (new running statistics; runs once) and NORM (input, weight, bias
  -> output, mean, inverse deviation; may run again, without the statistics).  The two are one kernel the
  first time: STATISTICS takes no time, and `settle` (steps.py) puts it right before the first NORM; so whoever
  reads the new statistics comes after that NORM.
* A random draw whose result is larger than the generator's state gets a STATE op before it: the state is
  a tensor that a plan may keep instead of the result, and draw the same numbers again.

Random draws follow one another by `after`; the barrier comes after the forward's draws, because the user
sees the generator there.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch._functorch.partitioners import _extract_fwd_bwd_outputs
from torch._higher_order_ops.auto_functionalize import auto_functionalized, auto_functionalized_v2
from torch._higher_order_ops.effects import with_effects
from torch.utils import _pytree as pytree

from .dropout import apply as dropout_apply
from .dropout import can_apply
from .errors import CaptureError
from .gradient_layout import lay_out_gradients
from .graph_builder import BrokenOrder, GraphBuilder, Op
from .operators import (
    DTYPES,
    Kernel,
    arguments_of,
    attributes_of,
    bytes_of,
    device_of,
    is_backward,
    is_effect,
    is_symbol,
    is_tangent,
    leaves,
    operations,
    storage,
    touched_bytes,
    values,
)
from .origins import module_path, source_line, unexpected
from .random_state import STATE_BYTES, may_replay
from .real_types import settle_types

aten = torch.ops.aten
_FUNCTIONAL_BN = aten._native_batch_norm_legit_functional.default
_BN_BACKWARD = aten.native_batch_norm_backward.default
_CLONES_STORAGE = (aten.copy.default, aten.slice_scatter.default, aten.select_scatter.default,
                   aten.diagonal_scatter.default, aten.as_strided_scatter.default)
_SMALL = 64  # bytes that every allocator rounds up to
_WORTH_A_STATE = 4  # times the state's bytes that a draw's results must have


class Price(Protocol):
    """What kernels cost: told of all of a graph's, then asked for each: ticks (ns), workspace (bytes), and what
    its results hold (bytes, in the order of their leaves; empty: what they show).  real: can they run here?"""

    real: bool

    def prepare(self, kernels: list[Kernel]) -> None: ...

    def __call__(self, kernel: Kernel) -> tuple[int, int, list[int]]: ...


class Kind(enum.Enum):
    """How an op runs; see the file's head."""

    CALL = enum.auto()
    MASK = enum.auto()
    APPLY = enum.auto()
    STATISTICS = enum.auto()
    NORM = enum.auto()
    STATE = enum.auto()
    BARRIER = enum.auto()


@dataclass(frozen=True)
class Run:
    """What computes one op: the node of the joint graph; state: the STATE op to draw again from."""

    kind: Kind
    node: torch.fx.Node | None = None
    state: int | None = None


@dataclass
class Program:
    """A joint graph and the Lowtide graph it became.

    graph: as the file format has it.  runs[i]: what computes graph["ops"][i].  barrier: that op's index.
    forward_outputs, backward_outputs: nodes of the joint graph or None, with their descriptors.
    """

    joint: torch.fx.GraphModule
    graph: dict[str, Any]
    runs: list[Run]
    barrier: int
    forward_outputs: list[Any]
    backward_outputs: list[Any]
    forward_descriptors: list[Any]
    backward_descriptors: list[Any]
    views: set[torch.fx.Node] = field(default_factory=set)


def lower(joint: torch.fx.GraphModule, num_forward_outputs: int, price: Price, name: str,
          state_bytes: int | None = None, replays: bool = True, trained: Container[int] = ()) -> Program:
    """The program of a joint graph with descriptors, after gradients got the layout of what they belong to.

    price: what its kernels cost.  state_bytes: those of a generator's state, by default that of each draw's
    device (random_state.STATE_BYTES).  replays: may what runs the graph draw again from a state?
    trained: as of lay_out_gradients.

    Raises CaptureError, and nothing else, with the node named: for an operator that no plan could run, for a read
    after an update in place, and for whatever else goes wrong on the way.
    """
    lowering = None
    try:
        if price.real and replays:
            settle_types(joint)
        lay_out_gradients(joint, trained)
        lowering = _Lowering(joint, num_forward_outputs, price, state_bytes, replays)
        return lowering.run(name)
    except BrokenOrder as error:
        raise CaptureError(str(error)) from error
    except CaptureError as error:
        at = lowering.at if lowering else None
        if at is None or str(error).startswith(at.name):
            raise
        raise CaptureError(f"{at.name}: {error}") from error
    except Exception as error:  # a graph may hold what nobody has seen yet, and it is no reason to end a training
        raise unexpected(error, lowering.at if lowering else None) from error


class _Lowering:
    def __init__(self, joint: torch.fx.GraphModule, num_forward_outputs: int, price: Price,
                 state_bytes: int | None, replays: bool) -> None:
        self._joint, self._price, self._state_bytes, self._replays = joint, price, state_bytes, replays
        self.at: torch.fx.Node | None = None  # the node that is being lowered
        self._graph = GraphBuilder()
        self._home: dict[int, int] = {}  # storage -> tensor
        self._views: set[torch.fx.Node] = set()
        self._halves: list[tuple[Op, Op]] = []  # MASK and APPLY
        self._norms: dict[int, Op] = {}  # new running statistics -> the NORM with which they are made
        outputs = _extract_fwd_bwd_outputs(joint, num_fwd_outputs=num_forward_outputs)
        self._forward, self._backward, self._forward_desc, self._backward_desc = map(list, outputs)
        self._inputs = [n for n in joint.graph.nodes if n.op == "placeholder"]
        self._nodes = [n for n in joint.graph.nodes if n.op not in ("placeholder", "output")]
        self._late: set[torch.fx.Node] = set()  # what runs behind the barrier
        for node in joint.graph.nodes:
            # tracing leaves the backward of a custom autograd function without a tag
            if node.op != "output" and (is_backward(node) or is_tangent(node)
                                        or not self._late.isdisjoint(node.all_input_nodes)):
                self._late.add(node)

    def run(self, name: str) -> Program:
        tangents = []
        for node in self._inputs:
            descriptor = node.meta.get("desc")
            if is_tangent(node):
                tangents.append(node)
                continue
            kind = type(descriptor).__name__
            role = {"ParamAOTInput": "parameter", "BufferAOTInput": "state"}.get(kind, "input")
            for t in leaves(node.meta.get("val")):
                self._tensor(t, _label(descriptor) or node.name, role)
        for node in self._nodes:
            if node not in self._late:
                self._lower(node)
        self._cross(tangents)
        for node in self._nodes:
            if node in self._late:
                self._lower(node)
        self._price_all()
        graph = self._graph.finish(name, self._outputs(tangents))
        place = {op: i for i, op in enumerate(self._graph.ops)}
        runs = [Run(kind, node, place[state] if state else None)
                for kind, node, state in (op.runs for op in self._graph.ops)]
        return Program(self._joint, graph, runs, place[self._graph.barrier], self._forward, self._backward,
                       self._forward_desc, self._backward_desc, self._views)

    def _price_all(self) -> None:
        self.at = None
        priced = [op for op in self._graph.ops if op.kernel]
        self._price.prepare([op.kernel for op in priced])
        for op in priced:
            op.time, workspace, held = self._price(op.kernel)
            op.workspace += workspace
            self._hold(op, held)
        for draw, apply in self._halves:
            draw.time = max(draw.time - apply.time, 0)  # the two are one kernel the first time

    def _hold(self, op: Op, held: list[int]) -> None:
        """Raise the bytes of what an op makes to what its kernel's results hold."""
        if not held or op.runs[0] is not Kind.CALL:
            return
        for t, size in zip(pytree.tree_leaves(op.kernel.results), held, strict=False):
            home = self._home.get(storage(t)) if isinstance(t, torch.Tensor) else None
            if home in op.outputs:
                self._graph.tensors[home]["bytes"] = max(self._graph.tensors[home]["bytes"], size)

    # ---- tensors

    def _tensor(self, t: torch.Tensor, name: str, role: str | None = None) -> int:
        """The tensor of t's storage; made, and named, when the storage is new."""
        if storage(t) not in self._home:
            if t.dtype not in DTYPES:
                raise CaptureError(f"{name}: numbers of type {t.dtype} cannot be captured")
            shape = [int(n) for n in t.shape]
            self._home[storage(t)] = self._graph.tensor(name, bytes_of(t), role, shape, DTYPES[t.dtype])
        return self._home[storage(t)]

    def _known(self, tensors: list[torch.Tensor]) -> list[int]:
        return list(dict.fromkeys(self._home[storage(t)] for t in tensors))

    def _cross(self, tangents: list[torch.fx.Node]) -> None:
        """The barrier: the forward's results in, the tangents out, the inputs that change mutated."""
        mutated = [desc.mutated_input for desc in self._forward_desc if hasattr(desc, "mutated_input")]
        changed = [n for n in self._inputs if n.meta.get("desc") in mutated]
        overwritten = self._known(leaves([n.meta["val"] for n in changed]))
        results = leaves(values([n for n in self._forward if isinstance(n, torch.fx.Node)]))
        gone = {t for op in self._graph.ops for t in op.mutates}  # an input with a new value is handed out as it is
        handed_out = [t for t in self._known(results) if t not in gone]
        made = [self._tensor(t, n.name) for n in tangents for t in leaves(n.meta["val"])]
        barrier = self._graph.cross(list(dict.fromkeys([*handed_out, *overwritten])), made)
        barrier.mutates = overwritten
        barrier.runs = (Kind.BARRIER, None, None)

    def _outputs(self, tangents: list[torch.fx.Node]) -> list[int]:
        """What the caller holds at the end, gradients named; inputs handed out again are there anyway.

        New values of inputs are copied and dropped when the forward has ended.  The autograd engine holds
        the tangents until the backward has returned.  What the forward hands out the caller holds too, so
        nothing is won by making it a second time, and a free would free nothing.
        """
        kept = [n for n, desc in zip(self._forward, self._forward_desc, strict=True)
                if isinstance(n, torch.fx.Node) and not hasattr(desc, "mutated_input")]
        outputs = [t for t in self._known(leaves(values([*kept, *tangents]))) if t in self._graph.producer]
        for tensor in outputs:
            if self._graph.tensors[tensor]["bytes"] > _SMALL:
                self._graph.producer[tensor].recomputable = False
        gradients: dict[int, list[str]] = {}
        for node, desc in zip(self._backward, self._backward_desc, strict=True):
            if not isinstance(node, torch.fx.Node):
                continue
            for tensor in self._known(leaves(node.meta["val"])):
                if tensor in self._graph.producer:
                    outputs.append(tensor)
                    gradients.setdefault(tensor, []).append(f"{_label(getattr(desc, 'grad_of', None))}.grad")
        for tensor, names in gradients.items():
            self._graph.tensors[tensor] |= {"name": ", ".join(names), "role": "gradient"}
        return list(dict.fromkeys(outputs))

    # ---- ops

    def _lower(self, node: torch.fx.Node) -> None:
        self.at = node
        if node.op == "get_attr":
            value = operator.attrgetter(node.target)(self._joint)
            for t in leaves(node.meta.get("val", value)):
                self._tensor(t, node.name, "constant")
            return
        if node.target is operator.getitem:
            return
        value = node.meta.get("val")
        results = leaves(value)
        if is_symbol(value) and not any(leaves(values(source)) for source in node.all_input_nodes):
            self._views.add(node)  # made of numbers where it is read
            return
        if not results and value is not None and not isinstance(value, (list, tuple)):
            raise CaptureError(f"{node.name}: {node.target} computes a size while the step runs; a plan needs fixed "
                               "sizes")
        fresh = {storage(t): t for t in reversed(results) if storage(t) not in self._home}
        if node.target is with_effects and not node.args[1]._schema.is_mutable:
            self._effect(node, list(reversed(fresh.values())))
            return
        if node.target in (auto_functionalized, auto_functionalized_v2):
            raise CaptureError(f"{node.name}: {node.args[0]} writes to its arguments, and no plan can run that")
        if not isinstance(node.target, torch._ops.OpOverload):
            raise CaptureError(f"{node.name}: {node.target} is no operator on tensors; capture the model without "
                               "torch.compile, flex attention, control-flow operators and the like")
        arguments = arguments_of(node)
        if node.target._schema.is_mutable:
            self._write_back(node, arguments)
            return
        if value is not None and not fresh:
            self._views.add(node)
            return
        if node.target is aten.native_dropout.default and is_effect(node, arguments) and can_apply(device_of(node)):
            self._dropout(node, arguments)
        elif node.target is _FUNCTIONAL_BN and arguments["training"]:
            self._batch_norm(node, arguments)
        else:
            self._plain(node, arguments, list(reversed(fresh.values())))

    def _write_back(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        """A new value into an input: what Inductor's tracing leaves of an update in place."""
        if node.target is not aten.copy_.default or arguments["self"].op != "placeholder" or node.users:
            raise CaptureError(f"{node.name}: {node.target} writes to its arguments, and no plan can run that")
        target, source = arguments["self"].meta["val"], arguments["src"].meta["val"]
        op = self._op(node, Kind.CALL, [target, source], [])
        op.mutates, op.recomputable = self._known([target]), False
        self._graph.op(op)
        if node not in self._late:
            self._graph.before_barrier.append(op)

    def _effect(self, node: torch.fx.Node, fresh: list[torch.Tensor]) -> None:
        """An operator that is called for what it does beside its results (a check of a factorisation, for one).  A
        token that goes through all of these keeps their order; nobody runs one to learn its price."""
        op = self._op(node, Kind.CALL, leaves(values([node.args, node.kwargs])), fresh,
                      word=str(node.args[1].overloadpacket))
        op.kernel = None
        self._graph.op(op, effect=True)

    def _op(self, node: torch.fx.Node, kind: Kind, read: list[torch.Tensor], written: list[torch.Tensor],
            *, name: str = "", word: str = "", flops: int = 0, attributes: dict[str, Any] | None = None) -> Op:
        """An op that reads and writes these fake tensors; the written ones get tensors of their own."""
        name = name or node.name
        inputs = self._known(read)
        outputs = list(dict.fromkeys(self._tensor(t, name if i == 0 else f"{name}.{i}")
                                     for i, t in enumerate(written)))
        kernel = Kernel(node.target, values(node.args), values(node.kwargs), read, written, node.meta.get("val"), flops)
        line = source_line(node)
        attributes = (attributes or {}) | ({"flops": flops} if flops else {}) | ({"source": line} if line else {})
        return Op(name, word or str(node.target.overloadpacket), inputs, outputs, 0,
                  "backward" if node in self._late else "forward", self._origin(node, inputs),
                  after=[self._norms[t] for t in inputs if t in self._norms],
                  attributes=attributes, kernel=kernel, runs=(kind, node, None))

    def _origin(self, node: torch.fx.Node, inputs: list[int]) -> str | None:
        path = module_path(node)
        if path is None and (node.meta.get("is_gradient_acc") or source_line(node) is None):
            # a sum of two gradients belongs with whoever made the second
            path = next((self._graph.producer[t].origin for t in reversed(inputs) if t in self._graph.producer), None)
        return path or None

    def _plain(self, node: torch.fx.Node, arguments: dict[str, Any], fresh: list[torch.Tensor]) -> None:
        unread = ("running_mean", "running_var") if node.target is _BN_BACKWARD and arguments["train"] else ()
        read = leaves(values([value for key, value in arguments.items() if key not in unread]))
        op = self._op(node, Kind.CALL, read, fresh, flops=operations(node, arguments),
                      attributes=attributes_of(node, arguments))
        if node.target in _CLONES_STORAGE:
            self._clone_storage(op, node.args[0].meta["val"])
        if not op.outputs:  # an assertion, for one: all that it does is its effect, so nobody may try it out
            op.kernel = None
        self._draw(op, not op.outputs or is_effect(node, arguments))

    def _clone_storage(self, op: Op, source: torch.Tensor) -> None:
        """These operators clone all of the storage that their first argument may be a part of.  So do their fake
        kernels, but not the results that fake tensors take from their cache."""
        (tensor,) = op.outputs
        size = self._graph.tensors[self._home[storage(source)]]["bytes"]
        self._graph.tensors[tensor]["bytes"] = max(size, self._graph.tensors[tensor]["bytes"])

    def _draw(self, op: Op, effect: bool) -> None:
        """Append an op; if it draws random numbers that are worth it, with the generator's state before it."""
        kind, node, _ = op.runs
        size = sum(self._graph.tensors[t]["bytes"] for t in op.outputs)
        if not effect or not self._replays or not may_replay(node):
            self._graph.op(op, effect=effect)
            return
        state_bytes = self._state_bytes or STATE_BYTES[device_of(node).type]
        if size < _WORTH_A_STATE * state_bytes:
            self._graph.op(op, effect=True)
            return
        tensor = self._graph.tensor(f"{op.name}.state", state_bytes, None, [state_bytes], "u8")
        source = {key: value for key, value in op.attributes.items() if key == "source"}
        state = Op(f"{op.name}.state", "lowtide.random_state", [], [tensor], 0, op.phase, op.origin,
                   attributes=source, runs=(Kind.STATE, node, None))
        self._graph.op(state, effect=True)
        op.inputs.append(tensor)
        op.workspace += state_bytes  # the generator's own state meanwhile
        op.runs = (kind, node, state)
        self._graph.op(op, effect=True)
        op.recomputable = True

    def _dropout(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        out, mask = node.meta["val"]
        source = arguments["input"].meta["val"]
        chance = {"p": arguments["p"]}
        draw = self._op(node, Kind.MASK, [source], [mask], name=f"{node.name}.mask", word="lowtide.dropout_mask",
                        attributes=chance)
        draw.workspace += bytes_of(out)
        self._draw(draw, True)
        apply = self._op(node, Kind.APPLY, [source, mask], [out], word="lowtide.dropout_apply", attributes=chance)
        apply.kernel = Kernel(dropout_apply, (source, mask, arguments["p"]), {}, [source, mask], [out], out)
        self._halves.append((draw, apply))
        self._graph.op(apply)

    def _batch_norm(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        out, mean, invstd, new_mean, new_var = node.meta["val"]
        pure = leaves(values([arguments[key] for key in ("input", "weight", "bias")]))
        running = leaves(values([arguments[key] for key in ("running_mean", "running_var")]))
        name = node.name.replace("_native_batch_norm_legit_functional", "native_batch_norm")
        stats = self._op(node, Kind.STATISTICS, [*pure, *running], [new_mean, new_var], name=f"{name}.stats",
                         word="lowtide.batch_norm_stats", attributes={"momentum": arguments["momentum"]})
        stats.recomputable, stats.kernel = False, None
        self._graph.op(stats)
        norm = self._op(node, Kind.NORM, pure, [out, mean, invstd], name=name, word="aten.native_batch_norm",
                        attributes={"eps": arguments["eps"]})
        norm.after = [stats]
        # stand-ins for the statistics, and their copies
        norm.workspace += sum(2 * touched_bytes([t]) for t in typed_by_statistics(arguments))
        self._graph.op(norm)
        self._graph.before_barrier.append(norm)
        self._norms |= dict.fromkeys(stats.outputs, norm)


def typed_by_statistics(arguments: dict[str, Any]) -> list[torch.Tensor]:
    """The running statistics of a batch norm in training that computes in their number type, as fake tensors.

    Without weights and in half precision (under autocast, for one) they alone make a CPU compute, and save what the
    backward reads, in single precision: such a norm runs again with others in their place.  Empty for any other.
    """
    statistics = leaves(values([arguments[key] for key in ("running_mean", "running_var")]))
    own = arguments["input"].meta["val"].dtype
    alone = arguments["weight"] is None and arguments["bias"] is None
    return statistics if alone and any(t.dtype != own for t in statistics) else []


def _label(descriptor: Any) -> str:
    """An input's name for people: the path of a parameter or buffer, or which argument it is."""
    if descriptor is None:
        return ""
    if hasattr(descriptor, "target"):
        return descriptor.target.removeprefix("model.")
    return f"input{descriptor.idx}" if hasattr(descriptor, "idx") else type(descriptor).__name__
