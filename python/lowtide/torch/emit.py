"""A settled plan -> the FX graphs of forward and backward that compute exactly its steps, in its order.

Every computation of an op is a node of its own.  Views and getitems are no steps: they are made again
where they are read, from the newest value of their source.  What the backward reads and does not compute
becomes an output of the forward and a placeholder of the backward, always as the tensor that owns the
storage.  What must not happen twice does not: batch norm runs again without its statistics, a random draw
from the generator's state before the first draw (lowering.py).
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import SavedForBackwardsAOTOutput
from torch.fx._lazy_graph_module import _make_graph_module

from .dropout import apply as dropout_apply
from .lowering import Kind, Program, typed_by_statistics
from .operators import arguments_of, device_of, is_symbol, is_tangent
from .origins import unexpected
from .random_state import read_state, replay
from .steps import idle_states

aten = torch.ops.aten
_FUNCTIONAL_BN = aten._native_batch_norm_legit_functional.default
_BN_BACKWARD = aten.native_batch_norm_backward.default
Value = Any  # what a node of the joint graph is on one side: a node, or (node, index) of several results


def emit(program: Program, computes: list[int]) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward modules that run program.graph's ops in the order `computes` (steps.settle).

    Raises CaptureError, and nothing else, for what cannot be put into code, with the node named.
    """
    with _named() as sides:
        cut = computes.index(program.barrier)
        inputs = program.joint.graph.find_nodes(op="placeholder")
        idle, done = idle_states(program, computes), set()
        sides.append(forward := _Side(program, None, idle, done))
        for node in inputs:
            if not is_tangent(node):
                forward.placeholder(node)
        forward.run(computes[:cut])
        sides.append(backward := _Side(program, forward, idle, done))
        for node in inputs:
            if is_tangent(node):
                backward.placeholder(node)
        backward.run(computes[cut + 1:])
        given_back = [backward.get(n) if isinstance(n, fx.Node) else n for n in program.backward_outputs]
        handed_out = [forward.get(n) if isinstance(n, fx.Node) else n for n in program.forward_outputs]
        saved = [*backward.saved, *backward.numbers]
        output = forward.graph.output(tuple([*handed_out, *saved]))
        output.meta["desc"] = program.forward_descriptors + [SavedForBackwardsAOTOutput(i) for i in range(len(saved))]
        output = backward.graph.output(tuple(given_back))
        output.meta["desc"] = list(program.backward_descriptors)
        return _module(program, forward), _module(program, backward)


def emit_forward(program: Program, computes: list[int]) -> fx.GraphModule:
    """The module of a program without a backward; what comes after the barrier nobody reads.  Raises as `emit`."""
    with _named() as sides:
        cut = computes.index(program.barrier)
        sides.append(side := _Side(program, None, idle_states(program, computes), set()))
        for node in program.joint.graph.find_nodes(op="placeholder"):
            side.placeholder(node)
        side.run(computes[:cut])
        handed_out = tuple(side.get(n) if isinstance(n, fx.Node) else n for n in program.forward_outputs)
        side.graph.output(handed_out).meta["desc"] = list(program.forward_descriptors)
        return _module(program, side)


@contextlib.contextmanager
def _named() -> Iterator[list[_Side]]:
    """What goes wrong within is a CaptureError that names the node at which the last of these sides is."""
    sides: list[_Side] = []
    try:
        yield sides
    except Exception as error:
        raise unexpected(error, sides[-1].at if sides else None) from error


def _module(program: Program, side: _Side) -> fx.GraphModule:
    for node in reversed(list(side.graph.nodes)):
        if node.target is operator.getitem and not node.users:
            side.graph.erase_node(node)
    side.graph.lint()
    return _make_graph_module(program.joint, side.graph)


