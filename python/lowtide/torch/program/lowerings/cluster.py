"""A cluster: one op, whose code calls what Inductor compiled.

Its results are new tensors, whose bytes its price counts.  A cluster whose kernel adds numbers in an order of its own each time runs
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ....frontend.draft import Op
from ...clusters.cluster import CLUSTER, Cluster, Site, Twin, cluster_of_node, twin_of_node
from ...clusters.part import described, letters, part_of, slices_of, text_of
from ...clusters.rewrite import BORDERS
from ...tensors.operators import arguments_of, leaves, values
from ...tensors.storages import storage
from ..builder import ProgramBuilder
from ..describe import describe
from ..emitter import BOXED, DIRECT, Code, Emitter
from ..in_place import OutVariant
from .interface import Lowering


class _ClusterEmitter(Emitter):
    holds_results = True

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        twin = twin_of_node(node)
        if twin is None:
            return {}
        operands: Any = values(node.args[1])
        operand = operands[twin.given]
        read = [storage(t) for t in operands]
        return {str(twin.given): operand} if read.count(storage(operand)) == 1 else {}

    def result_over(self, node: fx.Node, name: str) -> int:
        twin = twin_of_node(node)
        return 0 if twin is None else twin.result

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]] | None:
        return (CLUSTER, arguments_of(node)) if letters(cluster_of_node(node)).by_name else None

    def whole_of(self, node: fx.Node, arguments: dict[str, Any]) -> dict[str, Any]:
        cluster = cluster_of_node(node)
        whole = part_of(cluster, described(cluster)[0], {})
        return {"key": whole.key, "given": whole.inputs}

    def arguments_of_part(self, node: fx.Node, arguments: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
        cluster = cluster_of_node(node)
        given = [(o["shape"], o["strides"]) for o in entry["operands"]]
        slices = slices_of(cluster, [shape for shape, _ in given], [r["shape"] for r in entry["results"]])
        return arguments | {"key": part_of(cluster, given, slices).key}

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        (_, given, *sizes), _ = code.arguments(node)
        cluster = cluster_of_node(node)
        arguments = *(sizes[0] if sizes else ()), *given
        twin = twin_of_node(node)
        if over and twin:
            variant = OutVariant(call_of(cluster, twin), None, ())
            made = code.call_over(given[twin.given], variant, call_of(cluster), arguments, node, node.meta["val"])
        else:
            made = code.call(call_of(cluster), arguments, node, node.meta["val"])
        code.items(node, made, range(len(node.meta["val"])))
        return False


class ClusterLowering(Lowering):
    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return node.target is CLUSTER

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        cluster = cluster_of_node(node)
        attributes = {} if cluster.kind else {"ops": cluster.names, "borders": node.meta.get(BORDERS, [])}
        op = builder.op(node, _EMITTER, leaves(values(arguments["given"])), builder.new(node), word=cluster.kind, flops=cluster.flops,
                        attributes=attributes)
        describe(builder, op, arguments, {"": node.meta["val"]})
        _describe_letters(op, cluster)
        op.recomputable = cluster.repeats
        builder.graph.op(op)


def _describe_letters(op: Op, cluster: Cluster) -> None:
    """Have operands and results a dimension for each letter along which the cluster may be split."""
    found = text_of(cluster)
    if not found:
        return
    given, made = described(cluster)
    if len(op.operands) == len(given) and len(op.results) == len(made):
        for entry, (shape, strides) in zip([*op.operands, *op.results], [*given, *made], strict=True):
            entry |= {"shape": shape, "strides": strides}
        op.arguments["letters"] = found


def call_of(cluster: Cluster, over: Twin | None = None) -> Callable[..., Any]:
    """A function of one place in the code that calls the cluster, or a twin that writes over an input."""
    site = Site(cluster, over)

    def call(*given: Any) -> Any:
        return CLUSTER(cluster.key, list(given[cluster.sizes:]), list(given[:cluster.sizes]))

    call.__name__ = call.__qualname__ = repr(cluster)  # by which FX prints it
    setattr(call, BOXED, site.checked)
    setattr(call, DIRECT, site.direct)
    return call


_EMITTER = _ClusterEmitter()
