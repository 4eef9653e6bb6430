"""Along which dimensions a cluster may be split: a letter for each, as in an einsum.

Dimensions of the nodes of a cluster's graph belong together if the same index of both is computed of one another.  A letter is a set
of such dimensions that reaches each result, or of which the result is a sum.  A view may join a dimension with those behind it: the
slices of such a letter are blocks of neighbouring indices, and the graph file describes the tensor with a dimension of its own for them.

The dimensions of an op without a rule belong to no letter.
"""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ..tensors.operators import arguments_of
from .kinds import name_of

Dim = tuple[fx.Node, int]

_ALL_DIMS = ("clone", "convert_element_type", "full_like", "zeros_like", "ones_like", "alias", "detach", "_to_copy", "where", "copy",
             "lift_fresh_copy")
_REGROUPED = ("view", "_unsafe_view", "reshape", "_reshape_copy", "view_copy")
_REDUCTIONS = ("sum", "mean", "amax", "amin", "any", "all", "prod", "var_mean", "var", "std", "argmax", "argmin", "max", "min",
               "logsumexp", "prepare_softmax_online")
_MADE = ("full", "zeros", "ones", "empty")
_IMAGES = ("avg_pool2d", "avg_pool2d_backward", "max_pool2d_with_indices", "_low_memory_max_pool_with_offsets",
           "_low_memory_max_pool_offsets_to_indices", "upsample_nearest2d", "upsample_nearest2d_backward", "upsample_bilinear2d")
