"""A graph with many equal layers, of the graph with four of them.

The four layers' ops stand in a row in the forward, and in a row in the reverse order in the backward.  Of the two in the middle, each
op of one must equal the op of the other, and read either the same tensors or those of a layer at the same distance.  Then the
one is the pattern of all layers between the first and the last, which stay as they are.  The ops, their order and all figures are
those of the graph of all layers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import lowtide

from .errors import CaptureError

TRACED = 4
_FIRST, _LAST = 0, TRACED - 1
_TENSORS = ("inputs", "outputs", "mutates")
_OPERANDS = ("operands", "results")
# A place: ("f" or "b", layer, offset) of an op in the forward or backward of a layer, ("layer", layer, name) of a parameter or
# buffer, ("other", index, 0) of any other op or input.  Of what an op makes also the number among its results.
_Place = tuple[Any, ...]


def with_layers(graph: lowtide.Graph, path: str, layers: int) -> lowtide.Graph:
    """The graph of a model in which the module `path` has so many layers, of its graph with TRACED.

    Raises CaptureError if its layers are not equal.
    """
    return graph if layers == TRACED else lowtide.Graph.from_dict(_Repeated(graph.to_dict(), path, layers).written())


class _Repeated:
    def __init__(self, graph: dict[str, Any], path: str, layers: int) -> None:
        self._graph, self._path, self._layers = graph, path, layers
        self._name = re.compile(rf"{re.escape(path)}\.(\d+)(?=\.|$)")
        self._ops: list[dict[str, Any]] = graph["ops"]
        self._tensors: list[dict[str, Any]] = graph["tensors"]
        self._starts = {phase: self._start(phase) for phase in ("forward", "backward")}
        self._tensor_places: list[_Place] = [self._input_place(i) for i in range(len(self._tensors))]
        for i, op in enumerate(self._ops):
            for slot, tensor in enumerate(op["outputs"]):
                self._tensor_places[tensor] = self._op_place(i) + (slot,)
        self._stays: dict[int, dict[_Place, bool]] = {}  # of ops of the layers in the middle: is that place the same for all layers?
        self._check()

    def _start(self, phase: str) -> tuple[int, int]:
        """The first op of the first layer that runs in that phase, and the number of ops of a layer."""
        first: dict[int, int] = {}
        for i, op in enumerate(self._ops):
            layer = self._layer_of(op.get("origin"))
            if layer is not None and op.get("phase") == phase:
                first.setdefault(layer, i)
        starts = [first.get(layer, -1) for layer in range(TRACED)]
        starts = starts if phase == "forward" else starts[::-1]
        length = starts[1] - starts[0]
        if -1 in starts or length <= 0 or any(b - a != length for a, b in zip(starts, starts[1:])):
            raise self._refused(f"their {phase} is not the same number of ops each")
        return starts[0], length

    def _layer_of(self, name: str | None) -> int | None:
        found = self._name.match(name or "")
        return None if found is None else int(found[1])

    def _op_place(self, index: int) -> _Place:
        for phase, (start, length) in self._starts.items():
            if start <= index < start + TRACED * length:
                layer, offset = divmod(index - start, length)
                return phase, layer if phase == "forward" else _LAST - layer, offset
        return "other", index, 0

    def _input_place(self, tensor: int) -> _Place:
        name = self._tensors[tensor].get("name", "")
        layer = self._layer_of(name)
        return ("other", tensor, -1) if layer is None else ("layer", layer, name[self._name.match(name).end():])  # type: ignore[union-attr]

    def _check(self) -> None:
        for phase, (_, length) in self._starts.items():
            for offset in range(length):
                one, two = (self._index(phase, layer, offset) for layer in (1, 2))
                if self._same(self._ops[one], 1) != self._same(self._ops[two], 2):
                    raise self._refused(f"{self._ops[one]['name']} and {self._ops[two]['name']} differ")
                stays = [self._stays.setdefault(op, {}) for op in (one, two)]
                for a, b in zip(self._references(one), self._references(two)):
                    same = a == b
                    if not (same or self._moved(a, 1) == b) or any(s.setdefault(p, same) != same for s, p in zip(stays, (a, b))):
                        raise self._refused(f"{self._ops[one]['name']} and {self._ops[two]['name']} read different tensors")
        places = [self._tensor_places[t] for t in self._graph["outputs"]]
        if [self._moved(p, 1) for p in places if p[0] != "other" and p[1] == 1] != [p for p in places if p[0] != "other" and p[1] == 2]:
            raise self._refused("they hand out different tensors")

    def _index(self, phase: str, layer: int, offset: int) -> int:
        start, length = self._starts[phase]
        return start + (layer if phase == "forward" else _LAST - layer) * length + offset

    def _same(self, op: dict[str, Any], layer: int) -> Any:
        """What equal ops have in common, beside the places that they refer to."""
        known = {key: value for key, value in op.items() if key not in (*_TENSORS, *_OPERANDS, "name", "after", "in_place", "origin")}
        made = [{k: v for k, v in self._tensors[t].items() if k != "name"} for t in op["outputs"]]
        operands = [[{k: v for k, v in operand.items() if k != "tensor"} for operand in op.get(key, [])] for key in _OPERANDS]
        return known, made, operands, self._renamed(op.get("origin", ""), -layer)

    def _references(self, index: int) -> Iterator[_Place]:
        """The places of everything that an op refers to, in one order."""
        op = self._ops[index]
        for key in _TENSORS:
            yield from (self._tensor_places[t] for t in op.get(key, []))
        for key in _OPERANDS:
            yield from (self._tensor_places[operand["tensor"]] for operand in op.get(key, []) if "tensor" in operand)
        yield from (self._tensor_places[t] for pair in op.get("in_place", []) for t in pair)
        yield from (self._op_place(i) for i in op.get("after", []))

    def _moved(self, place: _Place, by: int) -> _Place:
        return place if place[0] == "other" else (place[0], place[1] + by, *place[2:])

    def _renamed(self, name: str, by: int) -> str:
        return self._name.sub(lambda m: f"{self._path}.{int(m[1]) + by}", name)

    def _refused(self, why: str) -> CaptureError:
        return CaptureError(f"repeat: the layers of {self._path} are not equal: {why}; leave repeat out")

    def written(self) -> dict[str, Any]:
        """The graph of all layers."""
        more = self._layers - TRACED
        new_ops = [*self._new_ops()]
        op_at = {place: i for i, (place, _, _) in enumerate(new_ops)}
        made = {t for op in self._ops for t in op["outputs"]}
        inputs = [*self._with_copies([t for t in range(len(self._tensors)) if t not in made])]
        tensors = [self._named(self._tensors[t], by) for _, t, by in inputs]
        tensor_at = {place: i for i, (place, _, _) in enumerate(inputs)}
        for place, source, by in new_ops:
            for slot, t in enumerate(self._ops[source]["outputs"]):
                tensor_at[place + (slot,)] = len(tensors)
                tensors.append(self._named(self._tensors[t], by))
        ops = []
        for _, source, by in new_ops:
            def new(at: dict[_Place, int], source: int = source, by: int = by) -> Callable[[_Place], int]:
                return lambda place: self._found(at, self._target(source, place, by, more))

            ops.append(self._written(self._ops[source], new(tensor_at), new(op_at), by))
        outputs = [tensor_at[place] for place, _, _ in self._with_copies(self._graph["outputs"])]
        return {**self._graph, "tensors": tensors, "ops": ops, "outputs": outputs}

    def _with_copies(self, tensors: list[int]) -> Iterator[tuple[_Place, int, int]]:
        """Place, source and distance from it of each tensor of all layers, of those of the traced ones."""
        middle = [t for t in tensors if self._tensor_places[t][0] != "other" and self._tensor_places[t][1] == 1]
        for t in tensors:
            place = self._tensor_places[t]
            if place[0] == "other" or place[1] == _FIRST:
                yield place, t, 0
            elif place[1] == _LAST:
                yield self._moved(place, self._layers - TRACED), t, self._layers - TRACED
            elif t == middle[0]:
                yield from ((self._moved(self._tensor_places[m], by), m, by) for by in range(self._layers - 2) for m in middle)

    def _new_ops(self) -> Iterator[tuple[_Place, int, int]]:
        """Place, source and distance from it of each op of all layers."""
        more = self._layers - TRACED
        for i in range(len(self._ops)):
            place = self._op_place(i)
            if place[0] == "other" or place[1] == _FIRST:
                yield place, i, 0
            elif place[1] == _LAST:
                yield self._moved(place, more), i, more
            elif place[2] == 0 and place[1] == (1 if place[0] == "forward" else 2):  # where the layers in the middle begin
                for layer in range(1, self._layers - 1) if place[0] == "forward" else range(self._layers - 2, 0, -1):
                    for offset in range(self._starts[place[0]][1]):
                        traced = 1 if layer == 1 else 2
                        yield (place[0], layer, offset), self._index(place[0], traced, offset), layer - traced

    def _target(self, source: int, place: _Place, by: int, more: int) -> _Place:
        """The place that an op refers to when it has moved, of the one that its source refers to."""
        if place[0] == "other":
            return place
        own = self._op_place(source)
        if own[0] != "other" and own[1] not in (_FIRST, _LAST):
            return place if self._stays[source][place] else self._moved(place, by)
        # An op that is there once: it refers to the layer next to it, or to the first or last.
        if place[1] == _FIRST or (own[0] != "other" and own[1] == _FIRST and place[1] == 1):
            return place
        if place[1] == _LAST or (own[0] != "other" and own[1] == _LAST and place[1] == 2):
            return self._moved(place, more)
        raise self._refused(f"{self._ops[source]['name']} reads a tensor of the layer {place[1]}")

    def _found(self, at: dict[_Place, int], place: _Place) -> int:
        if place not in at:
            raise self._refused(f"there is nothing like the traced {place}")
        return at[place]

    def _named(self, what: dict[str, Any], by: int) -> dict[str, Any]:
        return {**what, "name": self._renamed(what["name"], by)} if by and "name" in what else what

    def _written(self, op: dict[str, Any], tensor: Callable[[_Place], int], other: Callable[[_Place], int], by: int) -> dict[str, Any]:
        new = dict(op)
        for key in _TENSORS:
            if key in op:
                new[key] = [tensor(self._tensor_places[t]) for t in op[key]]
        for key in _OPERANDS:
            if key in op:
                new[key] = [{**operand, "tensor": tensor(self._tensor_places[operand["tensor"]])} if "tensor" in operand else operand
                            for operand in op[key]]
        if "in_place" in op:
            new["in_place"] = [[tensor(self._tensor_places[t]) for t in pair] for pair in op["in_place"]]
        if "after" in op:
            new["after"] = [other(self._op_place(i)) for i in op["after"]]
        if "origin" in op:
            new["origin"] = self._renamed(op["origin"], by)
        return new
