"""Nodes with sub-graphs (If, Loop, Scan): the types of their results, from those of their bodies."""

from __future__ import annotations

from typing import Any

from onnx import TensorProto, numpy_helper

from .errors import ModelError
from .infer import Scope, either
from .read import label, sort_nodes, subgraphs
from .values import Value, of_type


def results(scope: Scope, place: int, node: Any) -> list[Value]:
    """The results of a node with sub-graphs; their scopes and the number of runs are noted in `scope`."""
    bodies = dict(subgraphs(node))
    if node.op_type == "If" and {"then_branch", "else_branch"} <= set(bodies):
        return _branches(scope, place, node, bodies)
    if node.op_type == "Loop" and "body" in bodies:
        return _loop(scope, place, node, bodies["body"])
    if node.op_type == "Scan" and "body" in bodies:
        return _scan(scope, place, node, bodies["body"])
    for graph in bodies.values():  # of an operator that is not known: its bodies count as far as they say themselves
        _outputs(scope, place, graph, [of_type(value.type, value.name, scope.dims) for value in graph.input])
    return [Value(TensorProto.UNDEFINED, None)] * len(node.output)


def _branches(scope: Scope, place: int, node: Any, bodies: dict[str, Any]) -> list[Value]:
    """The results of an If: those of the branch that a constant condition picks, else the larger of both.

    A branch that cannot take the shapes that are set is never the one that runs.
    """
    names = ["then_branch", "else_branch"]
    condition = scope.value(node.input[0]).data
    if condition is not None:
        names = names[:1] if bool(numpy_helper.to_array(condition).any()) else names[1:]
    made, refused = [], []
    for name in names:
        try:
            made.append(_outputs(scope, place, bodies[name], []))
        except ModelError as error:
            refused.append(error)
    if not made:
        raise refused[0]
    return made[0] if len(made) == 1 else either(*made)


def _outputs(scope: Scope, place: int, graph: Any, inputs: list[Value]) -> list[Value]:
    if len(inputs) != len(graph.input):
        raise ModelError(f"{label(scope.graph.node[place], place)} has a sub-graph with {len(graph.input)} inputs, and gives it "
                         f"{len(inputs)}: the file is damaged")
    sort_nodes(graph, f"sub-graph '{graph.name}'", scope.has)
    inner = Scope(scope.model, graph, scope.dims, scope)
    inner.infer(((value.name, given) for value, given in zip(graph.input, inputs)), results)
    scope.inner.setdefault(place, []).append(inner)
    return [_varying(inner.value(value.name)) for value in graph.output]


def _varying(value: Value) -> Value:
    """What a body makes is not known when the model is loaded."""
    return Value(value.dtype, value.shape)


def _loop(scope: Scope, place: int, node: Any, body: Any) -> list[Value]:
    limit = scope.value(node.input[0]).data if node.input[0] else None
    runs = None if limit is None else max(0, int(numpy_helper.to_array(limit).reshape(-1)[0]))
    carried = [_varying(scope.value(name)) for name in node.input[2:]]
    count, condition = Value(TensorProto.INT64, ()), Value(TensorProto.BOOL, ())
    made = _outputs(scope, place, body, [count, condition, *carried])[1:]
    scope.trips[place] = 1 if runs is None else runs
    stacked = [Value(value.dtype, None if value.shape is None else (runs, *value.shape)) for value in made[len(carried):]]
    return made[:len(carried)] + stacked


def _scan(scope: Scope, place: int, node: Any, body: Any) -> list[Value]:
    scanned = next((int(a.i) for a in node.attribute if a.name == "num_scan_inputs"), 0)
    numbers = {a.name: list(a.ints) for a in node.attribute}
    given = [_varying(scope.value(name)) for name in node.input]
    states, sequences = given[:len(given) - scanned], given[len(given) - scanned:]
    axes = numbers.get("scan_input_axes") or [0] * scanned
    runs, parts = None, []
    for value, axis in zip(sequences, axes):
        if value.shape:
            axis %= len(value.shape)
            runs = value.shape[axis] if runs is None else runs
            value = Value(value.dtype, value.shape[:axis] + value.shape[axis + 1:])
        parts.append(value)
    made = _outputs(scope, place, body, [*states, *parts])
    scope.trips[place] = 1 if runs is None else runs
    results_, axes = made[:len(states)], numbers.get("scan_output_axes") or [0] * (len(made) - len(states))
    for value, axis in zip(made[len(states):], axes):
        if value.shape is not None:
            axis %= len(value.shape) + 1
            value = Value(value.dtype, (*value.shape[:axis], runs, *value.shape[axis:]))
        results_.append(value)
    return results_
