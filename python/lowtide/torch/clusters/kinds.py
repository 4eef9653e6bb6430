"""What each node of a joint graph is to its clusters: fusible, a view, or an op for itself and why.

Inductor's decompositions and passes have been applied (prepare.py).  A node is fusible if Inductor generates code for it.  Matrix
products, convolutions and attention are kernels of libraries, and stay ops for themselves: templates.  So do effects and random
draws from a generator, which run once, in their order, and whatever Inductor itself calls the eager kernel for.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from ..compat.counting import is_counted
from ..compat.dispatch import OpOverload
from ..compat.inductor import has_kernel_of_inductor
from ..tensors.effects import has_effects, is_of_pytorch
from ..tensors.operators import is_symbol, late_nodes, leaves
from ..tensors.storages import is_dense, storage
from ..tracing.open_sizes import SIZE
from .cluster import CLUSTER

SEED = "lowtide_seed"  # meta: the node's result is a seed, or several, of random numbers

_TEMPLATES = ("_scaled_mm", "_grouped_mm", "sort", "topk", "_int_mm", "_weight_int8pack_mm", "bucketize", "searchsorted")
_ATOMIC = ("index_put", "_unsafe_index_put", "index_put_", "scatter_add", "scatter_reduce", "index_add", "index_reduce",
           "embedding_dense_backward", "max_pool2d_with_indices_backward", "_unsafe_masked_index_put_accumulate")
_REDUCTIONS = ("var_mean", "var", "std", "sum", "mean", "amax", "amin", "max", "min", "prod", "argmax", "argmin", "any", "all", "cumsum",
               "cumprod", "logcumsumexp", "index_put", "_unsafe_index_put", "scatter_add", "scatter_reduce",
               "_low_memory_max_pool_with_offsets", "prepare_softmax_online")


class Kinds:
    """nodes: of the graph, in its order; place: of each there.  late: those behind the barrier.  changed: inputs that the step writes to,
    which have their new values behind the barrier.  apart: what is no view and in no cluster -> why.  readers: of what makes a storage,
    the ops that read it, through views."""

    def __init__(self, joint: fx.GraphModule) -> None:
        self.nodes = list(joint.graph.nodes)
        self.place = {node: i for i, node in enumerate(self.nodes)}
        self.late = late_nodes(joint.graph)
        written = {getattr(descriptor, "mutated_input", None) for _, descriptor in self.outputs()}
        self.changed = {node for node in self.nodes if node.op == "placeholder" and node.meta.get("desc") in written - {None}}
        self.views: set[fx.Node] = set()
        self.fusible: set[fx.Node] = set()
        self.apart: dict[fx.Node, str] = {}
        self.readers: dict[fx.Node, dict[fx.Node, None]] = {}
        for node in self.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                self._enter(node)
        for node in self.nodes:
            if node in self.fusible or node in self.apart:
                for source in self.sources(node):
                    self.readers.setdefault(source, {})[node] = None

    def _enter(self, node: fx.Node) -> None:
        if _is_view(node) or is_symbol(node.meta.get("val")) and not leaves([n.meta.get("val") for n in node.all_input_nodes]):
            self.views.add(node)  # numbers, too, are made where they are read
            return
        why = why_apart(node)
        if why:
            self.apart[node] = why
        else:
            self.fusible.add(node)

    def passes_on(self, node: fx.Node) -> bool:
        """Is it a view, or one of several results?"""
        return node in self.views or node.target is operator.getitem

    def sources(self, node: fx.Node) -> list[fx.Node]:
        """What makes the storages that a node reads."""
        found: dict[fx.Node, None] = {}
        left = list(node.all_input_nodes)
        while left:
            source = left.pop()
            if self.passes_on(source):
                left += source.all_input_nodes
            elif not is_symbol(source.meta.get("val")):
                found[source] = None
        return sorted(found, key=self.place.__getitem__)

    def results(self, node: fx.Node, source: fx.Node) -> list[fx.Node]:
        """What a node reads of what `source` makes: `source`, or of several results those."""
        found: dict[fx.Node, None] = {}
        left = list(node.all_input_nodes)
        while left:
            read = left.pop()
            if read is source or read.target is operator.getitem and read.args[0] is source:
                found[read] = None
            elif self.passes_on(read):
                left += read.all_input_nodes
        return list(found)

    def makers(self, node: fx.Node) -> list[fx.Node]:
        """What makes the storages of a node's own results."""
        return self.sources(node) if self.passes_on(node) else [node]

    def outputs(self) -> Iterator[tuple[fx.Node, object]]:
        """The nodes that the graph returns, with their descriptors."""
        output = self.nodes[-1]
        given = output.args[0]
        assert isinstance(given, (tuple, list)), "a joint graph returns several"
        for node, descriptor in zip(given, output.meta.get("desc") or [None] * len(given), strict=True):
            if isinstance(node, fx.Node):
                yield node, descriptor


