"""Clusters as they run: one operator for all, and a table of what each computes.

`lowtide::cluster(key, given, sizes)` computes the cluster of that key: what a graph calls for it, what its price is measured of, and what
fake tensors go through.  Planned code calls the compiled function itself (`Cluster.run`), whose list of arguments is emptied.  sizes:
numbers that a cluster for all sizes takes (open_cluster.py).

A key says what the cluster computes: operators, arguments, and how its inputs lie.  Equal layers have equal keys, and are compiled
once.  A cluster that Inductor cannot compile runs op by op; where it can compile none of a graph's, none is formed (rewrite.py).
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from ...frontend import progress
from ...frontend.errors import LowtideWarning
from ..compat import pytree
from ..compat.fake import FakeTensorMode
from ..compat.inductor import all_at_once, compile_kernels
from ..tensors.operators import values
from ..tensors.storages import lies_like

prims = torch.ops.prims
_OPERATOR = torch.library.Library("lowtide", "FRAGMENT")
_OPERATOR.define("cluster(str key, Tensor[] given, SymInt[] sizes=[]) -> Tensor[]")
CLUSTER = torch.ops.lowtide.cluster.default

Boxed = Callable[[list[Any]], Any]

_KEPT = 256  # layouts of the arguments of one place in the code

_known: dict[str, Cluster] = {}
_said = False


Sizes = tuple[int, ...]


def at_all_sizes(_: Sizes) -> bool:
    return True


@dataclass(frozen=True)
class Twin:
    """The code of a cluster that writes result `result` over input `given` (overwriting.py).  holds: is it right for these sizes?"""

    run: Boxed
    given: int
    result: int
    holds: Callable[[Sizes], bool] = at_all_sizes


class Cluster:
    """What a cluster computes.  module: its graph.  inputs, results: fake tensors, as they lie.  names: of its operators.  repeats:
    has it the same bits each time?  kind: of its op, where it is a template (higher_order.py).  flops: its operations, of that.
    why_not: why it is not compiled; empty where it is, or may be.  fill: puts numbers, with which it has the most to do, into made-up
    inputs.  trained: inputs of which an operator that runs by itself asks whether they require a gradient, and that do.
    sizes: how many sizes it is given before its tensors."""

    sizes = 0

    def __init__(self, key: str, module: fx.GraphModule, inputs: list[torch.Tensor], results: list[torch.Tensor], repeats: bool, *,
                 kind: str = "", flops: int = 0, why_not: str = "", fill: Callable[[list[torch.Tensor]], None] | None = None,
                 trained: tuple[int, ...] = ()) -> None:
        self.key, self.module, self.inputs, self.results, self.repeats = key, module, inputs, results, repeats
        self.kind, self.flops, self.why_not, self.fill, self.trained = kind, flops, why_not, fill, trained
        self.names = [node.target.overloadpacket.__name__ for node in module.graph.nodes
                      if node.op == "call_function" and hasattr(node.target, "overloadpacket")]
        self._compiled: Boxed | None = None
        self._is_probed = False
        self._twin: Twin | None = None

    def __repr__(self) -> str:
        return f"cluster_{self.key}"

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    @property
    def is_refused(self) -> bool:
        """Has Inductor failed to compile it?"""
        return bool(self.why_not) and not self.is_compiled

    def compile(self) -> None:
        """By Inductor; where that cannot be, `why_not` says why."""
        if self._compiled is None and not self.why_not:
            try:
                self._compiled = self.by_inductor(None, ())[0]
            except Exception as error:  # any of its parts may refuse, a compiler that is not there for one
                self.why_not = why_not_compiled(error)

    def by_inductor(self, dying: int | None, sizes: Sizes) -> tuple[Boxed, Callable[[Sizes], bool]]:
        """What Inductor makes of it at these sizes, and whether that is right at others.  dying: an input over which it may write."""
        # Inductor changes the graph that it is given, and what runs op by op is this one
        return kernels(copy_of(self.module), self.inputs, mode_of(self), dying), at_all_sizes

    def forget(self) -> None:
        """What was compiled."""
        self._compiled = None

    def lies(self, sizes: Sizes) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Fakes of its inputs and of its results at these sizes."""
        return self.inputs, self.results

    def code(self, sizes: Sizes) -> Boxed | None:
        """What was compiled for these sizes; None if it runs op by op."""
        return self._compiled

    def twin(self, sizes: Sizes) -> Twin | None:
        """The twin for these sizes, if one was found."""
        return self._twin

    def is_probed(self, sizes: Sizes) -> bool:
        """Has a twin been looked for?"""
        return self._is_probed

    def enter_twin(self, sizes: Sizes, twin: Twin | None, is_known: bool = True) -> None:
        """is_known: was it looked for?"""
        self._is_probed, self._twin = is_known, twin

    def run(self, given: list[Any]) -> Any:
        """Its results.  given: sizes, and tensors like `inputs`; it is emptied."""
        if not self.is_compiled:
            compile_clusters([self])
            say_not_compiled([self])
        code = self.code(tuple(given[:self.sizes]))
        return code(given) if code else self.op_by_op(given)

    def first_run(self, given: list[Any], over: Twin | None = None) -> tuple[Any, Boxed]:
        """Its results, and what gives them for arguments that lie like these; over: by that twin.

        The compiled code checks nothing of what it reads.  What lies otherwise than the graph says, as a kernel may return it that
        is not its fake, is computed op by op; and so is a cluster of whose results two share a storage, or one an input's.
        """
        sizes = tuple(given[:self.sizes])
        inputs, _ = self.lies(sizes)
        if len(given) != self.sizes + len(inputs) or not all(map(_is_like, given[self.sizes:], inputs)):
            return self.op_by_op(given), self.op_by_op
        if over and not over.holds(sizes):
            over = None
        before = [(StorageWeakRef(storage), storage.data_ptr()) for i, t in enumerate(given[self.sizes:])
                  if t.numel() and not (over and i == over.given) for storage in [t.untyped_storage()]]
        results = list(over.run(given) if over else self.run(given))
        taken = {pointer for ref, pointer in before if not ref.expired()}  # the memory of one that has died is a result's own
        for i, t in enumerate(results):
            pointer = t.untyped_storage().data_ptr()
            if t.numel() and pointer in taken:
                results[i] = t.clone()
                self.why_not = "results share a storage"
            taken.add(pointer)
        code = None if self.why_not else self.code(sizes)
        return results, self.op_by_op if code is None else over.run if over else code

    def op_by_op(self, given: list[Any]) -> list[torch.Tensor]:
        """The same by PyTorch's own kernels."""
        _, made = self.lies(tuple(given[:self.sizes]))
        for i in self.trained:
            given[i] = given[i].detach().requires_grad_()
        values: dict[fx.Node, Any] = {}
        nodes = list(self.module.graph.nodes)
        last = {source: node for node in nodes for source in node.all_input_nodes}
        for node in nodes:
            if node.op == "placeholder":
                values[node] = given.pop(0)
            elif node.op == "get_attr":
                values[node] = operator.attrgetter(str(node.target))(self.module)
            elif node.op == "output":
                return [_laid_out(values[n], like) for n, like in zip(node.args[0], made, strict=True)]
            else:
                target = _OWN_DRAWS.get(node.target, node.target)
                args, kwargs = pytree.tree_map_only(fx.Node, values.__getitem__, (node.args, node.kwargs))
                values[node] = target(*args, **kwargs)
                for source in node.all_input_nodes:
                    if last[source] is node:
                        values.pop(source, None)
        raise AssertionError("a graph has an output")


