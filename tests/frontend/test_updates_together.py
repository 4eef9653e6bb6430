"""Updates that wait for later ones, within the plan's peak."""

import itertools
import random

import pytest
from lowtide.frontend.planning.updates import updates_in_one_call, updates_together

import lowtide


def graph_of(sizes, workspaces, large=0, **attributes):
    """A chain whose every op also makes a gradient of that size, and after it the gradient's update; op `large` has a workspace.
    attributes: of the updates."""
    tensors, ops = [{"bytes": 10}], []
    at = 0
    for number, (size, workspace) in enumerate(zip(sizes, workspaces, strict=True)):
        tensors += [{"bytes": 10}, {"bytes": size, "role": "gradient"}]
        after, gradient = len(tensors) - 2, len(tensors) - 1
        ops.append({"inputs": [at], "outputs": [after, gradient], "time": 1, "workspace": 1000 if number == large else 0})
        ops.append({"kind": "lowtide.update", "inputs": [gradient], "outputs": [], "time": 1, "workspace": workspace, "recomputable": False,
                    "attributes": attributes})
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


def one_call(graph, order, most=None):
    return [len(ops) for ops in updates_in_one_call(graph, lowtide.Plan.from_sequence(graph, order), most)]


@pytest.mark.parametrize(("sizes", "workspaces", "most", "expected"), [
    ([100] * 4, [0] * 4, None, [4]),
    ([400] * 4, [0] * 4, None, [3]),
    ([100] * 4, [400] * 4, None, [2, 2]),
    ([100] * 4, [30] * 4, 60, [2, 2]),
    ([10] * 20, [0] * 20, None, [16, 4])])
def test_the_calls_are_those_for_which_updates_have_waited(sizes, workspaces, most, expected):
    graph = graph_of(sizes, workspaces)
    order = updates_together(graph, lowtide.own_plan(graph), most)
    assert one_call(graph, order, most) == expected


def test_updates_that_follow_one_another_by_the_plan_alone_are_apart_where_a_joint_call_would_exceed_its_peak():
    graph = graph_of([100] * 4, [600] * 4)
    order = [op for op in range(8) if op % 2 == 0] + [1, 3, 5, 7]
    assert lowtide.simulate(graph, lowtide.Plan.from_sequence(graph, order)).peak == 1120  # one workspace and four gradients are 1010
    assert one_call(graph, order) == []
    assert one_call(graph_of([100] * 4, [50] * 4), order) == [4]


def test_a_loop_has_two_workspaces_at_a_time_and_a_list_has_all():
    order = [op for op in range(8) if op % 2 == 0] + [1, 3, 5, 7]
    given = {"sizes": [100] * 4, "workspaces": [250] * 4}
    assert one_call(graph_of(**given, implementation="foreach", temporaries=250), order) == [2, 2]
    assert one_call(graph_of(**given, implementation="loop", temporaries=250), order) == [4]
    assert one_call(graph_of(**given, implementation="foreach", temporaries=0), order) == [4]  # kernels run one after another


def test_no_call_has_updates_with_a_copy_between_them():
    graph = graph_of([100] * 2, [0] * 2)
    steps = [("compute", 0), ("compute", 2), ("compute", 1), ("free", 2), ("offload", 3), ("compute", 3), ("free", 4)]
    plan = lowtide.Plan(steps, machine=dict.fromkeys(("device_to_host", "host_to_device"), {"latency": 0, "bytes": 10, "ticks": 1}))
    assert updates_in_one_call(graph, plan) == ()
    assert updates_in_one_call(graph, lowtide.Plan([step for step in steps if step[0] != "offload"])) == ((1, 3),)
