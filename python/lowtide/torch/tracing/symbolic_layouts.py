"""How the tensors of a joint graph lie, as expressions of the sizes that its tracing left open.

Which ops become one kernel, and how convolutions read, is decided at the sizes at hand, on fake tensors of these.  What is compiled
serves other sizes too, so it needs each shape and each stride as an expression.  Shapes are those that the tracer said.  Strides are
the tracer's where the fake tensor still lies so; where it lies otherwise, as convolutions read it for one, its dimensions are
dense in another order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import sympy
import torch
from torch import fx

from ...frontend.errors import CaptureError
from ..compat import pytree
from ..compat.symbols import FloorDiv, Mod, PythonMod
from ..tensors.operators import leaves
from ..tensors.storages import storage
from .scalars import NotOpen

# by which code makes a size of others
_FUNCTIONS = {sympy.Add: operator.add, sympy.Mul: operator.mul, sympy.Pow: operator.pow, FloorDiv: operator.floordiv,
              PythonMod: operator.mod, Mod: operator.mod}

Names = dict[sympy.Symbol, sympy.Symbol]


@dataclass(frozen=True)
class Lies:
    """How a tensor lies: shape, strides and offset are expressions."""

    shape: tuple[sympy.Expr, ...]
    strides: tuple[sympy.Expr, ...]
    offset: sympy.Expr
    dtype: torch.dtype
    device: torch.device

    def numbers(self) -> Iterator[sympy.Expr]:
        yield from (*self.shape, *self.strides, self.offset)

    def renamed(self, names: Names) -> Lies:
        shape, strides = (tuple(n.xreplace(names) for n in numbers) for numbers in (self.shape, self.strides))
        return replace(self, shape=shape, strides=strides, offset=self.offset.xreplace(names))

    @property
    def bytes(self) -> sympy.Expr:
        """Of the least storage that holds it."""
        last = sum(((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)), self.offset)
        return sympy.expand((last + 1) * self.dtype.itemsize)


def expression_of(n: Any) -> sympy.Expr:
    return n.node.expr if isinstance(n, torch.SymInt) else sympy.Integer(int(n))


def computed(expression: sympy.Expr, known: dict[sympy.Expr, Any], call: Callable[[Any, tuple[Any, Any], sympy.Expr], Any]) -> Any:
    """What stands for an expression: a number, or what is known, or calls of functions of such, each with the expression that it
    makes.  Raises NotOpen."""
    if expression.is_Integer:
        return int(expression)
    if expression not in known:
        function = _FUNCTIONS.get(expression.func)
        if function is None or not expression.is_integer:
            raise NotOpen
        value = computed(expression.args[0], known, call)
        for i, part in enumerate(expression.args[1:], 2):
            value = call(function, (value, computed(part, known, call)), expression.func(*expression.args[:i]))
        known[expression] = value
    return known[expression]


class SymbolicLayouts:
    """Of a joint graph whose fake tensors are of the sizes at hand.

    traced: what the tracer said of each node.  given: the placeholders whose numbers the symbols are.  hints: these numbers here.
    """

    def __init__(self, joint: fx.GraphModule, given: dict[sympy.Symbol, fx.Node], hints: dict[sympy.Symbol, int]) -> None:
        self.given, self._hints = given, hints
        self._traced = {node: node.meta.get("val") for node in joint.graph.nodes}
        self._known: dict[sympy.Expr, int] = {}
        self._values: dict[fx.Node, Any] = {}  # symbolic, as they lie now

    def of(self, node: fx.Node) -> Any:
        """A tree of Lies in the place of its tensors, and of expressions in that of its numbers.  Raises CaptureError."""
        for other in node.graph.nodes if node not in self._values else ():
            self._values[other] = self._value(other)
        value = self._values[node]
        if isinstance(value, CaptureError):
            raise value
        shown, tree = pytree.tree_flatten(node.meta.get("val"))
        return pytree.tree_unflatten([self._lies(*pair) for pair in zip(pytree.tree_leaves(value), shown, strict=True)], tree)

    def hint(self, expression: sympy.Expr) -> int:
        """Its value at the sizes at hand."""
        if expression not in self._known:
            self._known[expression] = int(expression.xreplace(self._hints))
        return self._known[expression]

    def bytes_and_shapes(self, nodes: Iterable[fx.Node], wanted: set[int]) -> Iterator[tuple[int, sympy.Expr, list[sympy.Expr]]]:
        """Of each of these storages that one of the nodes makes, if it is no larger than its tensor: bytes and the tensor's shape."""
        for node in nodes:
            made = leaves(node.meta.get("val"))
            if wanted.isdisjoint(map(storage, made)):
                continue
            for t, lies in zip(made, (x for x in pytree.tree_leaves(self.of(node)) if isinstance(x, Lies)), strict=True):
                if storage(t) in wanted and self.hint(lies.bytes) == int(t.untyped_storage().nbytes()):
                    wanted.discard(storage(t))
                    yield storage(t), lies.bytes, list(lies.shape)

    def _value(self, node: fx.Node) -> Any:
        """What the node makes, with symbols for sizes; a CaptureError if that is not known."""
        try:
            shown, tree = pytree.tree_flatten(node.meta.get("val"))
            found = pytree.tree_leaves(self._traced[node] if node in self._traced else self._computed(node))
            for i, (value, t) in enumerate(zip(found, shown, strict=True)):
                if isinstance(t, torch.Tensor) and not self._lies_like(value, t):
                    found[i] = _dense(value, t)
                    if found[i] is None:  # a part of what lies otherwise now
                        found[i] = pytree.tree_leaves(self._computed(node))[i]
                    if not self._lies_like(found[i], t):
                        raise CaptureError("another layout")
            return pytree.tree_unflatten(found, tree)
        except Exception as error:
            return CaptureError(f"{node}: it is not known how it lies at other sizes: {error}")

    def _computed(self, node: fx.Node) -> Any:
        """What its operator makes of what it reads, as that lies now."""
        target: Any = node.target
        args, kwargs = pytree.tree_map_only(fx.Node, self._values.__getitem__, (node.args, node.kwargs))
        mode: Any = next(t.fake_mode for t in leaves((args, kwargs)) if hasattr(t, "fake_mode"))
        with mode:
            return target(*args, **kwargs)

    def _lies_like(self, value: torch.Tensor, t: torch.Tensor) -> bool:
        return [self.hint(expression_of(n)) for n in value.shape] == [int(n) for n in t.shape] \
            and all(n == 1 or self.hint(expression_of(step)) == now for n, step, now in zip(t.shape, value.stride(), t.stride(), strict=True))

    def _lies(self, value: Any, shown: Any) -> Any:
        if not isinstance(shown, torch.Tensor):
            return expression_of(value) if isinstance(value, torch.SymInt) else value
        shape, strides = (tuple(map(expression_of, numbers)) for numbers in (value.shape, value.stride()))
        offset = expression_of(value.storage_offset())
        if self.hint(offset) != int(shown.storage_offset()):
            offset = sympy.Integer(int(shown.storage_offset()))
        return Lies(shape, strides, offset, shown.dtype, shown.device)


def _dense(value: Any, shown: torch.Tensor) -> torch.Tensor | None:
    """A tensor of the shape of `value` whose dimensions are as dense as those of another one, and in that order; None if they are not."""
    strides: list[Any] = [1] * shown.dim()
    expected, step = 1, 1
    for d in sorted(range(shown.dim()), key=lambda d: (shown.stride(d), -d)):
        if shown.shape[d] != 1 and shown.stride(d) != expected:
            return None
        strides[d] = step
        expected, step = expected * shown.shape[d], step * value.shape[d]
    with value.fake_mode:
        return torch.empty_strided(value.shape, strides, dtype=shown.dtype, device=shown.device)