class Site:
    """One place in the code that calls a cluster."""

    def __init__(self, cluster: Cluster, over: Twin | None = None) -> None:
        self._cluster, self._over = cluster, over
        self._run: Boxed = over.run if over else cluster.run
        self._runs: dict[Any, Boxed] = {}  # of a cluster for all sizes, what gives its results, by how its arguments lie

    def checked(self, given: list[Any]) -> Any:
        """Its results, whatever lies as it may."""
        sizes = self._cluster.sizes
        if not sizes:
            results, self._run = self._cluster.first_run(given, self._over)
            return results
        lie = (*given[:sizes], *[(t.shape, t.stride()) for t in given[sizes:]])
        run = self._runs.get(lie)
        if run is not None:
            return run(given)
        if len(self._runs) >= _KEPT:
            self._runs.clear()
        results, self._runs[lie] = self._cluster.first_run(given, self._over)
        return results

    def direct(self) -> Boxed:
        """What gives its results where all lies as it did when it was checked."""
        return self._run


def kernels(module: fx.GraphModule, given: list[Any], mode: FakeTensorMode, dying: int | None) -> Boxed:
    """The function that Inductor compiles of a cluster's graph, for one size or for all; arguments as of compile_kernels."""
    return compile_kernels(module, given, mode, dying)


