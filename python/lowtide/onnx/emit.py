"""A plan -> the model with its nodes in the planned order.

An op that is computed again becomes a node of its own, whose results have fresh names; the last computation keeps the names of the
file, since these may be outputs.  Later nodes read the newest result.  Nodes that give a tensor another shape stand before their first
reader, and once for each time that the tensor is made.  Nodes that make constants stand as early as they can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from .lower import Lowered
from .read import reads, subgraphs


def emit(model: Any, lowered: Lowered, computes: Sequence[int]) -> Any:
    """A copy of the model.  computes: the ops of a plan, in order."""
    nodes = _Emission(model.graph, lowered, computes).run()
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


class _Emission:
    def __init__(self, graph: Any, lowered: Lowered, computes: Sequence[int]) -> None:
        self._graph, self._lowered, self._computes = graph, lowered, computes
        self._left = Counter(computes)  # computations of each op to come
        self._taken = {name for node in graph.node for name in (node.name, *node.output)}
        self._taken.update(value.name for value in (*graph.input, *graph.initializer))
        self._names: dict[int, dict[str, str]] = {}  # of the values in the newest of a tensor
        self._used_views: set[str] = set()
        self._made: list[Any] = []
        self._missing: dict[int, int] = {}  # of a node that makes constants: how much of what it reads is not there yet
        self._followers: dict[str | int, list[int]] = {}  # a constant or a tensor -> such nodes that read it
        constants = {name for place in lowered.static for name in graph.node[place].output}
        for place in lowered.static:
            made: set[str | int] = {name for name in reads(graph.node[place]) if name in constants}
            made.update(t for t in map(lowered.tensor.get, reads(graph.node[place])) if t in lowered.builder.producer)
            self._missing[place] = len(made)
            for what in made:
                self._followers.setdefault(what, []).append(place)

    def run(self) -> list[Any]:
        self._constants([place for place in self._lowered.static if not self._missing[place]])
        for op in self._computes:
            self._left[op] -= 1
            self._compute(op)
        return self._made

    def _compute(self, op: int) -> None:
        node = self._graph.node[self._lowered.nodes[op]]
        again = self._left[op] > 0  # so that the last one keeps the names
        names = {name: self._fresh(name) if again else name for name in node.output if name}
        self._append(node, names, again)
        for t in self._lowered.builder.ops[op].outputs:
            name = next(name for name in names if self._lowered.tensor[name] == t)
            first = t not in self._names
            self._names[t] = {name: names[name]}
            if first:
                self._constants(self._now_possible(t))

    def _now_possible(self, what: str | int) -> list[int]:
        """The nodes that lacked only this."""
        for place in self._followers.get(what, []):
            self._missing[place] -= 1
        return [place for place in self._followers.get(what, []) if not self._missing[place]]

    def _constants(self, places: list[int]) -> None:
        """Append nodes that make constants, and those that only waited for them."""
        while places:
            node = self._graph.node[places.pop(0)]
            self._append(node, {name: name for name in node.output if name}, False)
            for name in filter(None, node.output):
                places += self._now_possible(name)

    def _append(self, node: Any, names: Mapping[str, str], again: bool) -> None:
        read = {name: self._newest(name) for name in reads(node)}
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        _rename(copy, read)
        for i, name in enumerate(copy.output):
            copy.output[i] = names.get(name, name)
        if again and node.name:
            copy.name = self._fresh(node.name)
        self._made.append(copy)

    def _newest(self, name: str) -> str:
        """The name under which the newest of a value is read; a view of it is made where there is none yet."""
        t = self._lowered.tensor.get(name)
        place = self._lowered.views.get(name)
        if t is None or (place is None and t not in self._names):  # a constant, or an input
            return name
        known = self._names.setdefault(t, {})
        if name not in known and place is not None:
            self._newest(self._graph.node[place].input[0])
            known[name] = self._fresh(name)
            self._append(self._graph.node[place], {name: known[name]}, known[name] != name)
        return known.get(name, name)

    def _fresh(self, name: str) -> str:
        """A name that no value has; that of the file for its first view."""
        if name in self._lowered.views and name not in self._used_views:
            self._used_views.add(name)
            return name
        number = 1
        while f"{name}__again_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}__again_{number}")
        return f"{name}__again_{number}"


def _rename(node: Any, names: Mapping[str, str]) -> None:
    """Let a node read values under other names, in its sub-graphs too."""
    for i, name in enumerate(node.input):
        node.input[i] = names.get(name, name)
    for _, graph in subgraphs(node):
        inner = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        inner.update(name for n in graph.node for name in n.output)
        outer = {name: new for name, new in names.items() if name not in inner and name != new}
        if outer:
            for n in graph.node:
                _rename(n, outer)
            _hand_out(graph, outer)


def _hand_out(graph: Any, names: Mapping[str, str]) -> None:
    """An output of a sub-graph may be a value around it."""
    for value in graph.output:
        value.name = names.get(value.name, value.name)
