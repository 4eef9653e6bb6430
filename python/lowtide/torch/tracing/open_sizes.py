"""Symbolic sizes: a graph is traced once for all of them, and planned for those that it runs with.

The tracer hands over its graph with sizes as symbols.  It is traced on with symbols of its own, so the code that comes of
it takes sizes as numbers and serves all that keep the guards of its tracing, as with numbers (scalars.py).  A plan needs
bytes: before the joint graph is lowered each symbolic tensor in it gives way to one of the sizes at hand, in the same storages,
and what the storages' bytes are for other sizes is kept as a function of these.

It gives up where a size is 0 or 1, for which PyTorch traces another graph; where inputs share a storage; where a parameter or
another leaf with a gradient has an open size; and where a size is read from a tensor instead of being given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from ..compat import pytree
from ..compat.fake import FakeTensorMode
from ..compat.symbols import ConstantSource
from ..tensors.operators import leaves
from ..tensors.storages import bytes_of, is_trained, storage, storages
from .scalars import NotOpen, Symbols, function_of, ranges_of
from .symbolic_layouts import SymbolicLayouts, computed
from .symbolic_layouts import expression_of as _expression

aten = torch.ops.aten

_READ = (aten.sym_size.int, aten.sym_stride.int, aten.sym_numel.default, aten.sym_storage_offset.default)
SIZE = "lowtide_size"  # meta: the node is a number that is made of sizes alone

Values = list[int]  # of the symbols, in their order
OfSizes = Callable[..., Any]  # a function of these


class OpenSizes(Symbols):
    """The symbols of one tracing with open sizes.  at: arguments that are numbers and no sizes, which are symbols, too.

    likes: what the tracer says of each argument.  Raises NotOpen where one of its symbols is no argument's size.
    """

    def __init__(self, at: list[int], likes: list[Any]) -> None:
        super().__init__(at)
        self._likes = likes
        self._source: dict[sympy.Symbol, tuple[int, int | None]] = {}  # an argument, and which of its dimensions
        for i, like in enumerate(likes):
            if i not in at and isinstance(like, torch.SymInt) and isinstance(like.node.expr, sympy.Symbol):
                self._source.setdefault(like.node.expr, (i, None))
        for i, like in enumerate(likes):
            for d, n in enumerate(like.shape if isinstance(like, torch.Tensor) else ()):
                if isinstance(n, torch.SymInt) and isinstance(n.node.expr, sympy.Symbol):
                    self._source.setdefault(n.node.expr, (i, d))
        symbols = set().union(*(_expression(n).free_symbols for i, like in enumerate(likes) if i not in at for n in _sizes(like)))
        if not self._source or not symbols <= self._source.keys():
            raise NotOpen
        self._theirs = list(self._source)
        self._sizes_of = function_of(self._theirs, [[] if i in at else [_expression(n) for n in _sizes(like)]
                                                   for i, like in enumerate(likes)])
        self._own: list[sympy.Symbol] = []
        self._bytes: dict[int, sympy.Expr] = {}  # storage of the concrete graph -> what it takes
        self._shapes: dict[int, list[sympy.Expr]] = {}
        self._made: list[tuple[fx.Node, Any]] = []  # nodes of the concrete graph with what they gave then, whose storages are the keys above

    def again(self) -> OpenSizes:
        """The same for another tracing."""
        return OpenSizes(self.at, self._likes)

    def sizes(self, args: Any) -> Values:
        """The values of the symbols in a call with these arguments."""
        return [int(args[i] if d is None else args[i].shape[d]) for i, d in self._source.values()]

    def graph(self, gm: fx.GraphModule, args: list[Any]) -> fx.GraphModule:
        return gm

    def arguments(self, args: list[Any]) -> list[Any]:
        values = self.sizes(args)
        opened = [any(_expression(n).free_symbols for n in _sizes(like)) for like in self._likes]
        tensors = [t for t in args if isinstance(t, torch.Tensor)]
        if min(values) < 2:
            raise NotOpen(always=False)
        if len(storages(tensors)) < len({id(t) for t in tensors}) or not self._are_like(args) \
                or any(is_trained(t) or isinstance(t, torch.nn.Parameter) for t, is_open in zip(args, opened, strict=True) if is_open):
            raise NotOpen
        self._env = env = ShapeEnv(duck_shape=False)
        mode = FakeTensorMode(shape_env=env, static_shapes=True)
        self._own = [env.create_symbol(value, source=ConstantSource(f"size{k}"), dynamic_dim=DimDynamic.DYNAMIC,
                                       constraint_dim=None) for k, value in enumerate(values)]
        own = dict(zip(self._theirs, self._own, strict=True))
        hints = dict(zip(self._own, values, strict=True))

        def symbol(n: Any) -> Any:
            expression = _expression(n).xreplace(own)
            hint = int(expression.xreplace(hints))
            return env.create_symintnode(expression, hint=hint, source=None) if expression.free_symbols else hint

        self._bytes, self._shapes, self._made = {}, {}, []  # what comes of an earlier tracing knows what it needs
        self._symbols, made = [], []
        for i, (value, like) in enumerate(zip(args, self._likes, strict=True)):
            if i in self.at:
                made.append(self._number(i, value))
            elif isinstance(like, torch.SymInt):
                made.append(symbol(like))
            elif isinstance(value, torch.Tensor) and opened[i]:
                with mode:
                    fake = torch.empty_strided([symbol(n) for n in like.shape], [symbol(n) for n in like.stride()],
                                               dtype=value.dtype, device=value.device)
                made.append(fake.requires_grad_(value.requires_grad))
            else:
                made.append(mode.from_tensor(value) if isinstance(value, torch.Tensor) else value)
        return made

    def _are_like(self, args: Any) -> bool:
        """Are shapes and strides what the tracer says that they are?"""
        theirs = self._sizes_of(self.sizes(args))
        return all(list(map(int, found)) == ([*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value])
                   for i, (found, value) in enumerate(zip(theirs, args, strict=True)) if len(found) and i not in self.at)

    def _may_size(self, symbol: sympy.Symbol) -> bool:
        return symbol in self._own

    def _given_alone(self, joint: fx.GraphModule) -> dict[sympy.Symbol, fx.Node]:
        """Have sizes that are read from tensors, or stand among arguments, made of those that are given as numbers, so that no tensor is
        held for them.  Gives the placeholders of these."""
        placeholders = joint.graph.find_nodes(op="placeholder")
        numbers: dict[sympy.Expr, Any] = {n.meta["val"].node.expr: n for n in placeholders if isinstance(n.meta.get("val"), torch.SymInt)}
        given = {expression: node for expression, node in numbers.items() if expression in self._own}
        first = next(n for n in joint.graph.nodes if n.op != "placeholder")

        def call(function: Any, args: tuple[Any, Any], makes: sympy.Expr) -> fx.Node:
            with joint.graph.inserting_before(first):
                node = joint.graph.call_function(function, args)
            node.meta["val"] = self._env.create_symintnode(makes, hint=int(makes.xreplace(self._env.backed_var_to_val)), source=None)
            return node

        def as_node(value: Any) -> Any:
            is_read = isinstance(value, fx.Node) and value.target in _READ
            return computed(_expression(value.meta["val"] if is_read else value), numbers, call) \
                if is_read or isinstance(value, torch.SymInt) else value

        for node in list(joint.graph.nodes):
            node.args, node.kwargs = pytree.tree_map(as_node, (node.args, node.kwargs))
        for target in _READ:
            for node in joint.graph.find_nodes(op="call_function", target=target):
                joint.graph.erase_node(node)
        return given

    def concrete(self, joint: fx.GraphModule, args: list[Any]) -> SymbolicLayouts:
        """Put tensors of the sizes at hand in the place of the symbolic ones of a joint graph, which are how these lie at other sizes."""
        sizes = self._given_alone(joint)
        hints = {symbol: int(self._env.backed_var_to_val[symbol]) for symbol in self._own}
        layouts = SymbolicLayouts(joint, sizes, hints)
        mode = FakeTensorMode()
        made: dict[int, torch.Tensor] = {}
        known: dict[int, tuple[Any, Any]] = {}
        places = {getattr(n.meta.get("desc"), "idx", None): n for n in joint.graph.find_nodes(op="placeholder")}
        given = {storage(n.meta["val"]): bytes_of(args[i]) for i, n in places.items()
                 if i is not None and isinstance(n.meta.get("val"), torch.Tensor)}

        def of(t: Any) -> Any:
            if not isinstance(t, torch.Tensor):
                return t
            if id(t) in known:
                return known[id(t)][1]
            key, size = storage(t), t.untyped_storage().nbytes()
            if key not in made:
                made[key] = torch.empty(max(_hint(size), given.get(key, 0)), dtype=torch.uint8, device=t.device)
                self._bytes[storage(made[key])] = _expression(size)
            own = torch.empty(0, dtype=t.dtype, device=t.device).set_(
                made[key].untyped_storage(), _hint(t.storage_offset()), [*map(_hint, t.shape)], [*map(_hint, t.stride())])
            self._shapes.setdefault(storage(own), [_expression(n) for n in t.shape])
            known[id(t)] = t, own.requires_grad_(t.requires_grad) if t.requires_grad else own
            return known[id(t)][1]

        with mode:
            for node in joint.graph.nodes:
                if "val" in node.meta:
                    if isinstance(node.meta["val"], torch.SymInt) and _expression(node.meta["val"]).free_symbols <= sizes.keys():
                        node.meta[SIZE] = True
                    node.meta["val"] = pytree.tree_map(of, node.meta["val"])
        self._made += [(node, node.meta.get("val")) for node in joint.graph.nodes]
        return layouts

    def enter(self, made: fx.GraphModule, layouts: SymbolicLayouts, joint: fx.GraphModule) -> None:
        """Know the tensors of a graph that was formed of the concrete one."""
        self._follow()
        tensors = [t for node in made.graph.nodes for t in leaves(node.meta.get("val"))]
        for key, size, shape in layouts.bytes_and_shapes(joint.graph.nodes, set(map(storage, tensors)) - self._bytes.keys()):
            self._bytes[key], self._shapes[key] = size, shape
        self._made += [(node, node.meta.get("val")) for node in made.graph.nodes]

    def bytes_and_shapes(self, tensors: list[torch.Tensor]) -> OfSizes | None:
        """The bytes and the shapes of these of the concrete graph, as a function of sizes; None if one is not known."""
        self._follow()
        keys = [storage(t) for t in tensors]
        if not all(key in self._bytes for key in keys):
            return None
        return self.function_of([[self._bytes[key] for key in keys], [self._shapes[key] for key in keys]])

    def function_of(self, tree: Any) -> OfSizes:
        """A tree of lists of expressions as a function of sizes."""
        return function_of(self._own, tree)

    def _follow(self) -> None:
        """Know the tensors by which corrections of the concrete graph have replaced those of its nodes, in another layout for one."""
        for node, before in self._made:
            for old, new in zip(pytree.tree_leaves(before), pytree.tree_leaves(node.meta.get("val"))):
                if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor) and storage(new) not in self._bytes \
                        and storage(old) in self._bytes and old.shape == new.shape and old.untyped_storage().nbytes() == new.untyped_storage().nbytes():
                    self._bytes[storage(new)], self._shapes[storage(new)] = self._bytes[storage(old)], self._shapes[storage(old)]

    def seal(self) -> None:
        numbers = list(self._symbols)
        self._symbols = [*numbers, *self._own]
        self._ranges = ranges_of(self._env, self._own)
        super().seal()

    def hold(self, args: Any) -> bool:
        values = self.sizes(args)
        return all(low <= value <= high for value, (low, high) in zip(values, self._ranges, strict=True)) \
            and self._are_like(args) and super().hold(args)

    def _values(self, args: Any) -> list[Any]:
        return [*super()._values(args), *self.sizes(args)]


def _sizes(value: Any) -> tuple[Any, ...]:
    """The sizes of an argument that may be symbolic."""
    if isinstance(value, torch.Tensor):
        return (*value.shape, *value.stride())
    return (value,) if isinstance(value, torch.SymInt) else ()


def _hint(n: Any) -> int:
    return n.node.hint if isinstance(n, torch.SymInt) else int(n)