_LINEAR = ("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "permute", "transpose", "t", "neg", "clone", "sum", "expand", "alias")
SIZES = {**dict.fromkeys((*_REGROUPED, "expand"), "size"), **dict.fromkeys(_MADE, "size"), "upsample_nearest2d_backward": "input_size"}


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
    found = _Dimensions(module).letters()
    return Letters(dict(zip(string.ascii_letters, found, strict=False)))


class _Dimensions:
    def __init__(self, module: fx.GraphModule) -> None:
        self._nodes = list(module.graph.nodes)
        self._parent: dict[Dim, Dim] = {}
        self._left_out: set[Dim] = set()
        self._summed: list[tuple[fx.Node, Dim]] = []
        for node in self._nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                self._enter(node)

    def letters(self) -> list[Letter]:
        left_out = {self._find(dim) for dim in self._left_out}
        members: dict[Dim, list[Dim]] = {}
        for dim in self._parent:
            members.setdefault(self._find(dim), []).append(dim)
        sums: dict[Dim, set[fx.Node]] = {}
        for node, dim in self._summed:
            sums.setdefault(self._find(dim), set()).add(node)
        found = (self._letter(dims, sums.get(root, set())) for root, dims in members.items() if root not in left_out)
        return sorted((letter for letter in found if letter), key=lambda letter: min(letter.dims.values()))

    def _letter(self, dims: list[Dim], sums: set[fx.Node]) -> Letter | None:
        by_node = dict(dims)
        slices = min(_extent(dim) for dim in dims)
        if len(by_node) < len(dims) or slices < 2 or any(_extent(dim) % slices for dim in dims):
            return None
        partial = self._partial(by_node, sums)
        results: Any = self._nodes[-1].args[0]
        if partial is None or not all(node in by_node or node in partial for node in results):
            return None
        if all(node in partial for node in results) and _counts(by_node):
            return None
        return Letter(by_node, slices)

    def _partial(self, dims: dict[fx.Node, int], sums: set[fx.Node]) -> set[fx.Node] | None:
        """The nodes that are sums over a letter, in part; None if an op needs the whole of one."""
        partial: set[fx.Node] = set()
        for node in self._nodes:
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

    # ---- which dimensions belong together

    def _find(self, dim: Dim) -> Dim:
        self._parent.setdefault(dim, dim)
        while self._parent[dim] != dim:
            self._parent[dim] = self._parent[self._parent[dim]]
            dim = self._parent[dim]
        return dim

    def _unite(self, one: Dim, other: Dim) -> None:
        self._parent[self._find(one)] = self._find(other)

    def _leave_out(self, dims: Iterable[Dim]) -> None:
        for dim in dims:
            self._find(dim)
            self._left_out.add(dim)

    def _enter(self, node: fx.Node) -> None:
        made = _made(node)
        try:
            known = self._enter_known(node, made)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):  # called as no rule expects
            known = False
        if not known:
            self._leave_out(dim for one in (*made, *node.all_input_nodes) for dim in _dims(one))

    def _enter_known(self, node: fx.Node, made: list[fx.Node]) -> bool:
        name = name_of(node)
        target: Any = node.target
        if name in _ALL_DIMS or torch.Tag.pointwise in getattr(target, "tags", ()):
            return self._pointwise(node, made)
        if not hasattr(target, "_schema"):
            return False
        given = arguments_of(node)
        source: Any = given.get("self", given.get("a", given.get("x", given.get("input"))))
        if name in _MADE:
            for dim in _dims(node):
                self._find(dim)
            return True
        if name in _REGROUPED:
            return self._regrouped(source, node)
        if name in _REDUCTIONS:
            return self._reduction(name, source, given, made)
        if name == "expand":
            return self._pointwise(node, made)
        if name in ("permute", "transpose", "t", "unsqueeze", "squeeze"):
            return self._moved(name, source, node, given)
        if name in ("slice", "select", "constant_pad_nd"):
            return self._cropped(name, source, node, given)
        if name == "cat":
            at = int(given["dim"]) % _rank(node)
            for one in given["tensors"]:
                self._along(one, node, apart=at)
            return True
        if name == "embedding":
            table, indices = given["weight"], given["indices"]
            for d in range(_rank(indices)):
                self._unite((indices, d), (node, d))
            self._unite((table, 1), (node, _rank(node) - 1))
            self._leave_out([(table, 0)])
            return True
        if name in ("gather", "scatter"):
            at = int(given["dim"]) % _rank(node)
            for one in (given["self"], given["index"], given.get("src")):
                if isinstance(one, fx.Node):
                    self._along(one, node, apart=at)
            return True
        if name in _IMAGES:
            return self._images(node, made)
        return False

    def _pointwise(self, node: fx.Node, made: list[fx.Node]) -> bool:
        for one in made:
            for source in node.all_input_nodes:
                shift = _rank(one) - _rank(source)
                for d in range(_rank(source)):
                    if _extent((source, d)) == _extent((one, d + shift)):
                        self._unite((source, d), (one, d + shift))
        return True

    def _along(self, source: fx.Node, node: fx.Node, apart: int) -> None:
        """All dimensions but one are the result's."""
        for d in range(_rank(node)):
            if d == apart:
                self._leave_out([(source, d), (node, d)])
            elif _extent((source, d)) == _extent((node, d)):
                self._unite((source, d), (node, d))
            else:
                self._leave_out([(source, d), (node, d)])

    def _regrouped(self, source: fx.Node, node: fx.Node) -> bool:
        for before, after in _groups(_shape(source), _shape(node)):
            given, made = [(source, d) for d in before], [(node, d) for d in after]
            if given and made:
                self._unite(given[0], made[0])
            self._leave_out([*given[1:], *made[1:]])
        return True

    def _reduction(self, name: str, source: fx.Node, given: dict[str, Any], made: list[fx.Node]) -> bool:
        named, rank = given.get("dim"), _rank(source)
        dims = range(rank) if named is None or named == [] else [named] if isinstance(named, int) else named
        reduced = {d % rank for d in dims} if rank else set()
        for one in made:
            kept = _rank(one) == rank
            left = [d for d in range(rank) if d not in reduced]
            for at, d in enumerate(left):
                self._unite((source, d), (one, d if kept else at))
        for d in reduced:
            if name == "sum":
                self._find((source, d))
                self._summed += [(one, (source, d)) for one in made]
            else:
                self._leave_out([(source, d)])
        return True

    def _moved(self, name: str, source: fx.Node, node: fx.Node, given: dict[str, Any]) -> bool:
        rank = _rank(source)
        order = list(range(rank))
        if name == "permute":
            order = [d % rank for d in given["dims"]]
        elif name == "t" and rank == 2:
            order = [1, 0]
        elif name == "transpose":
            a, b = int(given["dim0"]) % rank, int(given["dim1"]) % rank
            order[a], order[b] = order[b], order[a]
        elif name == "unsqueeze":
            order.insert(int(given["dim"]) % (rank + 1), -1)
        elif name == "squeeze":
            named = given.get("dim", range(rank))
            gone = {d % rank for d in ([named] if isinstance(named, int) else named)} if rank else set()
            order = [d for d in order if not (d in gone and _extent((source, d)) == 1)]
        for at, d in enumerate(order):
            if d >= 0:
                self._unite((source, d), (node, at))
        return True

    def _cropped(self, name: str, source: fx.Node, node: fx.Node, given: dict[str, Any]) -> bool:
        rank = _rank(source)
        if name == "select":
            gone = int(given["dim"]) % rank
            self._leave_out([(source, gone)])
            for at, d in enumerate(d for d in range(rank) if d != gone):
                self._unite((source, d), (node, at))
            return True
        changed = {d for d in range(rank) if _extent((source, d)) != _extent((node, d))}
        if name == "constant_pad_nd":
            changed |= {rank - 1 - i // 2 for i, n in enumerate(given["pad"]) if n}
        for d in range(rank):
            if d in changed:
                self._leave_out([(source, d), (node, d)])
            else:
                self._unite((source, d), (node, d))
        return True

    def _images(self, node: fx.Node, made: list[fx.Node]) -> bool:
        for one in made:
            for source in node.all_input_nodes:
                if _rank(source) != 4 or _rank(one) != 4:
                    return False
                for d in (0, 1):
                    self._unite((source, d), (one, d))
                self._leave_out((n, d) for n in (source, one) for d in (2, 3))
        return True


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


def _made(node: fx.Node) -> list[fx.Node]:
    """What stands for a node's results: itself, or the items of several."""
    if isinstance(node.meta["val"], (tuple, list)):
        return [user for user in node.users if user.target is operator.getitem]
    return [node]


def _shape(node: fx.Node) -> list[int]:
    value = node.meta["val"]
    return [int(n) for n in value.shape] if isinstance(value, torch.Tensor) else []


def _rank(node: fx.Node) -> int:
    return len(_shape(node))


def _extent(dim: Dim) -> int:
    return _shape(dim[0])[dim[1]]


def _dims(node: fx.Node) -> list[Dim]:
    return [(node, d) for d in range(_rank(node))]


def _groups(one: list[int], other: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The dimensions of two shapes of as many elements, in groups of as many elements, without those of extent 1."""
    left = [d for d, n in enumerate(one) if n != 1]
    right = [d for d, n in enumerate(other) if n != 1]
    if math.prod(one) == 0:
        yield left, right
        return
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (x := math.prod(one[d] for d in a)) != (y := math.prod(other[d] for d in b)):
            if x < y:
                a.append(left.pop(0))
            else:
                b.append(right.pop(0))
        yield a, b
