"""Updates that wait for later ones, within the plan's peak."""

import itertools
import random

import pytest
from lowtide.frontend.planning.updates import updates_together

import lowtide


def graph_of(sizes, workspaces, large=0):
    """A chain whose every op also makes a gradient of that size, and after it the gradient's update; op `large` has a workspace."""
    tensors, ops = [{"bytes": 10}], []
    at = 0
    for number, (size, workspace) in enumerate(zip(sizes, workspaces, strict=True)):
        tensors += [{"bytes": 10}, {"bytes": size, "role": "gradient"}]
        after, gradient = len(tensors) - 2, len(tensors) - 1
        ops.append({"inputs": [at], "outputs": [after, gradient], "time": 1, "workspace": 1000 if number == large else 0})
        ops.append({"kind": "lowtide.update", "inputs": [gradient], "outputs": [], "time": 1, "workspace": workspace, "recomputable": False})
        at = after
    return lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "tick": "ns", "tensors": tensors, "ops": ops, "outputs": [at]})


def in_groups(graph, order):
    updates = [graph.op(op).kind == "lowtide.update" for op in order]
    return [len(list(group)) for is_update, group in itertools.groupby(updates) if is_update]


@pytest.mark.parametrize(("sizes", "workspaces", "most", "expected"), [
    ([100] * 4, [0] * 4, None, [4]),
    ([400] * 4, [0] * 4, None, [3, 1]),  # four gradients are more than the peak of 1,420
    ([100] * 4, [400] * 4, None, [2, 2]),  # and so are three workspaces
    ([100] * 4, [30] * 4, 60, [2, 2]),
    ([10] * 20, [0] * 20, None, [16, 4])])
def test_updates_wait_as_long_as_the_peak_allows_it(sizes, workspaces, most, expected):
    graph = graph_of(sizes, workspaces)
    assert in_groups(graph, updates_together(graph, lowtide.own_plan(graph), most)) == expected


def test_no_update_waits_across_the_peak_and_one_alone_is_none():
    graph = graph_of([100] * 4, [0] * 4, large=2)
    assert in_groups(graph, updates_together(graph, lowtide.own_plan(graph))) == [2, 2]
    assert updates_together(graph_of([100], [0]), lowtide.own_plan(graph_of([100], [0]))) is None


@pytest.mark.parametrize("seed", range(20))
def test_what_waits_raises_no_peak_with_all_workspaces_of_a_call_at_once(seed):
    rng = random.Random(seed)
    count = rng.randrange(2, 40)
    graph = graph_of([rng.randrange(1, 300) for _ in range(count)], [rng.randrange(0, 80) for _ in range(count)], rng.randrange(count))
    plan = lowtide.own_plan(graph)
    order = updates_together(graph, plan)
    if order is None:
        return
    assert sorted(order) == sorted(op for op in range(graph.num_ops))
    joined = lowtide.Plan.from_sequence(graph, order)
    memory = dict(zip(joined.sequence, (now for (kind, *_), now in zip(joined.steps, lowtide.simulate(graph, joined).memory, strict=True)
                                        if kind == "compute"), strict=True))
    peak = lowtide.simulate(graph, plan).peak
    for is_update, group in itertools.groupby(order, lambda op: graph.op(op).kind == "lowtide.update"):
        ops = list(group)
        extra = sum(graph.op(op).workspace for op in ops[1:]) if is_update else 0
        assert memory[ops[0]] + extra <= peak
