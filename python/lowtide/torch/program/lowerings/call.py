"""A node that is one op: one call of its operator, made as often as the plan computes it."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ....frontend.draft import Op
from ....frontend.errors import CaptureError
from ...compat.dispatch import OpOverload
from ...tensors.operators import arguments_of, attributes_of, device_of, is_effect, leaves, operand, operations, values
from ..builder import ProgramBuilder
from ..describe import describe, returned
from ..emitter import Code, Emitter
from ..in_place import out_variant_of, overwritable
from .interface import Lowering

aten = torch.ops.aten
_CLONES_STORAGE = (aten.copy.default, aten.slice_scatter.default, aten.select_scatter.default,
                   aten.diagonal_scatter.default, aten.as_strided_scatter.default)


class CallEmitter(Emitter):
    """The node's own call, and an item for each of several results that somebody reads."""

    holds_results = True

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        return overwritable(node, arguments_of(node)) if isinstance(node.target, OpOverload) else {}

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]] | None:
        target = node.target
        plain = isinstance(target, OpOverload) and not target._schema.is_mutable
        return (target, arguments_of(node)) if plain else None

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        made = _call_over(code, op, over[0]) if over else self.call(code, op, again)
        if isinstance(node.meta.get("val"), (tuple, list)):
            code.items(node, made, range(len(node.meta["val"])))
        else:
            code.values[node] = made
        return False

    def call(self, code: Code, op: int, again: bool) -> fx.Node:
        """The node of the call."""
        node = code.runs[op].own_node
        args, kwargs = code.arguments(node)
        return code.call(node.target, args, node, node.meta.get("val"), kwargs)


def _call_over(code: Code, op: int, tensor: int) -> fx.Node:
    """The node of the call that writes over `tensor`."""
    run = code.runs[op]
    node, name = run.own_node, run.over[tensor]
    args, kwargs = code.arguments(node)
    variant = out_variant_of(node.target, device_of(node).type)
    assert variant is not None, "it may write over none without one"
    return code.call_over(code.get(arguments_of(node)[name]), variant, node.target, args, node, node.meta["val"], kwargs)


CALL = CallEmitter()


class Call(Lowering):
    """Any node."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return True

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        op = call_op(builder, node, arguments, CALL)
        builder.graph.op(op, effect=not op.outputs or is_effect(node, arguments))


def call_op(builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any], emitter: Emitter) -> Op:
    """The op of a call that reads these arguments, still to be appended."""
    op = builder.op(node, emitter, leaves(values(list(arguments.values()))), builder.new(node),
                    flops=operations(node, arguments), attributes=attributes_of(node, arguments))
    if node.target in _CLONES_STORAGE:
        _clone_storage(builder, op, operand(node).meta["val"])
    describe(builder, op, arguments, returned(node.target, node.meta.get("val")))
    if not op.outputs:  # an assertion, for one: all that it does is its effect, so nobody may try it out
        op.kernel = None
    return op


def _clone_storage(builder: ProgramBuilder, op: Op, source: torch.Tensor) -> None:
    """These operators clone all of the storage that their first argument may be a part of.  So do their fake
    kernels, but not the results that fake tensors take from their cache."""
    (tensor,) = op.outputs
    tensors = builder.graph.tensors
    tensors[tensor]["bytes"] = max(tensors[builder.known([source])[0]]["bytes"], tensors[tensor]["bytes"])


def lower_effect(builder: ProgramBuilder, node: fx.Node) -> None:
    """Append an operator that is called for what it does beside its results (a check of a factorisation, for one).
    A token that goes through all of these keeps their order; nobody runs one to learn its price."""
    called: Any = node.args[1]
    op = builder.op(node, CALL, leaves(values([node.args, node.kwargs])), builder.new(node), word=str(called.overloadpacket))
    schema = called._schema.arguments
    arguments = {a.name: value for a, value in zip(schema, node.args[2:], strict=False)} | dict(node.kwargs)
    describe(builder, op, arguments, {})
    op.kernel = None
    builder.graph.op(op, effect=True)


def lower_functionalized(builder: ProgramBuilder, node: fx.Node) -> None:
    """Append an operator that writes to its arguments.  AOTAutograd has it write to copies, which are results behind its
    own, and says by further arguments which part of which copy is which argument."""
    op = builder.op(node, CALL, leaves(values(node.kwargs)), builder.new(node))
    bases: Any = node.kwargs["_all_bases"]
    value, copies = node.meta["val"], len(bases)
    results = {"": value[:len(value) - copies], "_all_bases": value[len(value) - copies:]} if copies else {"": value}
    describe(builder, op, dict(node.kwargs), results)
    builder.graph.op(op, effect=is_effect(node, dict(node.kwargs)))


def lower_write_back(builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
    """Append a new value into an input: what Inductor's tracing leaves of an update in place."""
    if node.target is not aten.copy_.default or arguments["self"].op != "placeholder" or node.users:
        raise CaptureError(f"{node.name}: {node.target} writes to its arguments, and no plan can run that")
    target, source = arguments["self"].meta["val"], arguments["src"].meta["val"]
    op = builder.op(node, CALL, [target, source], [])
    describe(builder, op, arguments, {})
    op.mutates, op.recomputable = builder.known([target]), False
    builder.graph.op(op)
    if node not in builder.late:
        builder.graph.due_at_barrier.append(op)
