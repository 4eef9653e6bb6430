"""Which values that only change buffers, such as running statistics, one cluster computes.

No op reads such values, so one cluster may compute any of them that are on one side of the barrier; a network has too many for a call of
each.  Values of equal layers are put together in equal numbers, so that their clusters are equal at any depth.  The rest is put together
in the order of the graph.
"""

from __future__ import annotations

from torch import fx

from ..tensors.operators import leaves
from .kinds import Kinds, name_of

_MOST = 160  # nodes, and inputs, of one cluster
_EQUAL = 32  # equal parts of one cluster

Part = list[fx.Node]


def together(kinds: Kinds, parts: list[Part]) -> list[Part]:
    """The nodes of each cluster.  parts: nodes that are connected to one another."""
    alike: dict[object, list[Part]] = {}
    for part in parts:
        alike.setdefault((_side(kinds, part), _form(kinds, part)), []).append(part)
    found = [sum(equal[i:i + _EQUAL], []) for equal in alike.values() for i in range(0, len(equal) - _EQUAL + 1, _EQUAL)]
    left = [part for equal in alike.values() for part in equal[len(equal) // _EQUAL * _EQUAL:]]
    open_: dict[object, tuple[Part, set[fx.Node]]] = {}
    for part in sorted(left, key=lambda part: kinds.place[part[0]]):
        side, inputs = _side(kinds, part), _inputs(kinds, part)
        nodes, read = open_.get(side, ([], set()))
        if not nodes or len(read | inputs) > _MOST or len(nodes) + len(part) > _MOST:
            nodes, read = [], set()
            open_[side] = nodes, read
            found.append(nodes)
        nodes += part
        read |= inputs
    return found


def _inputs(kinds: Kinds, part: Part) -> set[fx.Node]:
    return {source for node in part for source in kinds.sources(node)} - set(part)


def _side(kinds: Kinds, part: Part) -> tuple[bool, bool]:
    """On which side of the barrier it is, and does it read buffers alone, such as counts of steps?"""
    return part[0] in kinds.late, all(source.op != "call_function" for source in _inputs(kinds, part))


def _form(kinds: Kinds, part: Part) -> object:
    """What is equal for parts of equal layers."""
    read = sorted(_inputs(kinds, part), key=kinds.place.__getitem__)
    return tuple((name_of(node) if node in part else "", repr([(t.shape, t.dtype) for t in leaves(node.meta.get("val"))]))
                 for node in [*read, *part])
