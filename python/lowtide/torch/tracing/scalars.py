"""Numbers among a graph's arguments, for which one plan serves all values.

The tracer hands over sizes that it left open, and numbers that change from call to call: an int as it is, a float
as a tensor of no dimensions whose value the graph takes out.  A number that is a size of something gets a plan for
each value, as shapes do.  Any other is traced as a symbol of its own, and the code that runs is given its value.
What tracing had to know of it (`if step > 3`, an operator that takes no symbol) is a guard: a plan is for the
values that keep the guards of its tracing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, free_symbols

from ..compat.fake import FakeTensorMode
from ..compat.symbols import ConstantSource, PythonPrinter
from ..tensors.operators import is_symbol, leaves


class SizeByNumber(BaseException):
    """A number is a size after all.  at: which arguments."""

    def __init__(self, at: set[int]) -> None:
        super().__init__()
        self.at = at


class NotOpen(BaseException):
    """The graph has to be traced for these sizes alone.  always: and so for any others.  on_all: all ranks that plan together know why."""

    def __init__(self, always: bool = True, on_all: bool = False) -> None:
        super().__init__()
        self.always, self.on_all = always, on_all


def floats_of(gm: fx.GraphModule) -> list[int]:
    """Which arguments are tensors only because the tracer made one of a float."""
    found = []
    for i, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        like = node.meta.get("example_value")
        if isinstance(like, torch.Tensor) and like.dim() == 0 and like.dtype == torch.float64 and node.users and \
                all(user.op == "call_method" and user.target == "item" for user in node.users):
            found.append(i)
    return found


def without_items(gm: fx.GraphModule, floats: list[int]) -> fx.GraphModule:
    """The same with those arguments as numbers."""
    copy = _copy(gm)
    placeholders = copy.graph.find_nodes(op="placeholder")
    for i in floats:
        for item in list(placeholders[i].users):
            item.replace_all_uses_with(placeholders[i])
            copy.graph.erase_node(item)
    copy.recompile()
    return copy


def with_sizes(gm: fx.GraphModule, args: list[Any], numbers: list[int]) -> fx.GraphModule:
    """The same for the values that all ints have but those at `numbers`: AOTAutograd makes symbols of all it is given."""
    copy = _copy(gm)
    for i, node in enumerate(copy.graph.find_nodes(op="placeholder")):
        if i not in numbers and isinstance(args[i], int):
            for user in list(node.users):
                replace_input(user, node, args[i])
    copy.recompile()
    return copy


def _copy(gm: fx.GraphModule) -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copy = fx.GraphModule(gm, graph)
    copy.meta = dict(gm.meta)  # what was noted while it was traced
    reason: Any = getattr(gm, "compile_subgraph_reason", None)
    copy.compile_subgraph_reason = reason
    return copy


def replace_input(user: fx.Node, node: fx.Node, value: Any) -> None:
    """Have `user` read a value in the place of a node."""
    user.args, user.kwargs = fx.map_arg((user.args, user.kwargs), lambda n: value if n is node else n)


def ints_of(gm: fx.GraphModule) -> list[int]:
    """Which arguments are ints that no tensor of the graph has as a size."""
    sizes = {symbol for node in gm.graph.nodes for t in leaves(node.meta.get("example_value"))
             for symbol in free_symbols([*t.shape, *t.stride(), t.storage_offset()])}
    return [i for i, node in enumerate(gm.graph.find_nodes(op="placeholder"))
            if isinstance(node.meta.get("example_value"), torch.SymInt)
            and not free_symbols(node.meta["example_value"]) & sizes]


class Symbols:
    """The symbols of one tracing.  at: which arguments they stand for."""

    def __init__(self, at: list[int]) -> None:
        self.at = at
        self._env: Any = None
        self._symbols: list[sympy.Symbol] = []
        self._guards: list[Callable[[dict[str, Any]], Any]] = []

    def arguments(self, args: list[Any]) -> list[Any]:
        """Replacements of these arguments for tracing: fake tensors, and a symbol for each number."""
        self._env = env = ShapeEnv()
        mode = FakeTensorMode(shape_env=env, static_shapes=True)
        self._symbols, made = [], []
        for i, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                made.append(mode.from_tensor(value))
            elif i in self.at:
                made.append(self._number(i, value))
            else:
                made.append(value)
        return made

    def _number(self, i: int, value: Any) -> Any:
        """A symbol for a number."""
        env, source = self._env, ConstantSource(f"number{i}")
        symbol = env.create_unspecified_symbol(value, source=source, dynamic_dim=DimDynamic.DYNAMIC)
        self._symbols.append(symbol)
        make = env.create_symfloatnode if isinstance(value, float) else env.create_symintnode
        return make(symbol, hint=value, source=source)

    def graph(self, gm: fx.GraphModule, args: list[Any]) -> fx.GraphModule:
        """What is traced of it with these arguments."""
        return with_sizes(gm, args, self.at)

    def _may_size(self, symbol: sympy.Symbol) -> bool:
        """May a tensor's size depend on it?"""
        return False

    def check(self, joint: fx.GraphModule) -> None:
        """Raises SizeByNumber if a tensor's size depends on one of them.  Numbers that tracing had to know, and has
        guarded, become constants."""
        found = {symbol for node in joint.graph.nodes for t in leaves(node.meta.get("val"))
                 for symbol in free_symbols([*t.shape, *t.stride(), t.storage_offset()]) if not self._may_size(symbol)}
        if found:
            raise SizeByNumber({i for i, symbol in zip(self.at, self._symbols, strict=True) if symbol in found}
                               or set(self.at))
        for node in joint.graph.nodes:
            value = node.meta.get("val")
            if is_symbol(value) and not free_symbols(value):
                for user in [user for user in node.users if user.op != "output"]:
                    replace_input(user, node, value.node.hint)

    def seal(self) -> None:
        """The tracing is over: keep what it asked of the symbols, and nothing else."""
        self._guards = guards_of(self._env, self._symbols)
        self._names = [symbol.name for symbol in self._symbols]
        self._env = None

    def hold(self, args: Sequence[Any]) -> bool:
        """Are these values some that the tracing is right for?"""
        named = dict(zip(self._names, self._values(args), strict=True))
        return all(guard(named) for guard in self._guards)

    def _values(self, args: Sequence[Any]) -> list[Any]:
        """The values of the symbols, in the order in which they were made."""
        return [args[i] for i in self.at]


