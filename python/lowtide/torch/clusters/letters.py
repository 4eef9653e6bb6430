"""Along which dimensions a cluster may be split: a letter for each, as in an einsum.

A letter is a set of dimensions that belong together (dimensions.py, dimension_rules.py) and reach each result, or of which the result is
a sum.  A view may join a dimension with those behind it: the slices of such a letter are blocks of neighbouring indices, and the graph
file describes the tensor with a dimension of its own for them.
"""

from __future__ import annotations

import operator
import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from .dimension_rules import enter
from .dimensions import Dim, Dimensions, extent_of
from .kinds import name_of

_LINEAR = ("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "t", "neg", "clone", "sum", "expand", "alias")


@dataclass(frozen=True)
class Letter:
    """dims: by the nodes that have it.  slices: how many there are."""

    dims: dict[fx.Node, int]
    slices: int


@dataclass(frozen=True)
class Letters:
    """The letters of a cluster's graph by their names."""

    by_name: dict[str, Letter] = field(default_factory=dict)

    def described(self, node: fx.Node, t: torch.Tensor) -> tuple[list[int], list[int], str]:
        """Shape and strides of a tensor in which each letter has a dimension of its own, and the letters of these."""
        shape, strides, names = [], [], ""
        for d, (extent, stride) in enumerate(zip(map(int, t.shape), map(int, t.stride()), strict=True)):
            name = next((name for name, letter in self.by_name.items() if letter.dims.get(node) == d), ".")
            slices = self.by_name[name].slices if name != "." else extent
            block = extent // slices if slices else 1
            shape.append(slices)
            strides.append(stride * block)
            names += name
            if block > 1:
                shape.append(block)
                strides.append(stride)
                names += "."
        return shape, strides, names


def letters_of(module: fx.GraphModule) -> Letters:
    nodes, dims = list(module.graph.nodes), Dimensions()
    for node in nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            enter(dims, node)
    found = [letter for joined, sums in dims.sets() if (letter := _letter(nodes, joined, sums))]
    found.sort(key=lambda letter: min(letter.dims.values()))
    return Letters(dict(zip(string.ascii_letters, found, strict=False)))


def _letter(nodes: list[fx.Node], dims: list[Dim], sums: set[fx.Node]) -> Letter | None:
    """The letter of dimensions that belong together, if they are one.  sums: the nodes that are sums over it."""
    by_node = dict(dims)
    slices = min(extent_of(dim) for dim in dims)
    if len(by_node) < len(dims) or slices < 2 or any(extent_of(dim) % slices for dim in dims):
        return None
    partial = _partial(nodes, by_node, sums)
    results: Any = nodes[-1].args[0]
    if partial is None or not all(node in by_node or node in partial for node in results):
        return None
    if all(node in partial for node in results) and _counts(by_node):
        return None
    return Letter(by_node, slices)


def _partial(nodes: list[fx.Node], dims: dict[fx.Node, int], sums: set[fx.Node]) -> set[fx.Node] | None:
    """The nodes that are sums over a letter, in part; None if an op needs the whole of one."""
    partial: set[fx.Node] = set()
    for node in nodes:
        if node.op == "output":
            break
        read = [source for source in node.all_input_nodes if source in partial]
        others = [source for source in node.all_input_nodes if source not in partial]
        if node in sums:
            if read:
                return None
            partial.add(node)
        elif read:
            if node in dims or any(source in dims for source in others) or not _is_linear(node, read):
                return None
            partial.add(node)
    return partial


def _is_linear(node: fx.Node, partial: list[fx.Node]) -> bool:
    """Is what it makes of sums in part a sum in part?"""
    name = name_of(node)
    if name in _LINEAR:
        return True
    if name == "convert_element_type" or name == "_to_copy":  # to a wider type
        return torch.promote_types(partial[0].meta["val"].dtype, node.meta["val"].dtype) == node.meta["val"].dtype
    if name in ("add", "sub"):
        return len(partial) == 2 and partial[0] is not partial[1]
    if name == "mul":
        return len(partial) == 1 and [node.args[0], node.args[1]].count(partial[0]) == 1
    return name == "div" and partial == [node.args[0]] and node.args[1] is not partial[0] and len(node.args) == 2 and not node.kwargs


def _counts(nodes: Iterable[fx.Node]) -> bool:
    """Do nodes read none but whole numbers?  A count, of targets for one, is better made before the parts, which divide by it."""
    return not any(node.op == "placeholder" and node.meta["val"].dtype.is_floating_point for node in nodes)
