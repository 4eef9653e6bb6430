"""What the sub-graphs of a node take: If, Loop and Scan are one op each."""

from __future__ import annotations

from .in_place import is_view
from .infer import Scope
from .read import label, reads
from .values import check_known
from .work import operations


def bodies(scope: Scope, place: int) -> tuple[int, int, int]:
    """Operations, workspace and weights of a node's sub-graphs."""
    counts, peaks, weights = [], [], 0
    for inner in scope.inner[place]:
        count, peak, held = _body(inner)
        counts.append(count)
        peaks.append(peak)
        weights += held
    return max(counts) * scope.trips.get(place, 1), max(peaks), weights


def _body(scope: Scope) -> tuple[int, int, int]:
    """Operations of one run, the peak of its values, and the bytes of its constants, each freed after its last reader."""
    graph, last = scope.graph, {}
    for place, node in enumerate(graph.node):
        last.update(dict.fromkeys(reads(node), place))
    last.update({value.name: len(graph.node) for value in graph.output})
    count = live = peak = 0
    weights = sum(scope.value(tensor.name).bytes for tensor in graph.initializer if tensor.name in last)
    leaving: dict[int, int] = {}
    for place, node in enumerate(graph.node):
        names, inside = [name for name in node.output if name], 0
        for name in names:
            check_known(scope.value(name), name, f"{label(node, place)} makes")
        made = [scope.value(name) for name in names]
        if all(value.constant for value in made):
            weights += sum(value.bytes for value in made if value.data is None) if names else 0
            continue
        if place in scope.inner:
            more, inside, held = bodies(scope, place)
            count, weights = count + more, weights + held
        else:
            count += operations(node, [scope.value(name) for name in node.input if name], made)
        if not is_view(node, names):
            for name, value in zip(names, made):
                live += value.bytes
                leaving[last.get(name, place)] = leaving.get(last.get(name, place), 0) + value.bytes
        peak = max(peak, live + inside)
        live -= leaving.pop(place, 0)
    return count, peak, weights
