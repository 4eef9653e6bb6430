"""Graphs that say what an op does, steps in place and techniques, in Python."""

import json
import math
import pickle

import pytest

import lowtide

# x -> a -> relu in place -> b; then a sum that could take the place of either side
GRAPH = {
    "format": "lowtide-graph", "version": 1, "tick": "us",
    "tensors": [{"bytes": 24, "stays": True}, {"bytes": 24}, {"bytes": 24}, {"bytes": 24}, {"bytes": 24}],
    "ops": [
        {"inputs": [0], "outputs": [1], "time": 4, "kind": "aten.mul.Scalar",
         "operands": [{"argument": "self", "tensor": 0, "shape": [2, 3], "strides": [3, 1], "dtype": "f32"}],
         "results": [{"argument": "out", "tensor": 1, "shape": [2, 3], "strides": [3, 1], "dtype": "f32"}],
         "arguments": {"other": 0.1, "limit": {"float": "-inf"}, "dims": [0, 1], "dtype": {"dtype": "bf16"},
                       "flag": True, "none": None, "word": "mean", "one": 1, "whole": 1.0}},
        {"inputs": [1], "outputs": [2], "time": 3, "in_place": [[1, 2]]},
        {"inputs": [0], "outputs": [3], "time": 1},
        {"inputs": [2, 3], "outputs": [4], "time": 2, "in_place": [[2, 4], [3, 4]]}],
    "outputs": [4],
}


@pytest.fixture
def graph():
    return lowtide.Graph.from_dict(GRAPH)


def test_operands_results_and_arguments_of_an_op(graph):
    op = graph.op(0)
    assert op.operands[0]["strides"] == [3, 1] and op.results[0]["tensor"] == 1 and op.operands[0]["offset"] == 0
    arguments = op.arguments
    assert arguments["other"] == 0.1 and arguments["limit"] == -math.inf and arguments["dtype"] == {"dtype": "bf16"}
    assert arguments["flag"] is True and arguments["none"] is None and arguments["dims"] == [0, 1]
    assert type(arguments["one"]) is int and type(arguments["whole"]) is float
    assert graph.op(1).in_place == [(1, 2)] and graph.op(3).in_place == [(2, 4), (3, 4)]
    assert graph.tensor(0).stays and not graph.tensor(1).stays and graph.tensor(0).home == "device"


def test_graphs_are_written_as_they_were_read(graph):
    again = lowtide.Graph.from_json(graph.to_json())
    assert again.to_dict() == graph.to_dict() and again.hash == graph.hash
    assert pickle.loads(pickle.dumps(graph)).hash == graph.hash
    plain = json.loads(json.dumps(GRAPH))
    for op in plain["ops"]:
        op.pop("in_place", None)
    assert lowtide.Graph.from_dict(plain).hash != graph.hash


def test_plans_run_in_place(graph):
    assert graph.own_peak == 72 + 24  # x, b, c and the sum
    outcome = lowtide.plan(graph, "100%", work=20_000)
    assert outcome.status == "optimal" and outcome.peak == 72
    kinds = [step[0] for step in outcome.plan.steps]
    assert kinds.count("compute_in_place") == 2
    assert lowtide.verify(graph, outcome.plan).peak == 72
    assert lowtide.Plan.from_json(outcome.plan.to_json()).steps == outcome.plan.steps
    assert lowtide.Plan(outcome.plan.steps).steps == outcome.plan.steps
    assert lowtide.Plan.from_sequence(graph, [0, 1, 2, 3]).steps == [
        ("compute", 0), ("compute_in_place", 1, 1), ("compute", 2), ("compute_in_place", 3, 2), ("free", 3)]


def test_techniques(graph):
    apart = lowtide.plan(graph, "100%", work=20_000, techniques="recompute")
    assert apart.peak == 96 and all(step[0] != "compute_in_place" for step in apart.plan.steps)
    assert lowtide.plan(graph, 72, work=20_000, techniques=["recompute"]).status == "infeasible"
    once = lowtide.plan(graph, 72, work=20_000, techniques=["in_place"])
    assert once.status == "optimal" and len(once.plan.sequence) == 4
    assert lowtide.Problem(graph, 72).techniques == ["recompute", "in_place"]
    assert lowtide.Problem(graph, 72, techniques="all").techniques == [
        "recompute", "in_place", "offload", "split", "hoist", "substitute"]
    curve = lowtide.curve(graph, "50%", "100%", 4, work=50_000, techniques=["recompute"])
    assert curve.smallest.peak == 96
    assert lowtide.curve(graph, "50%", "100%", 4, work=50_000).smallest.peak == 72
    assert lowtide.fit(graph, "0%", work=50_000).budget == 72
    assert lowtide.fit(graph, "0%", work=50_000, techniques="recompute").budget == 96


def test_verify_holds_plans_to_techniques(graph):
    plan = lowtide.plan(graph, "100%", work=20_000).plan
    assert json.loads(plan.to_json())["techniques"] == ["recompute", "in_place"]
    with pytest.raises(lowtide.PlanError, match='"in_place" is not among those allowed'):
        lowtide.verify(graph, plan, techniques=["recompute"])


@pytest.mark.parametrize("techniques, said", [
    ("slice", '"slice" is not known'), ([], "names none"), ("recompute,,in_place", "empty place"),
    (["offload"], "needs a link to the host"),
])
def test_refused_techniques(graph, techniques, said):
    with pytest.raises(lowtide.Error, match=said):
        lowtide.Problem(graph, 72, techniques=techniques)
    with pytest.raises(TypeError):
        lowtide.plan(lowtide.Problem(graph, 72), techniques=techniques)


@pytest.mark.parametrize("steps, said", [
    ([("compute_in_place", 0)], "another number of indices"),
    ([("compute_in_place", 0, -1)], "is no index"),
    ([("compute", 0, 1)], "another number of indices"),
    ([("over", 0)], "no kind of step"),
])
def test_refused_steps(steps, said):
    with pytest.raises(lowtide.Error, match=said):
        lowtide.Plan(steps)


def test_home(graph):
    away = json.loads(json.dumps(GRAPH))
    away["tensors"][0] = {"bytes": 24, "home": "host"}
    away["tick"] = "ns"
    distant = lowtide.Graph.from_dict(away)
    with pytest.raises(lowtide.Error, match="tensor 0: its home is the host, and no link brings it"):
        lowtide.plan(distant, "100%", work=1000)
    assert distant.own_peak == graph.own_peak
    assert lowtide.footprint(distant).steps == lowtide.footprint(graph).steps
    assert lowtide.plan_allocations(distant) == lowtide.plan_allocations(graph)
    outcome = lowtide.plan(distant, "100%", work=1000, link="1GB/s")
    assert ("prefetch", 0) in outcome.plan.steps and lowtide.verify(distant, outcome.plan)
    again = lowtide.Plan(outcome.plan.steps, machine=outcome.plan.machine)
    assert lowtide.verify(distant, again).duration == outcome.duration
    assert lowtide.curve(distant, points=2, work=3000, link="1GB/s").points[-1].plan
    assert lowtide.fit(distant, "1000%", work=3000, link="1GB/s").budget
    with pytest.raises(lowtide.Error, match="host_budget: 23 bytes are less than the 24"):
        lowtide.plan(distant, "100%", work=1000, link="1GB/s", host_budget=23)
