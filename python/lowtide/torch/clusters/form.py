"""A cluster's own graph.

The graph reads what makes the storages of its inputs; views of them are made within.  Where sizes are open it reads first those that
its tensors have, each a number (open_cluster.py).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import fx

from ..compat import pytree
from ..tracing.open_sizes import SIZE
from ..tracing.scalars import NotOpen
from ..tracing.symbolic_layouts import Lies, SymbolicLayouts, computed, expression_of
from .cluster import Cluster, cluster_of
from .groups import Group, Groups
from .key import key_of, lies_in_words
from .kinds import SEED
from .open_cluster import OpenCluster


@dataclass(frozen=True)
class Form:
    """inputs, results: nodes of the joint graph that the cluster reads, and that stand for its results, in its order.  sizes: those that
    give the sizes that it takes."""

    inputs: list[fx.Node]
    results: list[fx.Node]
    cluster: Cluster
    sizes: list[fx.Node] = field(default_factory=list)


def form_of(owner: fx.GraphModule, groups: Groups, group: Group, layouts: SymbolicLayouts | None = None) -> Form:
    """owner: the joint graph.  layouts: how its tensors lie at other sizes, if these are open.  A cluster whose tensors have none of these
    sizes is one as if they were not."""
    results = _results(groups, group)
    order, inputs = _cone(groups, group, results)
    if layouts:
        lies = {node: layouts.of(node) for node in (*inputs, *order)}
        numbers = [n for node in (*inputs, *order) for n in _expressions(node, lies[node])]
        symbols = list(dict.fromkeys(symbol for n in numbers for symbol in sorted(n.free_symbols, key=str)))
        if symbols:
            return _open_form(owner, (inputs, order, results), layouts, symbols, lies, group.repeats)
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


def _expressions(node: fx.Node, lies: Any) -> Iterator[sympy.Expr]:
    """How a node's tensors lie, and the sizes that it reads."""
    for part in pytree.tree_leaves(lies):
        if isinstance(part, Lies):
            yield from part.numbers()
    for source in node.all_input_nodes:
        if source.meta.get(SIZE):
            yield expression_of(source.meta["val"])


def _open_form(owner: fx.GraphModule, nodes: tuple[list[fx.Node], ...], layouts: SymbolicLayouts, symbols: list[sympy.Symbol],
               lies: dict[fx.Node, Any], repeats: bool) -> Form:
    """The form of a cluster for all sizes.  nodes: its inputs, all that it runs, and its results."""
    inputs, order, results = nodes
    if any(lies[node].offset.free_symbols for node in inputs) or not layouts.given.keys() >= set(symbols):
        raise NotOpen
    own = {symbol: sympy.Symbol(f"size{k}", integer=True, positive=True) for k, symbol in enumerate(symbols)}
    graph = fx.Graph()
    known: dict[sympy.Expr, Any] = {symbol: graph.placeholder(symbol.name) for symbol in own.values()}
    made = {node: graph.placeholder(f"a{i}") for i, node in enumerate(inputs)}

    def call(function: Any, args: tuple[Any, Any], makes: sympy.Expr) -> fx.Node:
        node = graph.call_function(function, args)
        numbers[node] = makes
        return node

    def copied(node: fx.Node) -> Any:
        return computed(expression_of(node.meta["val"]).xreplace(own), known, call) if node.meta.get(SIZE) else made[node]

    numbers: dict[fx.Node, Any] = {node: symbol for symbol, node in known.items()}
    for node in order:
        made[node] = graph.node_copy(node, copied)
    graph.output(tuple(made[node] for node in results))

    def renamed(part: Any) -> Any:
        return part.renamed(own) if isinstance(part, Lies) else part.xreplace(own) if isinstance(part, sympy.Expr) else part

    there = numbers | {made[node]: pytree.tree_map(renamed, lies[node]) for node in (*inputs, *order)}
    module, at = fx.GraphModule(owner, graph), tuple(map(layouts.hint, symbols))
    key = key_of(module, [lies_in_words(there[made[node]]) for node in results], lies=there)
    cluster = cluster_of(key, lambda: OpenCluster(key, module, list(own.values()), there, at, repeats))
    return Form(inputs, results, cluster, [layouts.given[symbol] for symbol in symbols])


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
            left += [source for source in node.all_input_nodes if not source.meta.get(SIZE)]
    order = sorted(within, key=kinds.place.__getitem__)
    inputs = dict.fromkeys(source for node in order for source in node.all_input_nodes
                           if source not in within and not source.meta.get(SIZE))
    return order, list(inputs)


def _is_own_item(groups: Groups, group: Group, mine: set[fx.Node], node: fx.Node) -> bool:
    """Is it one of several results of what the cluster runs itself?"""
    if node.target is not operator.getitem:
        return False
    (source,) = node.all_input_nodes
    return source in mine or source in groups.kinds.views or groups.makes_for_itself(group, source)