def compile_clusters(clusters: Iterable[Cluster]) -> None:
    """Compile those that are not yet, beside one another; where that cannot be, `why_not` says why."""
    new = [cluster for cluster in dict.fromkeys(clusters) if not cluster.is_compiled and not cluster.why_not]
    if new:
        try:
            with all_at_once():
                for i, cluster in enumerate(new):
                    progress.stage("compiling fused kernels", i, len(new))
                    cluster.compile()
                progress.stage("compiling fused kernels", len(new), len(new))
        except BaseException as error:  # some of the compilers that ran beside one another have failed, or were interrupted
            for cluster in new:
                cluster.forget()  # code whose kernels are not loaded
            if not isinstance(error, Exception):
                raise
            for cluster in new:  # each by itself
                cluster.compile()


def why_not_compiled(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"[:200]


def say_not_compiled(clusters: list[Cluster]) -> None:
    """Say once in a process that some of these could not be compiled, if so."""
    global _said
    failed = [cluster for cluster in clusters if cluster.is_refused]
    if failed and not _said:
        _said = True
        warnings.warn(f"lowtide: Inductor could not compile {len(failed)} of {len(clusters)} clusters of ops, which run op by op: "
                      f"{failed[0].why_not}; inner='eager' plans over PyTorch's own kernels instead", LowtideWarning, stacklevel=2)


def cluster_of(key: str, make: Callable[[], Cluster]) -> Cluster:
    """The cluster of that key; made where it is new."""
    if key not in _known:
        _known[key] = make()
    return _known[key]


def known_cluster(key: str) -> Cluster:
    return _known[key]


def cluster_of_node(node: fx.Node) -> Cluster:
    """The cluster that a node of a joint graph calls."""
    return known_cluster(str(node.args[0]))


def sizes_of_node(node: fx.Node) -> Sizes:
    """The sizes that the call of a cluster is given, at hand."""
    return tuple(map(int, values(node.args[2]))) if len(node.args) > 2 else ()


def twin_of_node(node: fx.Node) -> Twin | None:
    return cluster_of_node(node).twin(sizes_of_node(node))


def copy_of(module: fx.GraphModule) -> fx.GraphModule:
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(module.graph, values))
    copy = fx.GraphModule(module, graph)
    for node in copy.graph.nodes:
        if node.op == "output":
            node.meta = dict(module.graph.output_node().meta)
    return copy


def mode_of(cluster: Cluster) -> FakeTensorMode:
    mode: Any = next(t.fake_mode for t in (*cluster.inputs, *cluster.results) if hasattr(t, "fake_mode"))
    return mode


def _is_like(t: torch.Tensor, like: torch.Tensor) -> bool:
    return t.dtype == like.dtype and lies_like(t, like.shape, like.stride())


def _laid_out(t: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    if t.stride() == like.stride() and t.untyped_storage().nbytes() == like.untyped_storage().nbytes():
        return t
    made = torch.empty_strided([int(n) for n in like.shape], [int(n) for n in like.stride()], dtype=t.dtype, device=t.device)
    return made.copy_(t)


def _draw(size: list[int], seed: torch.Tensor, mode: str, **_: Any) -> torch.Tensor:
    generator = torch.Generator(seed.device).manual_seed(int(seed.item()) % 2**63)
    function = torch.rand if mode == "rand" else torch.randn
    return function(size, generator=generator, device=seed.device, dtype=torch.float32)


def _draw_integers(low: int, high: int, size: list[int], seed: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator(seed.device).manual_seed(int(seed.item()) % 2**63)
    return torch.randint(low, high, size, generator=generator, device=seed.device)


_OWN_DRAWS: dict[Any, Any] = {}


def enter_draws() -> None:
    """Draws from a seed, by PyTorch's own generators: Inductor's operators draw from the default one, so no draw could repeat."""
    if not _OWN_DRAWS:
        _OWN_DRAWS.update({prims.inductor_random.default: _draw, prims.inductor_randint.default: _draw_integers})


@torch.library.impl(_OPERATOR, "cluster", "CompositeExplicitAutograd")
def _cluster(key: str, given: list[torch.Tensor], sizes: list[int] = []) -> list[torch.Tensor]:  # noqa: B006  # the operator's own
    return list(_known[key].run([*sizes, *given]))


@torch.library.register_fake("lowtide::cluster", lib=_OPERATOR)
def _fake_cluster(key: str, given: list[torch.Tensor], sizes: list[int] = []) -> list[torch.Tensor]:  # noqa: B006
    _, results = _known[key].lies(tuple(map(int, sizes)))
    return [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in results]