def guards_of(env: ShapeEnv, symbols: list[sympy.Symbol]) -> list[Callable[[dict[str, Any]], Any]]:
    """What was asked of these symbols, as functions of their values by name; others keep their values."""
    others: dict[Any, Any] = {symbol: value for symbol, value in env.backed_var_to_val.items() if symbol not in symbols}
    return [_by_name(guard.expr.xreplace(others), symbols) for guard in env.guards]


def ranges_of(env: ShapeEnv, symbols: list[sympy.Symbol]) -> list[tuple[Any, Any]]:
    """The least and the most that each of these symbols may be."""
    ranges = env.var_to_range
    return [(ranges[symbol].lower, ranges[symbol].upper) for symbol in symbols]


def function_of(symbols: list[sympy.Symbol], tree: Any) -> Callable[[list[Any]], Any]:
    """A tree of lists of expressions as a function of the values of symbols, in their order."""
    names = [symbol.name for symbol in symbols]
    made = _by_name(tree, symbols)
    return lambda values: made(dict(zip(names, values, strict=True)))


def _by_name(tree: Any, symbols: list[sympy.Symbol]) -> Callable[[dict[str, Any]], Any]:
    """The same of their values by name."""
    def text(part: Any) -> str:
        return f"[{', '.join(map(text, part))}]" if isinstance(part, list) else f"({PythonPrinter().doprint(part)})"

    names = "|".join(re.escape(symbol.name) for symbol in symbols)
    source = re.sub(rf"\b({names})\b", r'v["\1"]', text(tree)) if names else text(tree)
    return eval(f"lambda v: {source}", {"math": math, "torch": torch})  # torch's text
