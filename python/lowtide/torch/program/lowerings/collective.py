"""Functional collectives and the waits for them.

A collective returns at once; `wait_tensor` returns the same storage when what belongs there has arrived.  So a pair is two ops:

* The collective makes its result, on the network lane, beside the computing.  Collectives run in the order of the model, which
  is the same on all ranks whatever each of them plans, so none waits for another for ever.
* The wait makes the waited-for tensor in the place of that result, in the pass in which the model waits.  It reads the
  collective's operands too, because the process group does until then, and what the group holds for itself meanwhile.

An all-gather computes nothing.  Where all ranks run one plan, it may run again, and its wait with it: a plan may gather parameters
again, instead of keeping them for the backward.  Reductions, and everything where ranks plan for themselves, run once.

A wait for something else, such as a tensor that came as an argument, is an op without results: what it returns is what it was given.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from ...ranks.collectives import collective_of, gathers, group_size, held_meanwhile, is_awaited, is_wait, lets_go_late, waits_for
from ...runtime.let_go import await_sole_owner
from ...tensors.operators import leaves, operand
from ..builder import ProgramBuilder
from ..emitter import Code
from .call import CallEmitter, call_op
from .interface import Lowering


class WaitEmitter(CallEmitter):
    """The call, which returns the storage that it is given, whether the plan says so or counts it twice."""

    holds_results = False
    returns_operand = True

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        return {"tensor": operand(node).meta["val"]}

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]] | None:
        return None

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        super().emit(code, op, again, following, ())
        node = code.runs[op].own_node
        awaited = collective_of(node)
        if awaited is not None and lets_go_late(awaited) and _has_ended(code, awaited):
            code.add(await_sole_owner, (code.values[node],), None)
        return False


class CollectiveEmitter(CallEmitter):
    """The call."""

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]] | None:
        return None


RANKS = "lowtide.ranks"  # the literal with the size of the process group
COLLECTIVE, WAIT = CollectiveEmitter(), WaitEmitter()


class Collective(Lowering):
    """A collective that the graph waits for before anything else reads its results."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return is_awaited(node)

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        op = call_op(builder, node, arguments, COLLECTIVE)
        size = group_size(op.kernel)
        if size is not None:
            op.arguments[RANKS] = size
        held = held_meanwhile(op.kernel)
        if held:
            op.outputs.append(builder.graph.tensor(f"{op.name} of the group", held, None, [held], "u8"))
        op.lane = "network"
        builder.graph.op(op, effect=True)
        op.recomputable = builder.gathers_again and gathers(node.target)


class Wait(Lowering):
    """The wait for a collective."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return is_wait(node.target)

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        awaited = collective_of(node)
        collective = None if awaited is None else builder.graph.producer[builder.known([operand(node).meta["val"]])[0]]
        if collective is None:
            builder.alias(node.meta["val"], operand(node).meta["val"])
        op = call_op(builder, node, arguments, WAIT)
        if collective is not None:
            beside = [t for t in collective.outputs[len(leaves(collective.kernel.results)):] if t not in op.inputs]
            op.inputs += [t for t in (*collective.inputs, *beside) if t not in op.inputs]
        op.recomputable = collective is not None and collective.recomputable
        if builder.graph.barrier is not None:
            op.after.append(builder.graph.barrier)
        builder.graph.op(op)
        if collective is None:
            builder.ready_after[op.inputs[0]] = op
        if node not in builder.late:
            builder.graph.due_at_barrier.append(op)


def _has_ended(code: Code, collective: fx.Node) -> bool:
    """Has the code waited for all results of the collective's latest call?"""
    for wait in waits_for(collective):
        source = operand(wait)
        made = code.values.get((source.args[0], source.args[1]) if source.target is operator.getitem else source)
        waited = code.values.get(wait)
        if waited is None or waited.args[0] is not made:
            return False
    return True
