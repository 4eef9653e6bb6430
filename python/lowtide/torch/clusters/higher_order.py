"""Higher-order operators as ops: flex attention, and Triton kernels of a model's own.

Such an operator takes graphs, or the number of a kernel, beside tensors, and returns nested results.  Each becomes a cluster of its
own, a template: one op of tensors, in the place of the node.  With fused kernels Inductor compiles it, by itself; else it runs as in
eager execution.  Others, such as loops and branches, are refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import fx

from ...frontend.errors import CaptureError
from ..compat.counting import operations_of
from ..compat.higher_order import HIGHER_ORDER, block_mask_of, is_flex_attention, score_buffers_of, triton_kernel_of
from ..pricing.costs import enter_made_up
from ..tensors.operators import is_symbol, values
from .cluster import CLUSTER, Cluster, cluster_of, known_cluster
from .key import key_of

_EAGER = "eager execution runs it so"


def has_higher_order(joint: fx.GraphModule) -> bool:
    return any(node.target in HIGHER_ORDER for node in joint.graph.nodes if node.op == "call_function")


def as_templates(joint: fx.GraphModule, fused: bool) -> None:
    """Have each be one op.  joint is changed.  fused: Inductor compiles them.  Raises CaptureError."""
    for node in list(joint.graph.nodes):
        if node.op == "call_function" and node.target in HIGHER_ORDER:
            _replace(joint, node, fused)


def _replace(joint: fx.GraphModule, node: fx.Node, fused: bool) -> None:
    module, inputs, results = _alone(joint, node)
    triton, given, made = triton_kernel_of(node), [n.meta["val"] for n in inputs], [n.meta["val"] for n in results]
    if any(is_symbol(n) for t in (*given, *made) for n in (t, *getattr(t, "shape", ()))):
        raise CaptureError(f"{node.name}: {node.target} has sizes that are known when it runs")
    name = node.target.__name__  # type: ignore[union-attr]
    packet = node.target
    flops = 0 if triton else operations_of(packet, packet, values(node.args), values(node.kwargs), node.meta["val"]) or 0
    key = key_of(module, fused)
    fill = partial(_fill, _blocks(node, inputs)) if is_flex_attention(packet) else None
    trained = _trained(node, inputs)
    repeats = "atomic" not in triton[0] if triton else not trained  # the gradients of these are sums over all that read them
    cluster_of(key, lambda: Cluster(key, module, given, made, repeats, kind=f"higher_order.{name}", flops=flops,
                                    why_not="" if fused else _EAGER, fill=fill, trained=trained))
    with joint.graph.inserting_before(node):
        call = joint.graph.create_node("call_function", CLUSTER, (key, inputs), {}, name=node.name)
    call.meta = {name: value for name, value in node.meta.items() if name not in ("val", "tensor_meta", "original_aten")}
    call.meta["val"] = made
    for i, result in enumerate(results):
        with joint.graph.inserting_before(node):
            item = joint.graph.call_function(operator.getitem, (call, i))
        item.meta = dict(result.meta)
        result.replace_all_uses_with(item)
    _erase(joint.graph, node)


def _alone(joint: fx.GraphModule, node: fx.Node) -> tuple[fx.GraphModule, list[fx.Node], list[fx.Node]]:
    """The graph of a node by itself, and the nodes of the joint graph that are its inputs and its results."""
    graph = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    inputs: list[fx.Node] = []
    for source in node.all_input_nodes:
        if source.op == "get_attr" and isinstance(operator.attrgetter(str(source.target))(joint), torch.nn.Module):
            made[source] = graph.node_copy(source)
            continue
        inputs.append(source)
        made[source] = graph.placeholder(f"a{len(made)}")
        made[source].meta["val"] = source.meta["val"]
    made[node] = graph.node_copy(node, made.__getitem__)
    results = []
    for item in _items(node):
        made[item] = graph.node_copy(item, made.__getitem__)
        if item.users and isinstance(item.meta.get("val"), torch.Tensor):
            results.append(item)
    graph.output(tuple(made[item] for item in results))
    return fx.GraphModule(joint, graph), inputs, results


def _items(node: fx.Node) -> Iterator[fx.Node]:
    """What takes a nested result apart, each after what it reads."""
    for user in node.users:
        if user.target is operator.getitem:
            yield user
            if not isinstance(user.meta.get("val"), torch.Tensor):
                yield from _items(user)


def _erase(graph: fx.Graph, node: fx.Node) -> None:
    sources = node.all_input_nodes
    for item in reversed([node, *_items(node)]):
        graph.erase_node(item)
    for source in sources:
        if source.op == "get_attr" and not source.users:
            graph.erase_node(source)


def _trained(node: fx.Node, inputs: list[fx.Node]) -> tuple[int, ...]:
    """The inputs of the backward of flex attention that its score function reads and whose gradients are read."""
    buffers = score_buffers_of(node)
    read = [part.args[1] for item in node.users if item.args[1:] == (3,) for part in item.users if part.users]
    return tuple(dict.fromkeys(inputs.index(buffers[i]) for i in read)) if buffers else ()


def _blocks(node: fx.Node, inputs: list[fx.Node]) -> list[tuple[int, int, bool]]:
    """The places among the inputs of a block mask's counts, each with that of the indices that are counted; are they of blocks that are
    read whole?"""
    mask = block_mask_of(node)[2:10]
    pairs = zip(mask[::2], mask[1::2], (False, True, False, True), strict=True)
    return [(inputs.index(counts), inputs.index(indices), whole) for counts, indices, whole in pairs
            if isinstance(counts, fx.Node) and isinstance(indices, fx.Node)]


def _fill(blocks: list[tuple[int, int, bool]], given: list[torch.Tensor]) -> None:
    """Every block is read, and a part of each is masked."""
    for counts, indices, whole in blocks:
        number = given[indices].shape[-1]
        given[counts].fill_(0 if whole else number)
        given[indices].copy_(torch.arange(number, device=given[indices].device).expand_as(given[indices]))


def _fill_cluster(args: Any) -> None:
    key, given, *_ = args
    fill = known_cluster(key).fill
    if fill:
        fill(given)


enter_made_up(CLUSTER, _fill_cluster)
