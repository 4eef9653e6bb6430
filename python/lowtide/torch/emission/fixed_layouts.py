"""Code for tensors that lie as the graph's fake tensors say: fewer and faster calls, with the same results.

Each view is made by one call from what owns its storage, whose strides are known.  A frequent operator is called by PyTorch's own
function, which finds its kernel in half the time that the operator's object takes, and a cluster by its compiled function.

A fake kernel may not say how the real one's result lies, and a hook on saved tensors may hand back others.  So the code first runs
with ordinary views and looks at every tensor that views are made of, and at what clusters read.  Only if all lie as they should is
this code used, and only for arguments that do.  The stride of a dimension of one element may be another: it says nothing to a cluster,
and views of such a tensor stay ordinary ones, since they have to have the stride that it has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ..compat.dispatch import OpOverload
from ..compat.tensors import reinterpret
from ..program.emitter import BOXED
from ..tensors.operators import leaves
from ..tensors.storages import is_dense, lies_like, storage

aten = torch.ops.aten
_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    aten.mm.default: torch.mm, aten.addmm.default: torch.addmm, aten.bmm.default: torch.bmm, aten.baddbmm.default: torch.baddbmm,
    aten.add.Tensor: torch.add, aten.sub.Tensor: torch.sub, aten.mul.Tensor: torch.mul, aten.div.Tensor: torch.div,
    aten.relu.default: torch.relu, aten.tanh.default: torch.tanh, aten.sigmoid.default: torch.sigmoid,
    aten.embedding.default: torch.embedding, aten.convolution.default: torch.convolution,
    aten.native_layer_norm.default: torch.native_layer_norm,
}  # fmt: skip


def function_of(node: fx.Node) -> Callable[..., Any] | None:
    """A function that does what a node's operator does, in less time; None if none is known."""
    function = _FUNCTIONS.get(node.target)
    if function is None:
        return None
    target: Any = node.target
    # a number in the place of a tensor may be another overload to the function
    tensors = [i for i, a in enumerate(target._schema.arguments[:len(node.args)]) if str(a.type) == "Tensor"]
    return function if all(isinstance(node.args[i], fx.Node) for i in tensors) and not node.kwargs else None


@dataclass(frozen=True)
class Looks:
    """What one run finds: other threads may run the same code meanwhile, on tensors that lie otherwise.

    strides: of the arguments.  found: by the number of a root, whether it lies as it should, and whether all of its strides say so.
    """

    strides: list[Any]
    found: dict[int, tuple[bool, bool]] = field(default_factory=dict)


class FixedLayouts:
    """The graph that may run where tensors lie as the fake ones say.

    roots: the nodes of the original graph that are looked at when the careful code runs, numbered.  places: the arguments that must lie
    as they did, at every call.  graph: the changed copy.  ordinary: nodes whose views stay.
    """

    def __init__(self, graph: fx.Graph, ordinary: Container[fx.Node] = ()) -> None:
        self._original, self.graph = graph, fx.Graph()
        made: dict[fx.Node, fx.Node] = {}
        self.graph.output(self.graph.graph_copy(graph, made))
        self._views: dict[fx.Node, fx.Node] = {}  # view -> what owns its storage
        inputs = graph.find_nodes(op="placeholder")
        self._ordinary = {new for node, new in made.items() if node in ordinary}
        read = set(self._reinterpret())
        for node in self.graph.nodes:
            if hasattr(node.target, BOXED):
                read.update(node.all_input_nodes)
        roots = [node for node in graph.nodes if made.get(node) in read and is_dense(node.meta.get("val"))]
        self.roots = {node: i for i, node in enumerate(roots)}
        self._likes: list[torch.Tensor] = [node.meta["val"] for node in roots]
        self.places = [i for i, node in enumerate(inputs) if node in self.roots]

    def strides(self, args: list[Any]) -> list[Any]:
        """How those of the arguments lie that must lie as they did."""
        return [args[i].stride() for i in self.places]

    def begin(self, args: list[Any]) -> Looks:
        """No look yet, of a run with these arguments."""
        return Looks(self.strides(args))

    def look(self, looks: Looks, t: torch.Tensor, root: int) -> None:
        like = self._likes[root]
        looks.found[root] = lies_like(t, like.shape, like.stride()), t.stride() == like.stride()

    def graph_for(self, looks: dict[int, tuple[bool, bool]]) -> fx.Graph | None:
        """The graph that may run after these looks; None if it may not."""
        if len(looks) < len(self.roots) or not all(lies for lies, _ in looks.values()):
            return None
        others = {node for node, i in self.roots.items() if not looks[i][1]}
        return FixedLayouts(self._original, others).graph if others else self.graph

    def _reinterpret(self) -> list[fx.Node]:
        """Replace views; what they are made of."""
        roots: dict[fx.Node, None] = {}
        for node in list(self.graph.nodes):
            root = self._root_of(node)
            if root is None:
                continue
            self._views[node] = root
            if root in self._ordinary:
                continue
            value, source = node.meta["val"], root.meta["val"]
            if not isinstance(value, torch.Tensor) or not _is_plain(value, source) or any(user.op == "output" for user in node.users):
                continue
            with self.graph.inserting_before(node):
                new = self.graph.call_function(reinterpret, (root, tuple(map(int, value.shape)), tuple(map(int, value.stride())),
                                                             int(value.storage_offset() - source.storage_offset())))
            new.meta = dict(node.meta)
            node.replace_all_uses_with(new)
            self._views[new] = root
            roots[root] = None
        for node in reversed(list(self.graph.nodes)):
            if node in self._views and not node.users:
                self.graph.erase_node(node)
        return list(roots)

    def _root_of(self, node: fx.Node) -> fx.Node | None:
        """What owns the storage of a view, or of several; None for what makes storages."""
        if node.op != "call_function":
            return None
        if node.target is operator.getitem:
            return self._views.get(node.args[0]) if isinstance(node.args[0], fx.Node) else None
        if not isinstance(node.target, OpOverload) or node.target._schema.is_mutable:
            return None
        found = leaves(node.meta.get("val"))
        sources = [source for source in node.all_input_nodes if isinstance(source.meta.get("val"), torch.Tensor)]
        if len(sources) != 1 or not found or not all(is_dense(t) for t in (*found, sources[0].meta["val"])):
            return None
        if {storage(t) for t in found} != {storage(sources[0].meta["val"])}:
            return None
        return self._views.get(sources[0], sources[0])


def _is_plain(view: torch.Tensor, root: Any) -> bool:
    return isinstance(root, torch.Tensor) and view.dtype == root.dtype and view.device == root.device \
        and not (view.is_complex() or view.is_conj() or view.is_neg() or root.is_neg())
