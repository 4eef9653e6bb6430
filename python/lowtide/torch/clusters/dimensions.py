"""Which dimensions of a cluster's nodes belong together: those of which the same index of both is computed of one another."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import torch
from torch import fx

Dim = tuple[fx.Node, int]


class Dimensions:
    """Sets of dimensions, which rules of operators join (dimension_rules.py)."""

    def __init__(self) -> None:
        self._parent: dict[Dim, Dim] = {}
        self._left_out: set[Dim] = set()
        self._summed: list[tuple[fx.Node, Dim]] = []

    def find(self, dim: Dim) -> Dim:
        """What stands for the set of a dimension; of one that is new a set of its own."""
        self._parent.setdefault(dim, dim)
        while self._parent[dim] != dim:
            self._parent[dim] = self._parent[self._parent[dim]]
            dim = self._parent[dim]
        return dim

    def unite(self, one: Dim, other: Dim) -> None:
        self._parent[self.find(one)] = self.find(other)

    def leave_out(self, dims: Iterable[Dim]) -> None:
        """No letter has these dimensions, nor those that belong together with them."""
        for dim in dims:
            self.find(dim)
            self._left_out.add(dim)

    def sum(self, nodes: Iterable[fx.Node], dim: Dim) -> None:
        """These nodes are sums over that dimension of what they read."""
        self.find(dim)
        self._summed += [(node, dim) for node in nodes]

    def sets(self) -> list[tuple[list[Dim], set[fx.Node]]]:
        """The sets of which no dimension is left out, and the nodes that are sums over each."""
        left_out = {self.find(dim) for dim in self._left_out}
        members: dict[Dim, list[Dim]] = {}
        for dim in self._parent:
            members.setdefault(self.find(dim), []).append(dim)
        sums: dict[Dim, set[fx.Node]] = {}
        for node, dim in self._summed:
            sums.setdefault(self.find(dim), set()).add(node)
        return [(dims, sums.get(root, set())) for root, dims in members.items() if root not in left_out]


def results_of(node: fx.Node) -> list[fx.Node]:
    """What stands for a node's results: itself, or the items of several."""
    if isinstance(node.meta["val"], (tuple, list)):
        return [user for user in node.users if user.target is operator.getitem]
    return [node]


def shape_of(node: fx.Node) -> list[int]:
    value = node.meta["val"]
    return [int(n) for n in value.shape] if isinstance(value, torch.Tensor) else []


def rank_of(node: fx.Node) -> int:
    return len(shape_of(node))


def extent_of(dim: Dim) -> int:
    return shape_of(dim[0])[dim[1]]


def dims_of(node: fx.Node) -> list[Dim]:
    return [(node, d) for d in range(rank_of(node))]
