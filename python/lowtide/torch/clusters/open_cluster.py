"""Clusters for all sizes: how their tensors lie is known as expressions of sizes, which the compiled code is given as numbers.

Inductor compiles such a cluster once, with symbols for sizes.  What it has asked of them while it compiled, such as whether one is
divisible by another, holds for the code: for sizes that answer otherwise the cluster is compiled again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from ...frontend import progress
from ..compat import pytree
from ..compat.dispatch import without_modes
from ..compat.fake import FakeTensorMode
from ..compat.symbols import ConstantSource
from ..tracing.open_sizes import OpenSizes
from ..tracing.scalars import function_of, guards_of, ranges_of
from ..tracing.symbolic_layouts import Lies, expression_of
from .cluster import CLUSTER, Boxed, Cluster, Sizes, Twin, cluster_of_node, copy_of, kernels, why_not_compiled

_KEPT = 256  # sizes of which it is known how tensors lie

Tensors = list[torch.Tensor]


@dataclass(eq=False)
class _Code:
    """holds: is it right for these sizes?  is_probed: has a twin been looked for?"""

    run: Boxed
    holds: Callable[[Sizes], bool]
    is_probed: bool = False
    twin: Twin | None = None


class OpenCluster(Cluster):
    """symbols: of the sizes that its graph takes before its tensors.  lies: of nodes of its graph, trees of Lies and of expressions of
    these symbols.  at: sizes at hand."""

    def __init__(self, key: str, module: fx.GraphModule, symbols: list[sympy.Symbol], lies: dict[fx.Node, Any], at: Sizes, repeats: bool) -> None:
        self._symbols, self._lies, self._at = symbols, lies, at
        graph = module.graph
        returned: Any = graph.output_node().args[0]
        given = [lies[node] for node in graph.find_nodes(op="placeholder")[len(symbols):]]
        self._types = [[(x.dtype, x.device) for x in of] for of in (given, [lies[node] for node in returned])]
        self._function = function_of(symbols, [[[list(x.shape), list(x.strides), x.offset] for x in of]
                                               for of in (given, [lies[node] for node in returned])])
        self._mode = FakeTensorMode()
        self._known: dict[Sizes, tuple[Tensors, Tensors]] = {}
        self._codes: list[_Code] = []
        self._chosen: dict[Sizes, _Code | None] = {}
        self._lock = threading.RLock()
        self.sizes = len(symbols)
        super().__init__(key, module, *self.lies(at), repeats)

    def lies(self, sizes: Sizes) -> tuple[Tensors, Tensors]:
        found = self._known.get(sizes)
        if found is None:
            with without_modes(), self._mode:
                given, made = ([torch.empty_strided(shape, strides, dtype=dtype, device=device) for (shape, strides, _), (dtype, device)
                                in zip(of, types, strict=True)] for of, types in zip(self._function(list(sizes)), self._types, strict=True))
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[sizes] = given, made
        return found

    @property
    def is_compiled(self) -> bool:
        return bool(self._codes)

    def compile(self) -> None:
        if not self._codes and not self.why_not:
            try:
                self._codes.append(_Code(*self.by_inductor(None, self._at)))
            except Exception as error:
                self.why_not = why_not_compiled(error)

    def forget(self) -> None:
        self._codes.clear()
        self._chosen.clear()

    def serves(self, sizes: Sizes) -> bool:
        """Is it known what it runs at these sizes?"""
        return bool(self.why_not) or sizes in self._chosen or any(code.holds(sizes) for code in self._codes)

    def code(self, sizes: Sizes) -> Boxed | None:
        found = self._code(sizes)
        return None if found is None else found.run

    def twin(self, sizes: Sizes) -> Twin | None:
        found = self._code(sizes)
        return found.twin if found and found.twin and found.twin.holds(sizes) else None

    def is_probed(self, sizes: Sizes) -> bool:
        found = self._code(sizes)
        return found is None or found.is_probed

    def enter_twin(self, sizes: Sizes, twin: Twin | None, is_known: bool = True) -> None:
        found = self._code(sizes)
        if found is not None:
            found.is_probed, found.twin = is_known, twin

    def _code(self, sizes: Sizes) -> _Code | None:
        with self._lock:
            if sizes not in self._chosen and self._codes:
                found = next((code for code in self._codes if code.holds(sizes)), None)
                if found is None:
                    try:
                        with without_modes():  # of whoever calls a planned step
                            found = _Code(*self.by_inductor(None, sizes))
                        self._codes.append(found)
                    except Exception:  # then these run op by op
                        pass
                self._chosen[sizes] = found
            return self._chosen.get(sizes)

    def by_inductor(self, dying: int | None, sizes: Sizes) -> tuple[Boxed, Callable[[Sizes], bool]]:
        env = ShapeEnv(duck_shape=False)
        mode = FakeTensorMode(shape_env=env, static_shapes=True)
        own = [env.create_symbol(n, source=ConstantSource(f"size{k}"), dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
               for k, n in enumerate(sizes)]
        names, hints = dict(zip(self._symbols, own, strict=True)), dict(zip(own, sizes, strict=True))

        def number(expression: sympy.Expr) -> Any:
            expression = expression.xreplace(names)
            hint = int(expression.xreplace(hints))
            return env.create_symintnode(expression, hint=hint, source=None) if expression.free_symbols else hint

        def value(of: Any) -> Any:
            if isinstance(of, Lies):
                made = torch.empty_strided([*map(number, of.shape)], [*map(number, of.strides)], dtype=of.dtype, device=of.device)
                return made.as_strided(made.shape, made.stride(), number(of.offset)) if of.offset else made
            return number(of) if isinstance(of, sympy.Expr) else of

        module = copy_of(self.module)
        with mode:
            for node, copy in zip(self.module.graph.nodes, module.graph.nodes, strict=True):
                if node in self._lies:
                    copy.meta["val"] = pytree.tree_map(value, self._lies[node])
        given = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
        run = kernels(module, given, mode, None if dying is None else self.sizes + dying)
        guards, ranges, keys = guards_of(env, own), ranges_of(env, own), [symbol.name for symbol in own]

        def holds(others: Sizes) -> bool:
            named: dict[str, Any] = dict(zip(keys, others, strict=True))
            return all(low <= n <= high for n, (low, high) in zip(others, ranges, strict=True)) and all(guard(named) for guard in guards)

        return run, holds


def compiled_at_other_sizes(joint: fx.GraphModule, sizes: OpenSizes, shown: list[int]) -> Callable[[list[int]], bool]:
    """Compiles what the clusters of a graph run at given sizes, if they cannot run there what they have; may all write there over what
    they write over at the sizes at hand?  joint: formed of a graph with these open sizes; shown: those at hand."""
    calls: dict[tuple[OpenCluster, tuple[sympy.Expr, ...]], None] = {}
    for node in joint.graph.find_nodes(op="call_function", target=CLUSTER):
        cluster = cluster_of_node(node)
        if isinstance(cluster, OpenCluster):
            given: Any = node.args[2]
            calls[cluster, tuple(expression_of(n.meta["val"]) for n in given)] = None
    function = sizes.function_of([list(of) for _, of in calls])

    def at(values: list[int]) -> list[tuple[OpenCluster, Sizes]]:
        return [(cluster, tuple(of)) for (cluster, _), of in zip(calls, function(values), strict=True)]

    def compile_there(values: list[int]) -> bool:
        there = at(values)
        new = [(cluster, of) for cluster, of in there if not cluster.serves(of)]
        for i, (cluster, of) in enumerate(new):
            progress.stage("compiling fused kernels for other sizes", i, len(new))
            cluster.code(of)
        return all(cluster.twin(here) is None or cluster.twin(here) is cluster.twin(of)
                   for (cluster, here), (_, of) in zip(at(shown), there, strict=True))

    return compile_there
