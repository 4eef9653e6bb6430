"""A cluster: one op, whose code calls what Inductor compiled.

Its results are new tensors, whose bytes its price counts.  A cluster whose kernel adds numbers in an order of its own each time runs
once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ...clusters.cluster import CLUSTER, Cluster, Site, Twin, cluster_of_node
from ...clusters.rewrite import BORDERS
from ...tensors.operators import leaves, values
from ...tensors.storages import storage
from ..builder import ProgramBuilder
from ..describe import describe
from ..emitter import BOXED, DIRECT, Code, Emitter
from ..in_place import OutVariant
from .interface import Lowering


class _ClusterEmitter(Emitter):
    holds_results = True

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        twin = cluster_of_node(node).twin
        if twin is None:
            return {}
        operands: Any = values(node.args[1])
        operand = operands[twin.given]
        read = [storage(t) for t in operands]
        return {str(twin.given): operand} if read.count(storage(operand)) == 1 else {}

    def result_over(self, node: fx.Node, name: str) -> int:
        twin = cluster_of_node(node).twin
        return 0 if twin is None else twin.result

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        (_, given), _ = code.arguments(node)
        cluster = cluster_of_node(node)
        if over and cluster.twin:
            variant = OutVariant(_call_of(cluster, cluster.twin), None, ())
            made = code.call_over(given[cluster.twin.given], variant, _call_of(cluster), tuple(given), node, node.meta["val"])
        else:
            made = code.call(_call_of(cluster), tuple(given), node, node.meta["val"])
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
        op.recomputable = cluster.repeats
        builder.graph.op(op)


def _call_of(cluster: Cluster, over: Twin | None = None) -> Callable[..., Any]:
    """A function of one place in the code that calls the cluster, or a twin that writes over an input."""
    site = Site(cluster, over)

    def call(*given: Any) -> Any:
        return CLUSTER(cluster.key, list(given))

    call.__name__ = call.__qualname__ = repr(cluster)  # by which FX prints it
    setattr(call, BOXED, site.checked)
    setattr(call, DIRECT, site.direct)
    return call


_EMITTER = _ClusterEmitter()