def name_of(node: fx.Node) -> str:
    """The operator of a node."""
    target = node.target
    return target.overloadpacket.__name__ if isinstance(target, OpOverload) else str(getattr(target, "__name__", target))


def size_of(node: fx.Node) -> int:
    """Bytes of a node's results."""
    return sum(int(t.numel()) * t.element_size() for t in leaves(node.meta.get("val")))


def is_reduction(node: fx.Node) -> bool:
    return name_of(node) in _REDUCTIONS


def is_copy(node: fx.Node) -> bool:
    """Has its result the numbers of what it reads, in another layout?"""
    return name_of(node) == "clone"


def is_atomic(node: fx.Node) -> bool:
    """May its kernel add numbers in an order of its own each time?"""
    return name_of(node) in _ATOMIC or name_of(node).endswith("scatter_add")


def of_atomics(graph: fx.Graph) -> list[bool]:
    """Of each result of a cluster's graph: is it computed of a sum whose order its kernel may change each time?"""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "call_function" and (is_atomic(node) or not found.isdisjoint(node.all_input_nodes)):
            found.add(node)
    returned: Any = graph.output_node().args[0]
    return [node in found for node in returned]


def _is_view(node: fx.Node) -> bool:
    made = leaves(node.meta.get("val"))
    given = {storage(t) for source in node.all_input_nodes for t in leaves(source.meta.get("val")) if is_dense(t)}
    return bool(made) and bool(given) and all(is_dense(t) and storage(t) in given for t in made) \
        and not (isinstance(node.target, OpOverload) and node.target._schema.is_mutable)


def why_apart(node: fx.Node) -> str:
    """Why a node is in no cluster; empty where it may be."""
    target = node.target
    made = leaves(node.meta.get("val"))
    if target is CLUSTER:
        return "a template of its own"
    if not isinstance(target, OpOverload) or not is_of_pytorch(target):
        return "an operator of its own"
    if target._schema.is_mutable or has_effects(target) or not made:
        return "an effect"
    if torch.Tag.nondeterministic_seeded in target.tags and "scaled_dot_product" not in target.name():
        return "a random draw"
    if is_counted(target.overloadpacket) or name_of(node) in _TEMPLATES or "attention" in name_of(node):
        return "a library's kernel"
    read = [source.meta.get("val") for source in node.all_input_nodes if not source.meta.get(SIZE)]
    if not all(isinstance(value, (torch.Tensor, tuple, list)) for value in read):
        return "of a number that is known when it runs"
    tensors = [*made, *leaves(read)]
    if len({t.device for t in tensors}) > 1:
        return "of several devices"
    if any(t.is_complex() for t in tensors):
        return "complex numbers"
    if not all(map(is_dense, tensors)) or any(t.dtype.is_floating_point and t.element_size() == 1 for t in tensors):
        return "no kernel of Inductor"
    return "" if has_kernel_of_inductor(target) else "no kernel of Inductor"
