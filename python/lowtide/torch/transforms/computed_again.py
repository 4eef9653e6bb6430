"""A joint graph whose backward recomputes the largest results of the forward.

A split of the loss head needs its forward and backward in one region, which they are if the loss is a sum over rows.  A
preference loss compares rows afterwards, so the backward begins with a value that depends on all rows.  Forward and backward
are then not one region, and the log-probabilities are held in between.  If the backward recomputes them, forward and backward
each have a region of their own, and both can be split.

This always costs one more computation of these results.  So the graph is only planned if plans of the other do not keep the
budget.  Results stay bit-identical: kernels are called again with the same arguments.
"""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import replace
from typing import Any

import torch
from torch import fx

import lowtide

from ..compat.dispatch import OpOverload
from ..program.emitter import Run
from ..program.program import AnyProgram
from ..tensors.operators import arguments_of, fake_mode_of, is_effect, is_tangent, leaves
from ..tensors.storages import bytes_of, storage

_AGAIN = "lowtide_again"
_LARGE = 2  # at least one in so many of the largest result's bytes


def with_computed_again(joint: fx.GraphModule) -> fx.GraphModule | None:
    """A copy of it in which that is so; None where the backward reads none of the largest results, or these cannot be
    computed twice."""
    late: set[fx.Node] = set()
    for node in joint.graph.nodes:
        if node.op != "output" and ("backward" in node.meta.get("partitioner_tag", "") or is_tangent(node)
                                    or not late.isdisjoint(node.all_input_nodes)):
            late.add(node)
    early = [n for n in joint.graph.nodes if n.op == "call_function" and n not in late]
    sizes = {n: max(map(bytes_of, leaves(n.meta.get("val"))), default=0) for n in early}
    least = max(sizes.values(), default=0) // _LARGE
    large = {n for n, size in sizes.items() if size >= max(1, least)}
    wanted = [n for n in early if n in large and any(user in late for user in n.users)]
    chain: set[fx.Node] = set()
    stack = list(wanted)
    while stack:
        node = stack.pop()
        if node in chain:
            continue
        if not _may_run_twice(node):
            return None
        chain.add(node)
        stack += [source for source in node.all_input_nodes if source in large]
    if not any(_owns(n) for n in chain):
        return None
    return _rewired(joint, chain, late)


def _may_run_twice(node: fx.Node) -> bool:
    if node.target is operator.getitem:
        return True
    return isinstance(node.target, OpOverload) and not node.target._schema.is_mutable \
        and torch.Tag.nondeterministic_seeded not in node.target.tags and not is_effect(node, arguments_of(node))


def _owns(node: fx.Node) -> bool:
    """Does it make a storage?"""
    read = {storage(t) for source in node.all_input_nodes for t in leaves(source.meta.get("val"))}
    return any(storage(t) not in read for t in leaves(node.meta.get("val")))


def _rewired(joint: fx.GraphModule, chain: set[fx.Node], late: set[fx.Node]) -> fx.GraphModule:
    """The copy in which what is late reads a second computation of the chain."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    again: dict[fx.Node, fx.Node] = {}
    mode = next(fake_mode_of(t) for n in joint.graph.nodes for t in leaves(n.meta.get("val")))

    def like_its_arguments(made: fx.Node) -> None:
        args, kwargs = fx.map_arg((made.args, made.kwargs), lambda n: n.meta["val"])
        with mode:
            target: Any = made.target
            made.meta["val"] = target(*args, **kwargs)

    def second(node: fx.Node) -> fx.Node:
        if node not in chain:
            return copies[node]
        if node not in again:
            made = graph.node_copy(node, second)
            made.meta = {k: v for k, v in node.meta.items() if k != "desc"} | {"partitioner_tag": "is_backward", _AGAIN: True}
            like_its_arguments(made)
            again[node] = made
        return again[node]

    moved: set[fx.Node] = set()  # in the backward, views of what is computed again
    for node in joint.graph.nodes:
        copies[node] = graph.node_copy(node, second if node in late else copies.__getitem__)
        if node in late and not {*chain, *moved}.isdisjoint(node.all_input_nodes) and not _owns(node):
            like_its_arguments(copies[node])
            moved.add(node)
    graph.lint()
    return fx.GraphModule(joint, graph)


def as_backward(program: AnyProgram) -> AnyProgram:
    """Such a program, in which what is computed again waits for what its readers read beside it, so that it belongs to the
    backward and not to the forward."""
    graph = program.graph
    ops, after = graph.ops, {}
    again = _again(program.runs)
    producer = {t: i for i, op in enumerate(ops) for t in op.outputs}
    reads = [[producer[t] for t in op.inputs if t in producer] for op in ops]
    place = {op: at for at, op in enumerate(graph.order)}
    for i, op in enumerate(ops):
        if not again[i]:
            continue
        ends, seen = [i], {i}
        while ends and all(again[r] for r in _readers(reads, ends)):
            ends = [r for r in _readers(reads, ends) if r not in seen]
            seen.update(ends)
        beside = {other for r in _readers(reads, ends) if not again[r] for other in reads[r]
                  if not again[other] and place[other] < place[i] and ops[other].phase == "backward"}
        after[i] = {"after": sorted({*op.after, *beside})}
    return replace(program, graph=graph.edited(ops=after))


def again_in(runs: list[Run], graph: lowtide.Graph) -> Counter[str]:
    """The modules of recomputed ops, with the number of these ops."""
    again = _again(runs)
    return Counter(op.origin or "(the model itself)" for op, is_again in zip(graph.ops, again, strict=True) if is_again)


def _again(runs: list[Run]) -> list[bool]:
    return [run.node is not None and _AGAIN in run.node.meta for run in runs]


def _readers(reads: list[list[int]], ops: list[int]) -> list[int]:
    return [r for r, sources in enumerate(reads) if any(op in sources for op in ops)]
