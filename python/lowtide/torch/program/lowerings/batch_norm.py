"""Batch norm in training: new running statistics, which are made once, and a norm, which may run again.

It is two ops, STATISTICS (new running statistics) and NORM (input, weight, bias -> output, mean, inverse deviation).
The two are one kernel the first time: STATISTICS takes no time and has no code of its own, and every schedule puts it
right before the first NORM; so whoever reads the new statistics comes after that NORM.  When NORM runs again it is
without the running statistics, or with others in their place where they say in which number type it computes.

On a GPU eager execution runs cuDNN's kernel in single precision.  The tracer keeps it (own_kernels.py) as the operator that
picks the library by the same rule as eager execution does.  NORM then makes a fourth tensor, cuDNN's reserve, which its
backward reads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ...tensors.operators import arguments_of, leaves, touched_bytes, values
from ..builder import ProgramBuilder
from ..describe import describe
from ..emitter import Code, Emitter
from ..program import Program
from .call import CALL, CallEmitter, call_op
from .interface import Lowering

aten = torch.ops.aten
_OWN = aten._native_batch_norm_legit_functional.default
_LIBRARY = aten._batch_norm_with_update_functional.default
_BACKWARDS = {aten.native_batch_norm_backward.default: "train", aten.batch_norm_backward.default: "update"}


class _StatisticsEmitter(Emitter):
    """Nothing: the first NORM makes them."""

    made_by_next = True

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        return False


class _NormEmitter(Emitter):
    """The first time the whole kernel, then the norm alone."""

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        results = len(node.meta["val"])
        if not again:
            code.items(node, CALL.call(code, op, again), range(results))
            return False
        a = arguments_of(node)
        pure = fx.map_arg((a["input"], a["weight"], a["bias"]), code.get)
        statistics = stand_ins(node.target, a)
        if statistics:
            running = [code.call(aten.empty_strided.default, (list(t.shape), list(t.stride())), node, t,
                                 {"dtype": t.dtype, "device": t.device}) for t in statistics]
            training = (True,) if node.target is _OWN else ()
            args = (*pure, *running, *training, a["momentum"], a["eps"])
            made = code.call(node.target, args, node, node.meta["val"])
        else:
            made = code.call(aten._native_batch_norm_legit.no_stats, (*pure, True, a["momentum"], a["eps"]), node,
                             node.meta["val"][:3])
        code.items(node, made, range(results - 2))
        return False


_STATISTICS, _NORM = _StatisticsEmitter(), _NormEmitter()


class BatchNorm(Lowering):
    """A batch norm that makes new running statistics."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return node.target is _LIBRARY or node.target is _OWN and arguments["training"]

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        out, mean, invstd, *reserve, new_mean, new_var = node.meta["val"]
        pure = leaves(values([arguments[key] for key in ("input", "weight", "bias")]))
        running = leaves(values([arguments[key] for key in ("running_mean", "running_var")]))
        name = node.name
        for word in ("_native_batch_norm_legit_functional", "_batch_norm_with_update_functional"):
            name = name.replace(word, "native_batch_norm")
        stats = builder.op(node, _STATISTICS, [*pure, *running], [new_mean, new_var], name=f"{name}.stats",
                           word="lowtide.batch_norm_stats", attributes={"momentum": arguments["momentum"]})
        describe(builder, stats, arguments, {"running_mean": new_mean, "running_var": new_var})
        stats.recomputable, stats.kernel = False, None
        builder.graph.op(stats)
        norm = builder.op(node, _NORM, pure, [out, mean, invstd, *reserve], name=name, word="aten.native_batch_norm",
                          attributes={"eps": arguments["eps"]})
        describe(builder, norm, arguments | {"running_mean": None, "running_var": None},
                 {"out": out, "mean": mean, "invstd": invstd})
        norm.after = [stats]
        # stand-ins for the statistics, and their copies
        norm.workspace += sum(2 * touched_bytes([t]) for t in stand_ins(node.target, arguments))
        builder.graph.op(norm)
        builder.graph.due_at_barrier.append(norm)
        builder.ready_after |= dict.fromkeys(stats.outputs, norm)

    def order(self, program: Program, computes: list[int]) -> list[int]:
        """Each STATISTICS right before the first NORM of its kernel."""
        runs = program.runs
        statistics = {runs[op].node: op for op in computes if runs[op].emitter is _STATISTICS}
        joined: list[int] = []
        for op in computes:
            if runs[op].emitter is _STATISTICS:
                continue
            if runs[op].emitter is _NORM and runs[op].node in statistics:
                joined.append(statistics.pop(runs[op].node))
            joined.append(op)
        return joined


def stand_ins(target: Any, arguments: dict[str, Any]) -> list[torch.Tensor]:
    """The running statistics in whose place others stand when the norm runs again, as fake tensors: a library's kernel runs as
    it did the first time, PyTorch's own without statistics unless it is typed by them."""
    if target is _LIBRARY:
        return leaves(values([arguments[key] for key in ("running_mean", "running_var")]))
    return typed_by_statistics(arguments)


def typed_by_statistics(arguments: dict[str, Any]) -> list[torch.Tensor]:
    """The running statistics of a batch norm in training that computes in their number type, as fake tensors.

    Without weights and in half precision (under autocast, for one) they alone make a CPU compute, and save what the
    backward reads, in single precision: such a norm runs again with others in their place.  Empty for any other.
    """
    statistics = leaves(values([arguments[key] for key in ("running_mean", "running_var")]))
    own = arguments["input"].meta["val"].dtype
    alone = arguments["weight"] is None and arguments["bias"] is None
    return statistics if alone and any(t.dtype != own for t in statistics) else []


class _BackwardEmitter(CallEmitter):
    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]]:
        return node.target, arguments_of(node) | {"running_mean": None, "running_var": None}

    def call(self, code: Code, op: int, again: bool) -> fx.Node:
        node = code.runs[op].own_node
        args = fx.map_arg((*node.args[:3], None, None, *node.args[5:]), code.get)
        return code.call(node.target, args, node, node.meta.get("val"), fx.map_arg(node.kwargs, code.get))


_WITHOUT_STATISTICS = _BackwardEmitter()


class BatchNormBackward(Lowering):
    """The backward of a batch norm in training: its kernel reads no running statistics, so neither does its op."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return node.target in _BACKWARDS and arguments[_BACKWARDS[node.target]]

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        pure = arguments | {"running_mean": None, "running_var": None}
        builder.graph.op(call_op(builder, node, pure, _WITHOUT_STATISTICS))
