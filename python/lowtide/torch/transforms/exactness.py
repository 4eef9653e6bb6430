"""Determines which results of a plan are bit-identical: follows sums over parts to the results of the step.

Recomputation, ops in place, copies and updates in the backward are exact, and so is a hoisted backward if the loss is scaled by
powers of two.  Rows in parts are exact too.  Sums over parts are added in another order, and some substitutions change the
order of sums.  These sums are followed through the transformed graph to the named results of the step.  So is what fused kernels
add up by atomics, which differs from run to run without a plan, too.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from ...frontend.exactness import OF_FORWARD, Exactness
from ..clusters.cluster import CLUSTER, cluster_of_node
from ..clusters.kinds import of_atomics
from ..pricing.trial import instructions
from ..program.lowerings.random_draws import DrawEmitter
from ..program.program import Program, owned
from ..tensors.operators import leaves
from ..tensors.storages import storage

_SUMS, _FOLLOWS = 1, 2  # a sum of parts that are as in the whole; what is computed of such sums, or otherwise by a rule
_MOVES = ("aten.clone", "lowtide.join")  # what they make has the numbers that they read
_HALF = ("f16", "bf16")


def exactness(program: Program, transforms: list[dict[str, Any]], fused: bool = False) -> Exactness:
    """The exactness of a step's results.  program: after these transforms.  fused: as for Exactness."""
    hoisted = any(t["kind"] == "hoist" for t in transforms) and not program.in_one_call
    updates = program.updates is not None
    ordered = not fused or torch.are_deterministic_algorithms_enabled()  # by eager kernels, or by Inductor
    atomic = () if ordered else tuple(sorted(name for name, level in _levels_of_results(program, _atomic(program)).items() if level))
    if all(t["kind"] == "hoist" for t in transforms):
        return Exactness(hoisted=hoisted, updates=updates, fused=fused, atomic=atomic)
    changed = _changed(program)
    levels = _levels_of_results(program, changed)
    sums = tuple(sorted(name for name, level in levels.items() if level == _SUMS))
    follows = tuple(sorted(name for name, level in levels.items() if level == _FOLLOWS))
    gradients = [name for name in levels if name not in OF_FORWARD]
    half = any(program.graph.tensor(t).dtype in _HALF for t, level in changed.items() if level == _SUMS)
    single = any(t["kind"] == "split" and t["parts"] > 2 for t in transforms)
    parts = tuple(dict.fromkeys(t["parts"] for t in transforms if t["kind"] == "split"))
    return Exactness(sums, follows, parts,
                     whole=len(parts) == 1 and all(levels[name] == _SUMS for name in gradients) and _by_batches(program),
                     in_single=half and single, masks=_draws(program), hoisted=hoisted, updates=updates, fused=fused,
                     atomic=tuple(name for name in atomic if name not in follows),
                     tried=instructions() if any(run.emitter.trial for run in program.runs) else "")


def _changed(program: Program) -> dict[int, int]:
    """The tensors that may have other bits, and how."""
    graph = program.graph
    found: dict[int, int] = {}
    for op in graph.order:
        entry, emitter = graph.op(op), program.runs[op].emitter
        levels = [found.get(t, 0) for t in entry.inputs]
        if emitter.adds_parts:  # what there is so far, and a part
            level = _FOLLOWS if levels[0] == _FOLLOWS or levels[-1] else _SUMS
        elif emitter.keeps_bits and (entry.kind in _MOVES or not any(levels)) \
                and (emitter.trial is None or emitter.trial.passes()):
            level = max(levels, default=0)
        else:
            level = _FOLLOWS
        if level:
            found |= dict.fromkeys(entry.outputs, level)
    return found


def _atomic(program: Program) -> dict[int, int]:
    """The tensors that clusters add up by atomics, and what is computed of them."""
    graph = program.graph
    found: dict[int, int] = {}
    for op in graph.order:
        entry, node = graph.op(op), program.runs[op].node
        if any(t in found for t in entry.inputs):
            found |= dict.fromkeys(entry.outputs, _FOLLOWS)
        elif node is not None and node.target is CLUSTER and not cluster_of_node(node).repeats:
            cluster = cluster_of_node(node)
            varies = [True] * len(entry.outputs) if cluster.kind else of_atomics(cluster.module.graph)
            found |= {t: _FOLLOWS for t, it_does in zip(entry.outputs, varies, strict=True) if it_does}
    return found


def _levels_of_results(program: Program, changed: dict[int, int]) -> dict[str, int]:
    """The level of difference of each result that the caller sees, by its name; 0 for none."""
    tensors = {}
    for tensor, owner in program.owners.items():
        made = owned(*owner)
        if made is not None:
            tensors[storage(made)] = tensor

    def level(node: Any) -> int:
        found = leaves(node.meta.get("val")) if isinstance(node, fx.Node) else ()
        return max((changed.get(tensors.get(storage(t), -1), 0) for t in found), default=0)

    levels: dict[str, int] = {}

    def note(name: str, found: int) -> None:  # several may be called the same
        levels[name] = max(levels.get(name, 0), found)

    given = list(zip(program.forward_outputs, program.forward_descriptors, strict=True))
    results = [node for node, desc in given if isinstance(node, fx.Node) and not hasattr(desc, "mutated_input")]
    word = "loss" if len(results) == 1 and program.backward_descriptors else "results"
    for node, desc in given:
        name = "buffers" if hasattr(desc, "mutated_input") else word
        note(name, level(node))
    for node, desc in zip(program.backward_outputs, program.backward_descriptors, strict=True):
        if isinstance(node, fx.Node):
            note(program.label_of(desc.grad_of), level(node))
    for op, run in enumerate(program.runs):
        slot = getattr(run.emitter, "slot", None)
        if slot is not None:
            gradient, *_ = program.graph.op(op).inputs
            note(program.labels.get(slot, f"input{slot}"), changed.get(gradient, 0))
    return levels


def _draws(program: Program) -> bool:
    return any(run.state is not None or isinstance(run.emitter, DrawEmitter) for run in program.runs)


def _by_batches(program: Program) -> bool:
    """Do the parts read nothing of the inputs but slices along their first dimension, and all of the parameters?"""
    graph = program.graph
    trained = {getattr(getattr(desc, "grad_of", None), "idx", None) for desc in program.backward_descriptors}
    parameters = {tensor for tensor, (_, node) in program.owners.items() if node.op == "placeholder"
                  and getattr(node.meta.get("desc"), "idx", None) in trained - {None}}
    found = False
    for op, run in zip(graph.ops, program.runs, strict=True):
        for operand in op.operands if run.part else ():
            tensor = operand["tensor"]
            shape, count = graph.tensor(tensor).shape, math.prod(operand["shape"])
            if graph.tensor(tensor).producer is not None or not shape or count >= math.prod(shape):
                continue
            row = math.prod(shape[1:])
            if tensor in parameters or not _is_dense(operand) or count % row or operand["offset"] % row:
                return False
            found = True
    return found


def _is_dense(operand: dict[str, Any]) -> bool:
    """Do its elements lie side by side?"""
    expected = 1
    for stride, extent in sorted(zip(operand["strides"], operand["shape"], strict=True)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True
