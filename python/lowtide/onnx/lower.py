"""A model whose values are known -> a draft of its graph.

Each node that computes becomes an op.  These do not: constants and what is computed from them, whose results are parameters where an
op reads them; shapes of values; nodes that only give a tensor another shape (in_place.is_view), whose result is the same tensor.
If, Loop and Scan are one op each, whose workspace is the peak of its largest body.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import lowtide

from ..frontend.draft import GraphBuilder, Op
from . import kinds
from .bodies import bodies
from .errors import ModelError
from .in_place import is_view, overwritable
from .infer import RANDOM, Scope
from .number_types import name_of
from .read import label, reads, subgraphs
from .values import Value, check_known
from .work import nanoseconds, operations

_MOST = 2**62  # operations and bytes


@dataclass
class Lowered:
    """A draft, and how it relates to the model.

    nodes: for each op its node, by place.  views: value -> the place of the node that gives a tensor another shape.  static: places of
    the nodes that make constants.  tensor: value -> number of its tensor.
    """

    builder: GraphBuilder = field(default_factory=GraphBuilder)
    outputs: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    views: dict[str, int] = field(default_factory=dict)
    static: list[int] = field(default_factory=list)
    tensor: dict[str, int] = field(default_factory=dict)


def lower(scope: Scope, device: lowtide.Device, runtime: str, free_inputs: bool) -> Lowered:
    """The draft of a model's graph.  Raises ModelError for a value whose bytes are not known."""
    return _Lowering(scope, device, runtime, free_inputs).run()


class _Lowering:
    def __init__(self, scope: Scope, device: lowtide.Device, runtime: str, free_inputs: bool) -> None:
        self._scope, self._device, self._runtime, self._free_inputs = scope, device, runtime, free_inputs
        self._found = Lowered()
        self._used = {value.name for value in scope.graph.output}.union(*map(reads, scope.graph.node))
        self._made_by = {name: label(node, i) for i, node in enumerate(scope.graph.node) for name in node.output if name}
        self._constants = {name: node for node in scope.graph.node for name in node.output if name and scope.value(name).constant}
        self._packed: set[str] = set()  # constants that are held in fewer bytes than are read

    def run(self) -> Lowered:
        graph, found = self._scope.graph, self._found
        constants = {tensor.name for tensor in graph.initializer}
        for value in graph.input:
            if value.name not in constants:
                self._add(value.name, "input")
        outputs = {value.name for value in graph.output}
        for place, node in enumerate(graph.node):
            made = self._results(node)
            if made and all(self._scope.value(name).constant for name in made):
                found.static.append(place)
            elif is_view(node, made) and node.output[0] not in outputs and not self._scope.value(node.input[0]).constant:
                value, number = self._known(node.output[0]), self._number(node.input[0])
                read = found.builder.tensors[number]["bytes"]
                if value.bytes != read:
                    raise ModelError(f"{label(node, place)} makes {value.bytes} bytes of {read} that it reads: the file is damaged, or says "
                                     "a wrong shape (value_info)")
                found.tensor[node.output[0]] = number
                found.views[node.output[0]] = place
            else:
                self._op(place, node)
        found.outputs = list(dict.fromkeys(self._number(value.name) for value in graph.output))
        return found

    def _results(self, node: Any) -> list[str]:
        """What a node makes, without further results that nothing reads: runtimes do not make these where they say no shape."""
        return [name for i, name in enumerate(node.output)
                if name and (i == 0 or name in self._used or (self._scope.value(name).known and node.op_type != "Dropout"))]

    def _known(self, name: str) -> Value:
        value = self._scope.value(name)
        if not value.known:
            check_known(value, name, f"{self._made_by[name]} makes" if name in self._made_by else "")
        check_known(value, name, "")
        return value

    def _add(self, name: str, role: str | None) -> int:
        value = self._stored(name) if role == "parameter" else self._known(name)
        number = self._found.builder.tensor(name, value.bytes, role, value.extents, name_of(value.dtype),
                                            stays=role == "parameter" or (role == "input" and not self._free_inputs))
        if role == "input" and self._free_inputs:
            self._found.builder.tensors[number]["releasable"] = True
        self._found.tensor[name] = number
        return number

    def _stored(self, name: str) -> Value:
        """A constant as runtimes hold it: quantized weights as they are in the file, and dequantized where they are read."""
        node = self._constants.get(name)
        if node is None or node.op_type != "DequantizeLinear":
            return self._known(name)
        self._packed.add(name)
        return self._known(node.input[0])

    def _number(self, name: str) -> int:
        """The number of a value's tensor; a constant has one from its first reader on."""
        found = self._found.tensor.get(name)
        return self._add(name, "parameter") if found is None else found

    def _op(self, place: int, node: Any) -> None:
        scope, builder = self._scope, self._found.builder
        read = list(dict.fromkeys(name for name in reads(node) if name))
        given = [scope.value(name) for name in node.input]
        for name in read:
            self._known(name)
        names = self._results(node)
        made = [self._known(name) for name in names]
        inputs = list(dict.fromkeys(self._number(name) for name in read))
        outputs = [self._add(name, None) for name in names]
        named = [value for name, value in zip(node.input, given) if name]
        count, workspace = operations(node, named, made), 0
        if place in scope.inner:
            count, workspace, weights = bodies(scope, place)
            if weights:
                inputs.append(builder.tensor(f"{node.name or names[0]}/weights", weights, "parameter", [weights], "u8", stays=True))
        if count >= _MOST or sum(value.bytes for value in [*named, *made]) >= _MOST:
            raise ModelError(f"{label(node, place)} does more than can be counted, {count} operations: check the extents of what it reads")
        origin = node.name.rpartition("/")[0].strip("/").replace("/", ".") or None  # exporters write the modules into names
        op = Op(node.name or f"{node.op_type}_{place}", f"onnx.{node.domain + '.' if node.domain else ''}{node.op_type}", inputs, outputs,
                nanoseconds(self._device, count, named, made), origin=origin, workspace=workspace, attributes={"flops": count},
                recomputable=_may_repeat(node))
        if names and names[0] == node.output[0]:
            op.in_place = [[self._number(node.input[i]), outputs[0]] for i in overwritable(node, self._runtime, given, made[0])
                           if self._may_be_overwritten(node.input[i], node)]
            call = kinds.call_of(node, given, made)
            if call is not None and len(inputs) == len(read) and self._packed.isdisjoint(read):
                op.kind = call.kind
                for key, entries in kinds.describe(call, node, given, made[0], self._number).items():
                    setattr(op, key, entries)
        builder.op(op, effect=_draws(node))
        self._found.nodes.append(place)

    def _may_be_overwritten(self, name: str, node: Any) -> bool:
        """Is its tensor freed by the caller of the node alone, and read by it once?"""
        number = self._number(name)
        tensor = self._found.builder.tensors[number]
        return not tensor["stays"] and sum(self._number(other) == number for other in reads(node)) == 1


def _draws(node: Any) -> bool:
    inner = [node_ for _, graph in subgraphs(node) for node_ in graph.node]
    training = node.op_type == "Dropout" and len(node.input) > 2 and bool(node.input[2])
    return training or node.op_type in RANDOM or any(map(_draws, inner))


def _may_repeat(node: Any) -> bool:
    """Is a second run known to give the same?  Operators of other domains may do anything; sub-graphs are not repeated."""
    return node.domain in ("", "ai.onnx", "ai.onnx.ml", "com.microsoft") and not any(True for _ in subgraphs(node))
