"""Plans that change the graph, from Python: asked for, read, written, applied."""
import json

import pytest

import lowtide


def relus(rows=6):
    tensor = {"bytes": rows * 16, "shape": [rows, 4], "dtype": "f32"}
    part = {"shape": [rows, 4], "strides": [4, 1], "dtype": "f32"}
    ops = [
        {"name": f"relu{i}", "kind": "aten.relu", "inputs": [i], "outputs": [i + 1], "time": 10,
         "operands": [{"argument": "self", "tensor": i, **part}], "results": [{"tensor": i + 1, **part}]}
        for i in range(2)
    ]
    return lowtide.Graph.from_json(json.dumps(
        {"format": "lowtide-graph", "version": 1, "tensors": [tensor] * 3, "ops": ops, "outputs": [2]}))


def split(**changed):
    return {"kind": "split", "ops": [0, 1], "parts": 2, "axes": [{"tensor": 0, "dim": 0}], "exact": True,
            "prices": [[0, 6, 0], [1, 6, 0]], "joins": [[2, 1, 0]], **changed}


def test_plan_with_transforms_and_apply(tmp_path):
    graph = relus()
    outcome = lowtide.plan(graph, 288, transforms=[split()], work=10000)
    plan = outcome.plan
    assert plan.transforms == [split()]
    assert plan.bound_scope == "graph"
    assert "split" in plan.techniques
    assert outcome.peak <= 288
    assert lowtide.verify(graph, plan).duration == outcome.duration == 26
    assert outcome.overhead == pytest.approx(26 / 20 - 1)

    outcome.save(tmp_path / "split.plan.json")
    read = lowtide.Plan.load(tmp_path / "split.plan.json")
    assert read.transforms == plan.transforms
    assert read.steps == plan.steps

    made, ordinary = lowtide.apply(graph, read)
    assert len(made.ops) == 6
    assert ordinary.transforms == []
    assert lowtide.verify(made, ordinary).peak == outcome.peak
    assert lowtide.simulate(made, ordinary).duration == 26


def test_transforms_that_are_refused():
    graph = relus()
    with pytest.raises(lowtide.PlanError, match="do not go into 4 parts of two or more"):
        lowtide.plan(graph, 288, transforms=[split(parts=4)], work=1000)
    with pytest.raises(lowtide.Error, match="the price of op 1 is missing") as caught:
        lowtide.plan(graph, 288, transforms=[split(prices=[[0, 6, 0]])], work=1000)
    assert not isinstance(caught.value, lowtide.PlanError)
    with pytest.raises(lowtide.Error, match="unknown transform"):
        lowtide.Problem(graph, 288, transforms=[{"kind": "fuse"}])
    plan = lowtide.plan(graph, 288, transforms=[split()], work=1000).plan
    with pytest.raises(lowtide.WrongGraphError):
        lowtide.apply(relus(8), plan)
