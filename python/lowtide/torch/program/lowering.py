"""Joint FX graph of a training step -> program: the Lowtide graph, and for each op the node that runs it.

A tensor is one storage.  A node whose results are all in existing storages is a view, not an op.  The bytes of a tensor are
those of the fake result, or those that the kernel was measured to hold, if larger (costs.py).  The order of the nodes is the
given order.  The barrier stands between forward and backward.  Nodes that are not exactly one op are lowered in `lowerings`, a
file for each kind.
"""

from __future__ import annotations

import operator
from collections.abc import Container
from dataclasses import replace
from typing import Any

import torch

from ...frontend.draft import BrokenOrder, Op
from ...frontend.errors import CaptureError
from ...frontend.price import Price
from ..clusters.higher_order import as_templates
from ..compat import pytree
from ..compat.aot import outputs_of
from ..compat.dispatch import OpOverload, auto_functionalized_v2, with_effects
from ..tensors.operators import arguments_of, is_symbol, is_tangent, leaves, values
from ..tracing.gradient_layout import lay_out_gradients
from ..tracing.origins import label_of, unexpected
from ..tracing.real_types import correct_types
from ..tracing.shared_inputs import tell_apart
from ..tracing.unused_results import lay_out_sums
from .builder import ProgramBuilder
from .lowerings import lowering_of
from .lowerings.barrier import keep_from_backward, lower_barrier, read_by_backward
from .lowerings.call import lower_effect, lower_functionalized, lower_write_back
from .lowerings.dropout import as_in_eager
from .lowerings.update import Updates, lower_updates, names_of_gradients
from .overwriting import pair
from .program import Program, results_of

_SMALL = 64  # bytes that every allocator rounds up to


