"""Shares the code of equal parts of a region: one function, called once for each part.

A plan gives each part its own ops, and code is emitted for each.  Most plans treat all parts equally, so with many parts the
code repeats the same lines, and PyTorch's graph passes and Python's compiler take time for each of them.  This pass compares
runs of consecutive nodes of one part each.  Two runs are equal if they call the same functions on results of the same earlier
nodes of the run and on the same constants, except for numbers and values from outside of the run, and if the same of their
results are read afterwards.  More than _APART equal runs become calls of one function, whose arguments are the differences.
A part with other steps (a recomputation, a later free, the first part's value instead of a sum) differs and stays as it is.

Lifetimes do not change: a value from outside whose last reader is in the run is moved into the function, which frees it where
the run did (execute.py).  The function returns the values that were live at the end of each run.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from torch import fx

from ..compat import pytree
from ..compat.aot import graph_module
from ..program.emitter import BOXED
from .execute import compile_graph, note_overwriting, overwriting

_APART = 8  # equal runs at most whose code is made for each
_SHORT = 8  # nodes; of a shorter run the call costs as much as its lines
_PART = "lowtide_part"

_numbers = itertools.count()


def note_parts(graph: fx.Graph, last: fx.Node, part: Any) -> fx.Node:
    """Note that the nodes behind `last` belong to a part, None for none; returns the last of all."""
    while last.next is not graph._root:
        last = last.next
        if part is not None:
            last.meta[_PART] = part
    return last


def share_code(owner: fx.GraphModule, graph: fx.Graph) -> None:
    """Replace the runs of equal parts by calls of one function.  owner: the module whose attributes the graph names."""
    alike: dict[Any, list[_Run]] = {}
    for nodes in _runs(graph):
        if len(nodes) >= _SHORT:
            run = _Run(nodes)
            alike.setdefault(run.form, []).append(run)
    now: dict[fx.Node, fx.Node] = {}  # nodes that are gone -> what stands for them
    for runs in alike.values():
        if len(runs) > _APART:
            _replace(owner, graph, runs, now)


def _runs(graph: fx.Graph) -> Iterator[list[fx.Node]]:
    """The nodes of one part each that follow one another; what has no place in time stands between them."""
    part: Any = None
    nodes: list[fx.Node] = []
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            continue
        found = node.meta.get(_PART)
        over = overwriting(node)
        if over and over.saved:  # who may write there is known when it runs, and of the graph's own nodes alone
            found = None
        if found != part or found is None:
            if nodes:
                yield nodes
            part, nodes = found, []
        if found is not None:
            nodes.append(node)
    if nodes:
        yield nodes


class _Run:
    """Consecutive nodes of one part.

    form: equal for equal runs.  varying: the differences, in the order of the form: nodes from outside, and integers.  read_behind:
    the nodes that are read after the run.
    """

    def __init__(self, nodes: list[fx.Node]) -> None:
        self.nodes = nodes
        self._places = {node: i for i, node in enumerate(nodes)}
        self.varying: list[Any] = []
        self.read_behind = [i for i, node in enumerate(nodes) if any(user not in self._places for user in node.users)]
        self.form = tuple(map(self._form_of_node, nodes)), tuple(self.read_behind)

    def _form_of_node(self, node: fx.Node) -> Any:
        over = overwriting(node)
        inputs = node.all_input_nodes  # each once: which of them are the same says where one is overwritten
        again = tuple(inputs.index(value) for value in pytree.tree_leaves([node.args, node.kwargs]) if isinstance(value, fx.Node))
        return node.op, node.target, self._form([node.args, node.kwargs]), again, over and (over.argument, over.variant)

    def _form(self, value: Any) -> Any:
        if isinstance(value, fx.Node) and value in self._places:
            return "node", self._places[value]
        if isinstance(value, (tuple, list)):
            return isinstance(value, tuple), tuple(map(self._form, value))
        if isinstance(value, dict):
            return tuple((key, self._form(v)) for key, v in value.items())
        if isinstance(value, fx.Node) or type(value) is int:
            self.varying.append(value)
            return "varies", type(value)
        if isinstance(value, (float, complex)):
            return type(value), repr(value)  # 0 and -0 are two
        try:
            hash(value)
        except TypeError:
            return "this one", id(value)
        return type(value), value


def _replace(owner: fx.GraphModule, graph: fx.Graph, runs: list[_Run], now: dict[fx.Node, fx.Node]) -> None:
    first = runs[0]
    given: dict[Any, int] = {}  # what the function takes, by what that is in each run
    places = []
    for column in zip(*(run.varying for run in runs), strict=True):
        constant = not isinstance(column[0], fx.Node) and len(set(column)) == 1
        places.append(None if constant else given.setdefault(column, len(given)))
    function = _function(owner, first, places, len(given))
    for run in runs:
        arguments: list[Any] = [None] * len(given)
        for place, value in zip(places, run.varying, strict=True):
            if place is not None:
                arguments[place] = now.get(value, value) if isinstance(value, fx.Node) else value
        results = [run.nodes[i] for i in first.read_behind]
        with graph.inserting_after(run.nodes[-1]):
            call = last = graph.call_function(function, tuple(arguments))
        call.meta = {"val": tuple(node.meta.get("val") for node in results)}
        mine = set(run.nodes)
        for i, node in enumerate(results):
            with graph.inserting_after(last):
                last = now[node] = graph.call_function(operator.getitem, (call, i))
            last.meta = dict(node.meta)
            node.replace_all_uses_with(last, functools.partial(_is_outside, mine))
        for node in reversed(run.nodes):
            graph.erase_node(node)


def _is_outside(mine: set[fx.Node], user: fx.Node) -> bool:
    return user not in mine


def _function(owner: fx.GraphModule, run: _Run, places: list[int | None], count: int) -> Callable[..., Any]:
    """The function of runs like this one.  places: of what varies, which argument it is, None for none; count: of these."""
    body = fx.Graph()
    arguments = [body.placeholder(f"given_{i}") for i in range(count)]
    made: dict[fx.Node, fx.Node] = {}
    varying = iter(zip(places, run.varying, strict=True))

    def mapped(value: Any) -> Any:
        if isinstance(value, fx.Node) and value in made:
            return made[value]
        if isinstance(value, (tuple, list)):
            return (tuple if isinstance(value, tuple) else list)(map(mapped, value))
        if isinstance(value, dict):
            return {key: mapped(v) for key, v in value.items()}
        if isinstance(value, fx.Node) or type(value) is int:
            place, constant = next(varying)
            if isinstance(value, fx.Node) and place is not None:
                outside[value] = arguments[place]
            return constant if place is None else arguments[place]
        return value

    for node in run.nodes:
        outside: dict[fx.Node, fx.Node] = {}
        args, kwargs = mapped([node.args, node.kwargs])
        new = made[node] = body.create_node(node.op, node.target, args, kwargs)
        new.meta = dict(node.meta)
        if over := overwriting(node):
            written = node.all_input_nodes[over.argument]
            note_overwriting(new, made.get(written) or outside[written], over.variant, None)
    body.output(tuple(made[run.nodes[i]] for i in run.read_behind))
    number = next(_numbers)
    boxed = compile_graph(graph_module(owner, body), f"part {number}")

    def part(*given: Any) -> Any:
        return boxed(list(given))

    part.__name__ = part.__qualname__ = f"part_{number}"  # by which FX prints it
    setattr(part, BOXED, boxed)
    return part
