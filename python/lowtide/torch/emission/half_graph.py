"""One half of a step, forward or backward, as an FX graph under construction.

Every computation of an op has its own nodes.  Views and getitems are not steps: they are created where they are read, from the
newest value of their source.  A tensor that the backward reads but does not compute becomes an output of the forward and a
placeholder of the backward, always as the tensor that owns the storage.  The emitter of an op (lowerings) makes its nodes.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from ...frontend.planning.schedule import Computation, Transfers
from ..program.emitter import Run, Value
from ..program.in_place import OutVariant
from ..program.program import Program
from ..runtime.arranged import arrange
from ..tensors.operators import is_symbol, leaves
from .copies import Copies
from .execute import note_overwriting
from .points import Points
from .repeated import note_parts
from .saved import note_left

aten = torch.ops.aten


class HalfGraphBuilder:
    """parent: the forward, for the backward.  elided: ops without code.  done: ops that the step has computed so far, shared by both
    halves.  points: to note where allocations may be arranged (points.py).  together: the updates that one call makes, by the last of
    them; none for the others.

    program: the one whose code is generated.  values: the current value in this half of a node of the joint graph, or of one of its
    results (node, index).  at: the node of the joint graph whose code is being generated.
    saved, numbers: the forward's values that the backward reads, in the order of its first placeholders; numbers come first there,
    and last among the forward's results.
    """

    def __init__(self, program: Program, parent: HalfGraphBuilder | None, elided: set[int], done: set[int],
                 points: Points | None = None, together: Mapping[int, tuple[int, ...]] | None = None) -> None:
        self.graph = fx.Graph()
        self.saved: list[fx.Node] = []
        self.numbers: list[fx.Node] = []
        self.program, self._parent, self._elided, self._done = program, parent, elided, done
        self.values: dict[Value, fx.Node] = {}
        self._views: dict[fx.Node, tuple[list[fx.Node], fx.Node]] = {}
        self._made_as_views: set[fx.Node] = set()
        self._left: dict[fx.Node, fx.Node] = {}  # placeholder of a saved value -> what the forward saves
        self._copies: Copies = Copies(self, None if parent is None else parent._copies)
        self.at: fx.Node | None = None
        self._points, self._together = points, together or {}
        self._last_saved = self._last_number = self.graph._root  # numbers, then saved values, then the tangents

    @property
    def runs(self) -> list[Run]:
        return self.program.runs

    # ---- values

    def placeholder(self, node: fx.Node) -> None:
        self.values[node] = self._new_placeholder(node.name, node.meta)

    def get(self, node: fx.Node) -> fx.Node:
        """The newest value of a node of the joint graph in this half; views are made where they are missing."""
        if node.op == "get_attr":
            if node not in self.values:
                self.values[node] = self.graph.node_copy(node)
            return self.values[node]
        if node in self.program.views or self._is_view_item(node):
            return self._view(node)
        key: Value = (node.args[0], node.args[1]) if node.target is operator.getitem else node
        return self.value(key, node)

    def value(self, key: Value, node: fx.Node) -> fx.Node:
        """The newest value of what is known by `key`, which `node` of the joint graph makes."""
        self._copies.arrive(key)
        if key not in self.values:
            assert self._parent, f"{node} is read before it is computed"
            if is_symbol(node.meta["val"]):
                return self._number(key, node)
            self.values[key] = self.take(self._parent.value(key, node))
        return self.values[key]

    def knows(self, key: Value) -> bool:
        """Has this half or the forward a value of it?"""
        return key in self.values or self._parent is not None and self._parent.knows(key)

    def take(self, value: fx.Node) -> fx.Node:
        """The placeholder, on this half, of the forward's saved node `value`."""
        self.saved.append(value)
        with self.graph.inserting_after(self._last_saved):
            self._last_saved = self._new_placeholder(value.name, value.meta)
        self._left[self._last_saved] = value
        return self._last_saved

    def _number(self, key: Value, node: fx.Node) -> fx.Node:
        assert self._parent is not None, "the forward is given its numbers"
        self.numbers.append(self._parent.value(key, node))
        with self.graph.inserting_after(self._last_number):
            made = self._new_placeholder(self.numbers[-1].name, self.numbers[-1].meta)
        if self._last_saved is self._last_number:
            self._last_saved = made
        self._last_number = self.values[key] = made
        return made

    def _is_view_item(self, node: fx.Node) -> bool:
        return node.target is operator.getitem and node.args[0] in self.program.views

    def _view(self, node: fx.Node) -> fx.Node:
        sources = [self.get(source) for source in node.all_input_nodes]
        known = self._views.get(node)
        if not known or known[0] != sources:
            new = dict(zip(node.all_input_nodes, sources, strict=True))
            self._views[node] = (sources, self.graph.node_copy(node, new.__getitem__))
            self._made_as_views.add(self._views[node][1])
        return self._views[node][1]

    def _new_placeholder(self, name: str, meta: dict[str, Any]) -> fx.Node:
        node = self.graph.placeholder(name)
        node.meta = dict(meta)
        return node

    # ---- ops

    def run(self, computes: list[Computation], transfers: Transfers, first: int = 0) -> None:
        """Append the nodes of these ops, and of the copies to the host and back between them.

        first: how many computations the step makes before these.
        """
        is_made = False  # by the nodes of the op before
        joins = False  # the point of the op before
        last = self.graph._root.prev
        pairs = itertools.zip_longest(computes, (op for op, _ in computes[1:]))
        for at, ((op, over), following) in enumerate(pairs, first):
            for kind, tensor in transfers.get(at, ()):
                self._move(kind, tensor)
            for tensor in over:
                self._copies.land(tensor)
            if at + 1 in transfers:
                following = None
            run, again = self.runs[op], op in self._done
            self.at = run.node
            self._done.add(op)
            if is_made:
                is_made = False
            elif op not in self._elided:
                if not joins:
                    self._begin_point("compute", at)
                joins = run.emitter.made_by_next
                is_made = run.emitter.emit(self, op, again, following, over)
            last = note_parts(self.graph, last, run.part)
        for kind, tensor in transfers.get(first + len(computes), ()):
            self._move(kind, tensor)

    def _move(self, kind: str, tensor: int) -> None:
        if kind == "prefetch":
            self._begin_point(kind)
        self._copies.step(kind, tensor)

    def _begin_point(self, kind: str, at: int = 0) -> None:
        if self._points is not None:
            self.add(arrange, (self._points.number, self._points.begin(kind, at)), None)

    def settle(self) -> None:
        """Wait for all copies that have begun here."""
        self._copies.settle()

    # ---- what emitters make nodes with

    def updates_at(self, op: int) -> tuple[int, ...]:
        """The updates that the code of this one makes in one call; none if it is left to a later one."""
        return self._together.get(op, (op,))

    def call(self, function: Any, args: tuple[Any, ...], like: fx.Node, value: Any, kwargs: Any = None) -> fx.Node:
        """A call with the meta data of the joint graph's node `like`, whose result is like the fake `value`."""
        new = self.graph.call_function(function, args, kwargs or {})
        new.meta = {k: v for k, v in like.meta.items() if k not in ("val", "tensor_meta", "desc")} | {"val": value}
        return new

    def add(self, function: Any, args: tuple[Any, ...], value: Any) -> fx.Node:
        """A call that no node of the joint graph stands for, whose result is like the fake `value`."""
        new = self.graph.call_function(function, args)
        new.meta = {"val": value}
        return new

    def call_over(self, written: fx.Node, variant: OutVariant, target: Any, args: tuple[Any, ...], like: fx.Node, value: Any,
                  kwargs: Any = None) -> fx.Node:
        """The same of `target`, with a note that its out variant is to write the result over `written`, one of the arguments
        (execute.py).

        An out variant returns what it has written to.  Where that is a view, the result is not: PyTorch refuses to change, or to
        detach, views that come out of a compiled function.
        """
        new = self.call(target, args, like, value, kwargs)
        saved = self._saved_below(written)
        note_overwriting(new, written, variant, saved)
        if saved is not None:
            note_left(self._left[saved])
        return self.call(aten.detach.default, (new,), like, value) if written in self._made_as_views else new

    def _saved_below(self, node: fx.Node) -> fx.Node | None:
        """The placeholder whose storage is that of a node; None if this half has made it."""
        while node in self._made_as_views:
            node = next(n for n in node.all_input_nodes if leaves(n.meta.get("val")))
        return node if node.op == "placeholder" else None

    def arguments(self, node: fx.Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node of the joint graph as they are on this half."""
        return fx.map_arg(node.args, self.get), fx.map_arg(node.kwargs, self.get)

    def items(self, node: fx.Node, made: fx.Node, indices: Any) -> None:
        """The results of several that somebody may read, each a node right after the op."""
        read = {user.args[1] for user in node.users if user.target is operator.getitem}
        for i in indices:
            if i in read:
                self.item(node, made, i)

    def item(self, node: fx.Node, made: fx.Node, i: int) -> None:
        """Result i of `made`, which computes `node`."""
        self.values[node, i] = self.call(operator.getitem, (made, i), node, node.meta["val"][i])
