"""One call of an optimizer for updates that follow one another, where the host would make one for each."""

from __future__ import annotations

import operator
from collections.abc import Container

from torch import fx

from ..optimizer.graph_updates import apply_updates


def join_updates(graph: fx.Graph, views: Container[fx.Node]) -> None:
    """Make one node of the updates between which nothing is computed.  views: nodes that compute nothing."""
    run: list[fx.Node] = []
    for node in [*graph.nodes]:
        if node.target is apply_updates and (not run or node.args[0] == run[0].args[0]):
            run.append(node)
        elif node.target is not operator.getitem and node not in views:
            _join(graph, run)
            run = []
    _join(graph, run)


def _join(graph: fx.Graph, run: list[fx.Node]) -> None:
    if len(run) < 2:
        return
    last = run[-1]
    last.args = (last.args[0], *(tuple(value for node in run for value in node.args[place]) for place in (1, 2, 3)))  # type: ignore[union-attr]
    for node in run[:-1]:
        graph.erase_node(node)
