"""The tensors of a program that ops may overwrite.

A plan runs an op in place only if no later op of the graph reads the operand.  This module excludes tensors that others may
see: arguments and results of the graph, operands and results of custom operators (which may keep them), tensors of a collective
for which the graph does not wait, and tensors of asynchronous copies.  in_place.py lists the operands that an operator can
overwrite at all.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from torch import fx

from ..compat.dispatch import OpOverload
from ..ranks.collectives import collective_of
from ..tensors.effects import communicates
from ..tensors.operators import arguments_of, is_symbol, leaves, values
from ..tensors.storages import is_dense, storage
from .builder import ProgramBuilder

_KNOWN = ("aten", "prims", "lowtide")  # namespaces of operators that keep nothing of what they read


def pair(builder: ProgramBuilder, joint: fx.GraphModule, outputs: list[int]) -> None:
    """Note on the ops of a program over which of their operands they may write.  outputs: those of the graph."""
    tensors, producer = builder.graph.tensors, builder.graph.producer
    seen = _seen_by_others(joint)
    for op in builder.graph.ops:
        node = op.runs.node
        for name, operand in op.runs.emitter.overwritable(node).items() if node else ():
            tensor = builder.find(operand)
            result = op.runs.emitter.result_over(node, name)
            if tensor not in producer or tensor in outputs or producer[tensor] is builder.graph.barrier \
                    or tensor in op.mutates or (storage(operand) in seen and not op.runs.emitter.returns_operand) or result >= len(op.outputs) \
                    or tensors[tensor]["bytes"] != tensors[op.outputs[result]]["bytes"]:
                continue
            op.in_place.append([tensor, op.outputs[result]])
            op.runs = replace(op.runs, over={**op.runs.over, tensor: name})


def _seen_by_others(joint: fx.GraphModule) -> set[int]:
    """Storages that may be read when the graph's own nodes have all read them."""
    seen: set[int] = set()
    here: set[int] = set()
    devices = set()
    for node in joint.graph.nodes:
        made = [t for t in leaves(node.meta.get("val")) if is_dense(t)]
        devices |= {t.device.type for t in made}
        here |= {storage(t) for t in made if t.device.type == "cpu"}
        if node.op == "call_function" and not _keeps_nothing(node):
            read = leaves(values([list(node.args), dict(node.kwargs)]))
            seen |= {storage(t) for t in (*made, *read) if is_dense(t)}
    # a copy from the host may still be on its way when the next kernel on the host begins
    return seen | here if len(devices) > 1 else seen


def _keeps_nothing(node: fx.Node) -> bool:
    target = node.target
    if target is operator.getitem or is_symbol(node.meta.get("val")) or collective_of(node) is not None:
        return True
    if not isinstance(target, OpOverload) or target.namespace not in _KNOWN or communicates(target):
        return False
    return not arguments_of(node).get("non_blocking")
