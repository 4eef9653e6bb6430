"""A file -> a model whose nodes can be lowered: functions inlined, nodes sorted, external data present."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import inliner

from .errors import ModelError
from .number_types import bytes_of, check_type

_MOST = 2**31 - 1  # bytes of one protobuf


def read(path: str | os.PathLike[str]) -> Any:
    """The model of a file, without its external data, which only has to be there.

    Raises ModelError for a file that is no model, and OSError for one that cannot be opened.
    """
    path = Path(path)
    if path.stat().st_size > _MOST:
        raise ModelError(f"{path} has {path.stat().st_size} bytes, and a protobuf holds less than 2 GiB: write its weights beside it "
                         "(onnx.save with save_as_external_data=True)")
    try:
        model = onnx.load(os.fspath(path), load_external_data=False)
    except (DecodeError, ValueError) as error:
        raise ModelError(f"{path} is no ONNX model, or is cut off: {_first_line(error)}") from error
    if not model.HasField("graph"):
        raise ModelError(f"{path} is no ONNX model: it has no graph")
    if not model.opset_import:
        raise ModelError(f"{path} imports no operator set (opset_import), so its operators have no meaning")
    return prepared(model, str(path), path.parent)


def prepared(model: Any, name: str, folder: Path) -> Any:
    """The model with functions inlined and nodes sorted.  name: for messages.  folder: has the external data."""
    if model.functions:
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:  # raised in C++, without a type of its own
            raise ModelError(f"{name}: its functions cannot be inlined: {_first_line(error)}") from error
    graph = model.graph
    _check_names(graph, name)
    for tensor in _tensors(graph):
        _check_external(tensor, name, folder)
    if len(graph.node) == 0:
        raise ModelError(f"{name}: its graph has no nodes, so there is nothing to plan")
    sort_nodes(graph, name)
    return model


def label(node: Any, place: int) -> str:
    """A node in words: many have no name."""
    if node.name:
        return f"node '{node.name}' ({node.op_type})"
    made = next((name for name in node.output if name), "")
    return f"node {place} ({node.op_type}, which makes '{made}')" if made else f"node {place} ({node.op_type})"


def subgraphs(node: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of a node that are graphs, by name."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.name, attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            for i, graph in enumerate(attribute.graphs):
                yield f"{attribute.name}.{i}", graph


def reads(node: Any) -> list[str]:
    """The values that a node reads, with those that its sub-graphs read of the graph around them."""
    found = [name for name in node.input if name]
    for _, graph in subgraphs(node):
        found += captured(graph)
    return found


def captured(graph: Any) -> list[str]:
    """The values of outer graphs that a graph reads."""
    inner = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    inner.update(name for node in graph.node for name in node.output)
    names = [name for node in graph.node for name in reads(node)] + [value.name for value in graph.output]
    return list(dict.fromkeys(name for name in names if name and name not in inner))


def sort_nodes(graph: Any, name: str, around: Callable[[str], bool] = lambda value: False) -> None:
    """Put the nodes in an order in which each value is made before it is read, if that is not so.

    name: of the graph, for messages.  around: whether there is a value in the graphs around it.  Raises ModelError for a value that
    two nodes make or none, and for a cycle.
    """
    order = _order(graph, name, around)
    if order != list(range(len(order))):
        nodes = [graph.node[i] for i in order]
        del graph.node[:]
        graph.node.extend(nodes)


def _order(graph: Any, name: str, around: Callable[[str], bool]) -> list[int]:
    given = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    given.update(tensor.values.name for tensor in graph.sparse_initializer)
    maker: dict[str, int] = {}
    for i, node in enumerate(graph.node):
        for made in filter(None, node.output):
            if made in maker or made in given:
                other = label(graph.node[maker[made]], maker[made]) if made in maker else "a graph input or initializer"
                raise ModelError(f"{name}: {label(node, i)} makes '{made}', which {other} makes too: each value needs a name of its own")
            maker[made] = i
    needs: dict[int, set[int]] = {}
    in_order = True
    for i, node in enumerate(graph.node):
        for value in reads(node):
            if value not in maker and value not in given and not around(value):
                raise ModelError(f"{name}: {label(node, i)} reads '{value}', which is no input of the graph and no node makes: "
                                 "the file is damaged, or a part of another model")
        needs[i] = {maker[value] for value in reads(node) if value in maker}
        in_order = in_order and all(j < i for j in needs[i])
    for value in graph.output:
        if value.name not in maker and value.name not in given and not around(value.name):
            raise ModelError(f"{name}: its output '{value.name}' is made by no node")
    if in_order:
        return list(needs)
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        ring = " <- ".join(label(graph.node[i], i) for i in error.args[1][:5])
        raise ModelError(f"{name}: its nodes read each other's results in a cycle, so no order can run them: {ring}") from error


def _check_names(graph: Any, name: str) -> None:
    """protobuf hands out a text that is no UTF-8 as bytes."""
    words = [word for node in graph.node for word in (node.name, node.op_type, node.domain, *node.input, *node.output)]
    words += [tensor.name for tensor in graph.initializer]
    for value in (*graph.input, *graph.output, *graph.value_info):
        words += [value.name, *(dim.dim_param for dim in value.type.tensor_type.shape.dim)]
    wrong = next((word for word in words if not isinstance(word, str)), None)
    if wrong is not None:
        raise ModelError(f"{name}: the name {wrong!r} is no UTF-8: the file is damaged")
    for node in graph.node:
        for _, inner in subgraphs(node):
            _check_names(inner, name)


def _tensors(graph: Any) -> Iterable[Any]:
    """The tensors that a graph and its sub-graphs hold."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
        for _, inner in subgraphs(node):
            yield from _tensors(inner)


def _check_external(tensor: Any, name: str, folder: Path) -> None:
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    who = f"{name}: the data of '{tensor.name}'"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location or Path(location).is_absolute() or ".." in Path(location).parts:
        raise ModelError(f"{who} is external, at the location {location!r}: that must be a path below the model's folder")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
    except ValueError:
        raise ModelError(f"{who} is external, with an offset or a length that is no number") from None
    try:
        size = (folder / location).stat().st_size
    except OSError:
        raise ModelError(f"{who} lies in {folder / location}, which is missing: put that file beside the model") from None
    check_type(tensor.data_type, f"'{tensor.name}'")
    wanted = bytes_of(tensor.data_type, tensor.dims) if length < 0 else length
    if offset < 0 or offset + wanted > size:
        raise ModelError(f"{who} ends at byte {offset + wanted} of {folder / location}, which has {size}: that file is cut off, or "
                         "another model's")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