def lower(joint: torch.fx.GraphModule, num_forward_outputs: int, price: Price, name: str,
          state_bytes: int | None = None, replays: bool = True, trained: Container[int] = (),
          techniques: Container[str] = ("recompute", "in_place"), updates: Updates | None = None,
          changing: Container[int] = (), results: Container[int] = (), gathers_again: bool = False,
          draws_again: bool = True) -> Program:
    """The program of a joint graph with descriptors, after gradients got the layout of what they belong to.

    price: what its kernels cost.  state_bytes: those of a generator's state, by default that of each draw's
    device (random_draws.STATE_BYTES).  replays: may what runs the graph draw again from a state, and write over
    operands?
    trained: as of lay_out_gradients.  techniques: what plans of the program may use.
    updates: what becomes of gradients of the model's parameters; the others, or all, are handed out.
    gathers_again: may plans run an all-gather twice, because all ranks run the same plan?
    draws_again: as of ProgramBuilder.
    changing, results: arguments, and results of the forward, that code between forward and backward may write to.

    Raises CaptureError, and nothing else, with the node named: for an operator that no plan could run, for a read
    after an update in place, and for whatever else goes wrong on the way.
    """
    lowering = None
    try:
        as_templates(joint, fused=False)  # those that no clusters were formed around
        if price.real and replays:
            as_in_eager(joint)
            tell_apart(joint, trained)
            correct_types(joint, lay_out_sums(joint))
        lay_out_gradients(joint, trained)
        lowering = _Lowering(joint, num_forward_outputs, price, state_bytes, replays, techniques, updates, gathers_again, draws_again)
        return lowering.run(name, changing, results)
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
                 state_bytes: int | None, replays: bool, techniques: Container[str], updates: Updates | None,
                 gathers_again: bool, draws_again: bool) -> None:
        self._joint, self._price, self._techniques, self._updates = joint, price, techniques, updates
        self.at: torch.fx.Node | None = None  # the node that is being lowered
        self._builder = ProgramBuilder(joint, state_bytes, replays, gathers_again, draws_again)
        self._graph = self._builder.graph
        self._forward: list[Any]
        self._backward: list[Any]
        outputs: Any = outputs_of(joint, num_fwd_outputs=num_forward_outputs)
        self._forward, self._backward, self._forward_desc, self._backward_desc = map(list, outputs)
        self._inputs = [n for n in joint.graph.nodes if n.op == "placeholder"]
        self._nodes = [n for n in joint.graph.nodes if n.op not in ("placeholder", "output")]
        self._tangents = [n for n in self._inputs if is_tangent(n)]

    def run(self, name: str, changing: Container[int], results: Container[int]) -> Program:
        late = self._builder.late
        self._enter_inputs()
        for node in self._nodes:
            if node not in late:
                self._lower(node)
        lower_barrier(self._builder, self._inputs, self._forward, self._forward_desc, self._tangents)
        for node in self._nodes:
            if node in late:
                self._lower(node)
        written = [n for n in self._inputs if getattr(n.meta.get("desc"), "idx", None) in changing]
        written += [n for i, n in results_of(self._forward, self._forward_desc) if i in results]
        kept = keep_from_backward(self._builder, written)
        needed = self._needed()
        self._price_all()
        if self._updates:
            gradients = names_of_gradients(self._inputs, self._backward, self._backward_desc)
            lower_updates(self._builder, gradients, self._updates, self._price, self._handed_out())
        outputs = self._outputs()
        if self._builder.replays and "in_place" in self._techniques:
            pair(self._builder, self._joint, outputs)
        if "recompute" not in self._techniques:
            for op in self._graph.ops:
                op.recomputable = False
        graph = self._graph.finish(name, outputs)
        place = {op: i for i, op in enumerate(self._graph.ops)}
        runs = [replace(op.runs, state=place[op.runs.state] if op.runs.state else None) for op in self._graph.ops]
        backward = [None if self._is_taken(desc) else node
                    for node, desc in zip(self._backward, self._backward_desc, strict=True)]
        captured = self._updates.captured if self._updates and any(map(self._is_taken, self._backward_desc)) else None
        return Program(self._joint, graph, runs, place[self._graph.crossed], self._forward, backward,
                       self._forward_desc, self._backward_desc, self._builder.views, self._owners(place), updates=captured,
                       kept=tuple(kept), needed=needed)

    def _needed(self) -> frozenset[int]:
        """The arguments that the backward reads as it was traced."""
        read = read_by_backward(self._builder)
        return frozenset(n.meta["desc"].idx for n in self._inputs if hasattr(n.meta.get("desc"), "idx")
                         and not read.isdisjoint(self._builder.known(leaves(n.meta.get("val")))))

    def _is_taken(self, descriptor: Any) -> bool:
        """Does an update take the gradient of that descriptor?"""
        return self._updates is not None and label_of(getattr(descriptor, "grad_of", None)) in self._updates.rules.of

    def _handed_out(self) -> list[torch.fx.Node]:
        """The nodes that the caller gets, without gradients that updates use."""
        kept = [node for node, desc in zip(self._backward, self._backward_desc, strict=True) if not self._is_taken(desc)]
        return [n for n in (*self._forward, *kept) if isinstance(n, torch.fx.Node)]

    def _owners(self, place: dict[Op, int]) -> dict[int, tuple[Any, torch.fx.Node]]:
        owners: dict[int, tuple[Any, torch.fx.Node]] = {}
        for node in (*self._inputs, *self._nodes):
            value = node.meta.get("val")
            several = isinstance(value, (tuple, list))
            for i, t in enumerate(value if several else [value]):
                tensor = self._builder.find(t)
                if tensor is not None:
                    owners.setdefault(tensor, ((node, i) if several else node, node))
        for op in self._graph.ops:
            if op.runs.state:
                owners[op.runs.state.outputs[0]] = ("state", place[op.runs.state]), op.runs.node
        return owners

    def _enter_inputs(self) -> None:
        for node in self._inputs:
            if is_tangent(node):
                continue
            descriptor = node.meta.get("desc")
            role = {"ParamAOTInput": "parameter", "BufferAOTInput": "state"}.get(type(descriptor).__name__, "input")
            for t in leaves(node.meta.get("val")):
                self._builder.tensor(t, label_of(descriptor) or node.name, role)

    def _lower(self, node: torch.fx.Node) -> None:
        self.at = node
        builder = self._builder
        if node.op == "get_attr":
            value = operator.attrgetter(str(node.target))(self._joint)
            for t in leaves(node.meta.get("val", value)):
                builder.tensor(t, node.name, "constant")
            return
        if node.target is operator.getitem:
            return
        value = node.meta.get("val")
        if is_symbol(value) and not any(leaves(values(source)) for source in node.all_input_nodes):
            builder.views.add(node)  # made of numbers where it is read
            return
        if not leaves(value) and value is not None and not isinstance(value, (list, tuple)):
            raise CaptureError(f"{node.name}: {node.target} computes a size while the step runs; a plan needs fixed "
                               "sizes")
        called: Any = node.args[1] if node.target is with_effects else None
        if called is not None and not called._schema.is_mutable:
            lower_effect(builder, node)
            return
        if node.target is auto_functionalized_v2 and isinstance(node.args[0], OpOverload):
            lower_functionalized(builder, node)
            return
        if not isinstance(node.target, OpOverload):
            raise CaptureError(f"{node.name}: {node.target} is no operator on tensors; capture the model without "
                               "torch.compile, control-flow operators and the like")
        arguments = arguments_of(node)
        if node.target._schema.is_mutable:
            lower_write_back(builder, node, arguments)
        elif value is not None and not builder.new(node):
            builder.views.add(node)
        else:
            lowering_of(node, arguments).lower(builder, node, arguments)

    def _price_all(self) -> None:
        self.at = None
        priced = [op for op in self._graph.ops if op.kernel]
        self._price.prepare([op.kernel for op in priced])
        for op in priced:
            op.time, workspace, held = self._price(op.kernel)
            op.workspace += workspace
            self._hold(op, held)
        for first, second in self._builder.one_kernel:
            first.time = max(first.time - second.time, 0)

    def _hold(self, op: Op, held: list[int]) -> None:
        """Raise the bytes of what an op makes to what its kernel's results hold."""
        if not held or not op.runs.emitter.holds_results:
            return
        for t, size in zip(pytree.tree_leaves(op.kernel.results), held, strict=False):
            tensor = self._builder.find(t)
            if tensor in op.outputs:
                self._graph.tensors[tensor]["bytes"] = max(self._graph.tensors[tensor]["bytes"], size)

    def _outputs(self) -> list[int]:
        """The tensors that the caller holds at the end, without gradients that updates use and without returned inputs.

        New values of inputs are copied and dropped when the forward has ended.  The autograd engine holds
        the tangents until the backward has returned.  What the forward hands out the caller holds too, so
        nothing is won by making it a second time, and a free would free nothing.
        """
        kept = [n for n, desc in zip(self._forward, self._forward_desc, strict=True)
                if isinstance(n, torch.fx.Node) and not hasattr(desc, "mutated_input")]
        held = self._builder.known(leaves(values([*kept, *self._tangents])))
        outputs = [t for t in held if t in self._graph.producer]
        for tensor in outputs:
            if self._graph.tensors[tensor]["bytes"] > _SMALL:
                self._graph.producer[tensor].recomputable = False
        gradients: dict[int, list[str]] = {}
        for node, desc in zip(self._backward, self._backward_desc, strict=True):
            if not isinstance(node, torch.fx.Node):
                continue
            taken = self._is_taken(desc)
            for tensor in self._builder.known(leaves(node.meta["val"])):
                if tensor in self._graph.producer:
                    outputs += [] if taken else [tensor]
                    gradients.setdefault(tensor, []).append(f"{label_of(getattr(desc, 'grad_of', None))}.grad")
        for tensor, names in gradients.items():
            self._graph.tensors[tensor] |= {"name": ", ".join(names), "role": "gradient"}
        return list(dict.fromkeys(outputs))
