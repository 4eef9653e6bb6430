"""A traced graph in which modules are called that have hooks of their own: parts between the calls, each a graph of its own.

FSDP2 gathers and frees a module's parameters by hooks around its forward, which no graph can hold.  In a module that contains such
modules (`units`), Dynamo traces a call of a unit as one operator, `call_unit`.  Its loops over units break no graph therefore, and what stands
between the calls, such as an embedding, a head or the loss, is found as graphs.  When the traced code runs, a call of a unit is one
of the module, with its hooks.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..compat import pytree
from ..compat.fake import FakeTensor
from ..tracing.origins import labels_of

_keys = itertools.count()
_units: weakref.WeakValueDictionary[int, torch.nn.Module] = weakref.WeakValueDictionary()
_shapes: weakref.WeakKeyDictionary[torch.nn.Module, Callable[..., Any]] = weakref.WeakKeyDictionary()


class Unit:
    """The first base of a unit's class."""


@torch.compiler.allow_in_graph
def call_unit(key: int, *args: Any, **kwargs: Any) -> Any:
    """A call of a unit as an operator.  While it is traced the results are fake."""
    unit = _units[key]
    if any(isinstance(value, FakeTensor) for value in pytree.tree_leaves((args, kwargs))):
        return _shapes[unit](*args, **kwargs)
    return torch.nn.Module.__call__(unit, *args, **kwargs)


def as_unit(module: torch.nn.Module, shapes: Callable[..., Any]) -> None:
    """Have Dynamo trace calls of a module as calls of a unit.  shapes: the results for fake arguments."""
    _shapes[module] = shapes
    kind = type(module)
    if issubclass(kind, Unit):
        return
    key = next(_keys)

    def call(_: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        return call_unit(key, *args, **kwargs)

    own = {"__call__": call, "__module__": kind.__module__}
    index = getattr(kind, "_orig_cls_mro_index", None)  # where FSDP2 finds the class without it
    if index is not None:
        own["_orig_cls_mro_index"] = index + 2
    module.__class__ = type(kind.__name__, (Unit, kind), own)
    _units[key] = module


@dataclass
class _Step:
    """One step of the code: a graph, or a call that runs as it is.  takes: nodes whose values are its arguments.  gives: of those that
    it makes.  drops: nodes that nothing needs after it."""

    run: Callable[..., Any]
    takes: Any
    gives: list[fx.Node] | fx.Node
    drops: list[fx.Node]


class Segments:
    """The code of a traced graph: its parts, by `compiled`, and calls of units."""

    def __init__(self, gm: fx.GraphModule, compiled: Callable[[fx.GraphModule], Callable[..., Any]]) -> None:
        labels_of(gm)
        self._inputs = list(gm.graph.find_nodes(op="placeholder"))
        (output,) = gm.graph.find_nodes(op="output")
        self._output = output.args[0]
        self._steps = [self._step(gm, nodes, compiled) for nodes in _parted(gm)]
        needed = set(_nodes_in(self._output))
        for step in reversed(self._steps):
            touched = dict.fromkeys([*_nodes_in(step.takes), *_nodes_in(step.gives)])
            step.drops = [node for node in touched if node not in needed]
            needed |= touched.keys()
        self._unused = [node for node in self._inputs if node not in needed]

    def __call__(self, *args: Any) -> Any:
        values = dict(zip(self._inputs, args, strict=True))
        del args
        for node in self._unused:
            del values[node]
        for step in self._steps:
            takes = fx.node.map_arg(step.takes, values.__getitem__)
            made = step.run(*takes[0], **takes[1])
            del takes
            if isinstance(step.gives, fx.Node):
                values[step.gives] = made
            else:
                values.update(zip(step.gives, made, strict=True))
            del made
            for node in step.drops:
                del values[node]
        return fx.node.map_arg(self._output, values.__getitem__)

    def _step(self, gm: fx.GraphModule, nodes: list[fx.Node], compiled: Callable[[fx.GraphModule], Callable[..., Any]]) -> _Step:
        (first, *_) = nodes
        if _is_between(first):
            return _Step(first.target, (first.args, first.kwargs), first, [])  # type: ignore[arg-type]
        part, takes, gives = _part(gm, nodes)
        return _Step(compiled(part), (tuple(takes), {}), gives, [])


def has_units(gm: fx.GraphModule) -> bool:
    """Does it call units?"""
    return any(node.target is call_unit for node in gm.graph.nodes)


def _is_between(node: fx.Node) -> bool:
    """Is it a call of a unit, or does it take a result of one out of a container?"""
    return node.target is call_unit or node.target is operator.getitem and isinstance(node.args[0], fx.Node) and _is_between(node.args[0])


def _parted(gm: fx.GraphModule) -> list[list[fx.Node]]:
    """Nodes that run together; one that is between parts is alone."""
    parts: list[list[fx.Node]] = []
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if _is_between(node) or not parts or _is_between(parts[-1][0]):
            parts.append([])
        parts[-1].append(node)
    return parts


def _part(gm: fx.GraphModule, nodes: list[fx.Node]) -> tuple[fx.GraphModule, list[fx.Node], list[fx.Node]]:
    """A graph of these nodes, what it takes, and what it gives to others."""
    inside = set(nodes)
    takes = list(dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside))
    gives = [node for node in nodes if any(user not in inside for user in node.users)]
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for source in takes:
        copies[source] = graph.placeholder(source.name)
        copies[source].meta = dict(source.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in gives))
    part = fx.GraphModule(gm, graph)
    part.meta = {name: value for name, value in gm.meta.items() if name != "lowtide_labels"}
    labels_of(part)
    return part, takes, gives


def _nodes_in(value: Any) -> list[fx.Node]:
    found: list[fx.Node] = []
    fx.node.map_arg(value, found.append)
    return found
