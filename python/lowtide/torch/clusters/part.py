"""A part of a cluster: the same graph on fewer slices along its letters, a cluster of its own.

Its inputs and results are as the graph file describes those of the whole, with a dimension for each letter (letters.py).  All parts
of so many slices, which lie alike, are one cluster, compiled once.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from ...frontend.errors import CaptureError
from ..tensors.operators import arguments_of
from .cluster import Cluster, cluster_of, mode_of
from .dimension_rules import SIZES
from .key import key_of
from .kinds import name_of
from .letters import Letters, letters_of

aten = torch.ops.aten

_letters: weakref.WeakKeyDictionary[Cluster, Letters] = weakref.WeakKeyDictionary()


def letters(cluster: Cluster) -> Letters:
    """Those of a cluster; none of a template, whose graph is one op, and none of a cluster for all sizes, which runs as a whole."""
    if cluster not in _letters:
        _letters[cluster] = Letters() if cluster.kind or cluster.sizes else letters_of(cluster.module)
    return _letters[cluster]


def text_of(cluster: Cluster) -> str:
    """The letters as a graph file has them: "ab,b->ab,a"; empty without any."""
    found = letters(cluster)
    if not found.by_name:
        return ""
    given = ",".join(found.described(node, node.meta["val"])[2] for node in _inputs(cluster))
    made = ",".join(found.described(node, t)[2] for node, t in _results(cluster))
    return f"{given}->{made}"


def described(cluster: Cluster) -> tuple[list[tuple[list[int], list[int]]], list[tuple[list[int], list[int]]]]:
    """Shape and strides of inputs and of results, as the graph file describes them."""
    found = letters(cluster)
    return ([found.described(node, t)[:2] for node, t in zip(_inputs(cluster), cluster.inputs, strict=True)],
            [found.described(node, t)[:2] for node, t in _results(cluster)])


def part_of(cluster: Cluster, given: list[tuple[list[int], list[int]]], slices: Mapping[str, int]) -> Cluster:
    """The part of so many slices along each letter; given: shape and strides of its inputs.  Raises CaptureError."""
    maker = _Part(cluster, letters(cluster), slices)
    module = maker.module(given)
    key = key_of(module)
    inputs = [node.meta["val"] for node in _inputs_of(module)]
    return cluster_of(key, lambda: Cluster(key, module, inputs, [node.meta["val"] for node in _returned(module)], cluster.repeats))


def slices_of(cluster: Cluster, shapes: list[list[int]], made: list[list[int]]) -> dict[str, int]:
    """How many slices along each letter a part has whose inputs and results have these shapes."""
    found: dict[str, int] = {}
    letters_ = letters(cluster)
    nodes = [*zip(_inputs(cluster), cluster.inputs, shapes, strict=True),
             *((node, t, shape) for (node, t), shape in zip(_results(cluster), made, strict=True))]
    for node, t, shape in nodes:
        for extent, name in zip(shape, letters_.described(node, t)[2], strict=True):
            if name != "." and found.setdefault(name, extent) != extent:
                raise CaptureError(f"{cluster}: a part of it has {extent} and {found[name]} slices along one letter")
    return found


class _Part:
    def __init__(self, cluster: Cluster, letters_: Letters, slices: Mapping[str, int]) -> None:
        self._cluster, self._letters, self._slices, self._mode = cluster, letters_, slices, mode_of(cluster)
        self._graph = fx.Graph()
        self._made: dict[fx.Node, fx.Node] = {}

    def module(self, given: list[tuple[list[int], list[int]]]) -> fx.GraphModule:
        inputs = []
        for node, t, (shape, strides) in zip(_inputs(self._cluster), self._cluster.inputs, given, strict=True):
            inputs.append(self._graph.placeholder(str(node.target)))
            with self._mode:
                inputs[-1].meta["val"] = torch.empty_strided(shape, strides, dtype=t.dtype, device=t.device)
        for node, given_ in zip(_inputs(self._cluster), inputs, strict=True):
            self._made[node] = self._seen(given_, self._shape(node))
        for node in self._cluster.module.graph.nodes:
            if node.op == "call_function":
                self._copy(node)
            elif node.op == "get_attr":
                raise CaptureError(f"{self._cluster} reads a constant, and does not run in parts")
        self._graph.output(tuple(self._seen(self._made[node], self._described(node, t)) for node, t in _results(self._cluster)))
        return fx.GraphModule(self._cluster.module, self._graph)

    def _copy(self, node: fx.Node) -> None:
        made = self._graph.node_copy(node, self._made.__getitem__)
        name = SIZES.get(name_of(node))
        if name and any(node in letter.dims for letter in self._letters.by_name.values()):
            sizes = [whole if whole == -1 else n for whole, n in zip(arguments_of(node)[name], self._shape(node), strict=True)]
            self._resize(made, name, sizes)
        self._compute(made)
        value = made.meta["val"]
        if isinstance(value, torch.Tensor) and list(value.shape) != self._shape(node):
            raise CaptureError(f"{self._cluster}: {node.target} makes {list(value.shape)} in a part, where {self._shape(node)} are expected")
        self._made[node] = made

    def _resize(self, made: fx.Node, name: str, sizes: list[int]) -> None:
        target: Any = made.target
        place = [a.name for a in target._schema.arguments].index(name)
        if place < len(made.args):
            made.args = (*made.args[:place], sizes, *made.args[place + 1:])
        else:
            made.kwargs = made.kwargs | {name: sizes}

    def _seen(self, node: fx.Node, shape: list[int]) -> fx.Node:
        """The node with another shape of as many elements."""
        if list(node.meta["val"].shape) == shape:
            return node
        made = self._graph.call_function(aten.view.default, (node, shape))
        self._compute(made)
        return made

    def _compute(self, node: fx.Node) -> None:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        with self._mode:
            node.meta["val"] = node.target(*args, **kwargs)  # type: ignore[operator]  # a function, not a name

    def _shape(self, node: fx.Node) -> list[int]:
        """Of the node in the part."""
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            return []
        shape = [int(n) for n in value.shape]
        for name, letter in self._letters.by_name.items():
            if node in letter.dims:
                at = letter.dims[node]
                shape[at] = shape[at] // letter.slices * self._slices.get(name, letter.slices)
        return shape

    def _described(self, node: fx.Node, t: torch.Tensor) -> list[int]:
        shape, _, names = self._letters.described(node, t)
        return [n if name == "." else self._slices.get(name, n) for n, name in zip(shape, names, strict=True)]


def _inputs_of(module: fx.GraphModule) -> list[fx.Node]:
    return module.graph.find_nodes(op="placeholder")


def _inputs(cluster: Cluster) -> list[fx.Node]:
    return _inputs_of(cluster.module)


def _returned(module: fx.GraphModule) -> list[fx.Node]:
    returned: Any = module.graph.output_node().args[0]
    return list(returned)


def _results(cluster: Cluster) -> list[tuple[fx.Node, torch.Tensor]]:
    return list(zip(_returned(cluster.module), cluster.results, strict=True))
