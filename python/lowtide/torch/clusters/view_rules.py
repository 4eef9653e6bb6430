"""Rules of operators that regroup, move or crop dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torch import fx

from .dimensions import Dimensions, extent_of, rank_of, shape_of


def regrouped(dims: Dimensions, source: fx.Node, node: fx.Node) -> bool:
    """The same elements in other dimensions: the outer ones of a group may have a letter."""
    for before, after in _groups(shape_of(source), shape_of(node)):
        given, made = [(source, d) for d in before], [(node, d) for d in after]
        if given and made:
            dims.unite(given[0], made[0])
        dims.leave_out([*given[1:], *made[1:]])
    return True


def moved(dims: Dimensions, name: str, source: fx.Node, node: fx.Node, given: dict[str, Any]) -> bool:
    """The same dimensions in another order, with or without some of extent 1."""
    rank = rank_of(source)
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
        order = [d for d in order if not (d in gone and extent_of((source, d)) == 1)]
    for at, d in enumerate(order):
        if d >= 0:
            dims.unite((source, d), (node, at))
    return True


def cropped(dims: Dimensions, name: str, source: fx.Node, node: fx.Node, given: dict[str, Any]) -> bool:
    """A part of the elements, or others beside them: what changes has no letter."""
    rank = rank_of(source)
    if name == "select":
        gone = int(given["dim"]) % rank
        dims.leave_out([(source, gone)])
        for at, d in enumerate(d for d in range(rank) if d != gone):
            dims.unite((source, d), (node, at))
        return True
    changed = {d for d in range(rank) if extent_of((source, d)) != extent_of((node, d))}
    if name == "constant_pad_nd":
        changed |= {rank - 1 - i // 2 for i, n in enumerate(given["pad"]) if n}
    for d in range(rank):
        if d in changed:
            dims.leave_out([(source, d), (node, d)])
        else:
            dims.unite((source, d), (node, d))
    return True


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
