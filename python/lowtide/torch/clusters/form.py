"""A cluster's own graph, and the key by which equal clusters are known.

The graph reads what makes the storages of its inputs; views of them are made within.  The key is a hash of operators, arguments and
the layouts of inputs, in the order of the graph, without names: equal layers of a model have equal keys.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..compat.higher_order import triton_kernel_of
from ..tensors.operators import leaves
from .cluster import Cluster, cluster_of
from .groups import Group, Groups
from .kinds import SEED

_ALIGNED = 16  # bytes, which kernels of a GPU rely on


@dataclass(frozen=True)
class Form:
    """inputs, results: nodes of the joint graph that the cluster reads, and that stand for its results, in its order."""

    inputs: list[fx.Node]
    results: list[fx.Node]
    cluster: Cluster


def form_of(owner: fx.GraphModule, groups: Groups, group: Group) -> Form:
    """owner: the joint graph."""
    results = _results(groups, group)
    order, inputs = _cone(groups, group, results)
    graph = fx.Graph()
    made: dict[fx.Node, fx.Node] = {}
    for i, node in enumerate(inputs):
        made[node] = graph.placeholder(f"a{i}")
        made[node].meta["val"] = node.meta["val"]
    for node in order:
        made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple(made[node] for node in results))
    given: list[torch.Tensor] = [node.meta["val"] for node in inputs]
    returned: list[torch.Tensor] = [node.meta["val"] for node in results]
    module = fx.GraphModule(owner, graph)
    key = key_of(module)
    return Form(inputs, results, cluster_of(key, lambda: Cluster(key, module, given, returned, group.repeats)))


def _results(groups: Groups, group: Group) -> list[fx.Node]:
    """What is read outside of a group, by the graph's caller for one."""
    kinds, mine = groups.kinds, set(group.nodes)
    returned = {maker for node, _ in kinds.outputs() for maker in kinds.makers(node)}

    def outside(node: fx.Node) -> bool:
        """Does anybody outside read the storage that this node makes?"""
        left = list(node.users)
        while left:
            user = left.pop()
            if user.op == "output":
                return True
            if kinds.passes_on(user):
                left += user.users
            elif user in groups.copied and groups.of.get(user) is None:
                left += user.users  # whoever copies it reads what it reads
            elif user not in mine and not (node in groups.again and user in kinds.late and user in groups.of):
                return True
        return False

    found = []
    for node in group.nodes:
        several = isinstance(node.meta["val"], (tuple, list))
        for one in [user for user in node.users if user.target is operator.getitem] if several else [node]:
            if outside(one) or one in returned or node in groups.ends and _is_read_late(groups, one):
                found.append(one)
    return found


def _is_read_late(groups: Groups, node: fx.Node) -> bool:
    """Does a value that the backward computes again read this one, directly or through views?"""
    left = list(node.users)
    while left:
        user = left.pop()
        if user in groups.again:
            return True
        if groups.kinds.passes_on(user):
            left += user.users
    return False


def _cone(groups: Groups, group: Group, results: list[fx.Node]) -> tuple[list[fx.Node], list[fx.Node]]:
    """The nodes that a cluster runs, in order, and its inputs in the order in which these read them."""
    kinds, mine = groups.kinds, set(group.nodes)
    within: set[fx.Node] = set()
    left = list(results)
    while left:
        node = left.pop()
        if node in within:
            continue
        is_inner_view = node in kinds.views and not node.meta.get(SEED)
        if node in mine or groups.makes_for_itself(group, node) or is_inner_view or _is_own_item(groups, group, mine, node):
            within.add(node)
            left += node.all_input_nodes
    order = sorted(within, key=kinds.place.__getitem__)
    inputs = dict.fromkeys(source for node in order for source in node.all_input_nodes if source not in within)
    return order, list(inputs)


def _is_own_item(groups: Groups, group: Group, mine: set[fx.Node], node: fx.Node) -> bool:
    """Is it one of several results of what the cluster runs itself?"""
    if node.target is not operator.getitem:
        return False
    (source,) = node.all_input_nodes
    return source in mine or source in groups.kinds.views or groups.makes_for_itself(group, source)


def key_of(module: fx.GraphModule, *more: Any) -> str:
    """The key of a cluster's graph; more: of what else it depends on."""
    settings = (torch.get_num_threads(), torch.__version__)
    return hashlib.sha256(repr((_parts(module), settings, *more)).encode()).hexdigest()[:20]


def _parts(module: fx.GraphModule) -> list[Any]:
    places = {node: i for i, node in enumerate(module.graph.nodes)}

    def of(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return "node", places[value]
        if isinstance(value, (list, tuple)):
            return type(value).__name__, tuple(map(of, value))
        if isinstance(value, dict):
            return tuple((key, of(v)) for key, v in value.items())
        return repr(value)

    def read(node: fx.Node) -> Any:
        if node.op == "placeholder":
            return _layout(node.meta["val"]) if "val" in node.meta else None
        return _parts(operator.attrgetter(str(node.target))(module)) if node.op == "get_attr" else None

    found = []
    for node in module.graph.nodes:
        kernel = triton_kernel_of(node)
        kwargs = {name: value for name, value in node.kwargs.items() if kernel is None or not name.endswith("_idx")}
        found.append((node.op, str(node.target) if node.op == "call_function" else "", of(node.args), of(kwargs), read(node), kernel))
    return found


def _layout(t: torch.Tensor) -> Any:
    (tensor,) = leaves(t)
    offset = int(tensor.storage_offset()) * tensor.element_size() % _ALIGNED
    return tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride())), str(tensor.dtype), str(tensor.device), offset