class _Side:
    """The graph of one side under construction; parent: the forward, for the backward.

    values: what a node of the joint graph, or one of its results (node, index), is now on this side.
    saved, numbers: the forward's values that the backward takes, in the order of its first placeholders, the numbers
    before the others there and after them among the forward's results.
    """

    def __init__(self, program: Program, parent: _Side | None, idle: set[int], done: set[int]) -> None:
        self.graph = fx.Graph()
        self.saved: list[fx.Node] = []
        self.numbers: list[fx.Node] = []
        self._program, self._parent, self._idle, self._done = program, parent, idle, done
        self._values: dict[Value, fx.Node] = {}
        self._views: dict[fx.Node, tuple[list[fx.Node], fx.Node]] = {}
        self.at: fx.Node | None = None  # the node of the joint graph that is being put into code
        self._last_saved = self._last_number = self.graph._root  # numbers, then saved values, then the tangents

    # ---- values

    def placeholder(self, node: fx.Node) -> None:
        self._values[node] = self._new_placeholder(node.name, node.meta)

    def get(self, node: fx.Node) -> fx.Node:
        """The newest value of a node of the joint graph on this side; views are made where they are missing."""
        if node.op == "get_attr":
            if node not in self._values:
                self._values[node] = self.graph.node_copy(node)
            return self._values[node]
        if node in self._program.views or self._is_view_item(node):
            return self._view(node)
        key: Value = (node.args[0], node.args[1]) if node.target is operator.getitem else node
        return self._get(key, node)

    def _get(self, key: Value, node: fx.Node) -> fx.Node:
        if key not in self._values:
            assert self._parent, f"{node} is read before it is computed"
            if is_symbol(node.meta["val"]):
                return self._number(key, node)
            self.saved.append(self._parent._get(key, node))
            with self.graph.inserting_after(self._last_saved):
                self._last_saved = self._new_placeholder(self.saved[-1].name, self.saved[-1].meta)
            self._values[key] = self._last_saved
        return self._values[key]

    def _number(self, key: Value, node: fx.Node) -> fx.Node:
        self.numbers.append(self._parent._get(key, node))
        with self.graph.inserting_after(self._last_number):
            made = self._new_placeholder(self.numbers[-1].name, self.numbers[-1].meta)
        if self._last_saved is self._last_number:
            self._last_saved = made
        self._last_number = self._values[key] = made
        return made

    def _is_view_item(self, node: fx.Node) -> bool:
        return node.target is operator.getitem and node.args[0] in self._program.views

    def _view(self, node: fx.Node) -> fx.Node:
        sources = [self.get(source) for source in node.all_input_nodes]
        known = self._views.get(node)
        if not known or known[0] != sources:
            new = dict(zip(node.all_input_nodes, sources, strict=True))
            self._views[node] = (sources, self.graph.node_copy(node, new.__getitem__))
        return self._views[node][1]

    def _new_placeholder(self, name: str, meta: dict[str, Any]) -> fx.Node:
        node = self.graph.placeholder(name)
        node.meta = dict(meta)
        return node

    # ---- ops

    def run(self, computes: list[int]) -> None:
        """Append the nodes of these ops."""
        runs = self._program.runs
        skip = False
        for op, following in itertools.zip_longest(computes, computes[1:]):
            run, again = runs[op], op in self._done
            self.at = run.node
            self._done.add(op)
            if skip:
                skip = False
            elif run.kind is Kind.STATE:
                if op not in self._idle:
                    self._values["state", op] = self._call(read_state, (device_of(run.node),), run.node,
                                                           torch.empty(0, dtype=torch.uint8))
            elif run.kind is Kind.MASK:
                skip = following is not None and runs[following].kind is Kind.APPLY and \
                    runs[following].node is run.node
                self._done.update([following] if skip else [])
                made = self._copy(run.node, again, run.state)
                self._items(run.node, made, (0,) if skip else ())
                self._item(run.node, made, 1)  # APPLY reads it where nobody else does
            elif run.kind is Kind.APPLY:
                self._apply(run.node)
            elif run.kind is Kind.NORM:
                self._norm(run.node, again)
            elif run.kind is Kind.CALL:
                made = self._copy(run.node, again, run.state)
                if isinstance(run.node.meta.get("val"), (tuple, list)):
                    self._items(run.node, made, range(len(run.node.meta["val"])))
                else:
                    self._values[run.node] = made

    def _items(self, node: fx.Node, made: fx.Node, indices: Any) -> None:
        """The results of several that somebody may read, each a node right after the op."""
        read = {user.args[1] for user in node.users if user.target is operator.getitem}
        for i in indices:
            if i in read:
                self._item(node, made, i)

    def _item(self, node: fx.Node, made: fx.Node, i: int) -> None:
        self._values[node, i] = self._call(operator.getitem, (made, i), node, node.meta["val"][i])

    def _call(self, function: Any, args: tuple[Any, ...], like: fx.Node, value: Any, kwargs: Any = None) -> fx.Node:
        new = self.graph.call_function(function, args, kwargs or {})
        new.meta = {k: v for k, v in like.meta.items() if k not in ("val", "tensor_meta")} | {"val": value}
        return new

    def _arguments(self, node: fx.Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if node.target is _BN_BACKWARD and arguments_of(node)["train"]:
            args = (*node.args[:3], None, None, *node.args[5:])  # it reads no running statistics
        else:
            args = node.args
        return fx.map_arg(args, self.get), fx.map_arg(node.kwargs, self.get)

    def _copy(self, node: fx.Node, again: bool, state: int | None) -> fx.Node:
        args, kwargs = self._arguments(node)
        if again and state is not None:
            return self._call(replay, (self._state(state), device_of(node), node.target, *args), node,
                              node.meta["val"], kwargs)
        return self._call(node.target, args, node, node.meta.get("val"), kwargs)

    def _state(self, op: int) -> fx.Node:
        return self._get(("state", op), self._program.runs[op].node)

    def _apply(self, node: fx.Node) -> None:
        args = (self.get(node.args[0]), self._get((node, 1), node), arguments_of(node)["p"])
        self._values[node, 0] = self._call(dropout_apply, args, node, node.meta["val"][0])

    def _norm(self, node: fx.Node, again: bool) -> None:
        if not again:
            self._items(node, self._copy(node, False, None), range(5))
            return
        a = arguments_of(node)
        pure = fx.map_arg((a["input"], a["weight"], a["bias"]), self.get)
        statistics = typed_by_statistics(a)
        if statistics:
            running = [self._call(aten.empty_strided.default, (list(t.shape), list(t.stride())), node, t,
                                  {"dtype": t.dtype, "device": t.device}) for t in statistics]
            args = (*pure, *running, True, a["momentum"], a["eps"])
            made = self._call(_FUNCTIONAL_BN, args, node, node.meta["val"])
        else:
            made = self._call(aten._native_batch_norm_legit.no_stats, (*pure, True, a["momentum"], a["eps"]), node,
                              node.meta["val"][:3])
        self._items(node, made, range(3))
