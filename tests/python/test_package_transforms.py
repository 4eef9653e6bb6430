"""Plans that change the graph, from Python: asked for, read, written, applied."""
import json

import pytest
from package_support import ROOT

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


def wide(rows, time=10):
    """x [rows, 4] -> a row of 1000 for each -> [rows, 4]: what is in between is most of it."""
    def operand(tensor, columns):
        return {"tensor": tensor, "shape": [rows, columns], "strides": [columns, 1], "dtype": "f32"}
    def weight(tensor, shape):
        return {"tensor": tensor, "shape": shape, "strides": [shape[1], 1], "dtype": "f32"}
    sizes = [[rows, 4], [4, 1000], [1000, 4], [rows, 1000], [rows, 1000], [rows, 4]]
    ops = [("aten.mm", [{"argument": "self", **operand(0, 4)}, {"argument": "mat2", **weight(1, [4, 1000])}], 3, 1000),
           ("aten.relu", [{"argument": "self", **operand(3, 1000)}], 4, 1000),
           ("aten.mm", [{"argument": "self", **operand(4, 1000)}, {"argument": "mat2", **weight(2, [1000, 4])}], 5, 4)]
    return lowtide.Graph.from_json(json.dumps({
        "format": "lowtide-graph", "version": 1, "tick": "ns", "outputs": [5],
        "tensors": [{"bytes": 4 * a * b, "shape": [a, b], "dtype": "f32", **({"role": "input"} if i == 0 else {})}
                    for i, (a, b) in enumerate(sizes)],
        "ops": [{"name": f"op{i}", "kind": kind, "time": time, "inputs": [o["tensor"] for o in operands],
                 "outputs": [made], "operands": operands, "results": [operand(made, columns)]}
                for i, (kind, operands, made, columns) in enumerate(ops)]}))


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


def test_regions_and_the_transforms_that_auto_finds():
    graph = lowtide.Graph.load(ROOT / "examples" / "gpt2-train.graph.json.gz")
    survey = graph.regions()
    assert survey["hoisted"] and survey["regions"]
    best = survey["regions"][0]
    assert best["saved"] == survey["own_peak"] - best["own_peak"] > 0
    assert best["parts"] >= 2 and best["overhead"] > 0 and len(best["ops"]) > 100
    assert not graph.regions(hoist=False)["hoisted"]
    picked = graph.regions(pick=0)["transforms"]
    assert [t["kind"] for t in picked] == ["hoist", "split"] and picked[1]["ops"] == best["ops"]
    assert lowtide.plan(graph, "80%", transforms=picked, work=20_000).plan.transforms == picked
    with pytest.raises(IndexError, match="regions"):
        graph.regions(pick=100_000)
    with pytest.raises(lowtide.Error, match="abacus"):
        graph.regions(device="abacus")
    assert lowtide.generate("chain", 10).regions()["regions"] == []

    outcome = lowtide.plan(graph, "40%", techniques="all", work=600_000, threads=1)
    assert [t["kind"] for t in outcome.plan.transforms][:2] == ["hoist", "split"]
    assert lowtide.verify(graph, outcome.plan).peak == outcome.peak <= graph.own_peak * 2 // 5
    only = lowtide.plan(graph, "40%", techniques=["recompute", "split"], work=600_000, threads=1)
    assert only.plan is None or {t["kind"] for t in only.plan.transforms} <= {"split"}
    kept = ["recompute", "in_place", "split", "hoist"]  # and a link that no plan may use
    durations = [lowtide.plan(graph, "act:30%", techniques=kept, device=device, work=300_000, threads=1).duration
                 for device in (None, "a100")]
    assert durations[0] == durations[1]
    fit = lowtide.fit(graph, "10%", techniques="all", work=1_000_000)
    assert fit.outcome.plan.transforms and fit.budget < 0.45 * graph.own_peak
    curve = lowtide.curve(graph, "40%", points=2, techniques="all", work=1_000_000)
    assert all(point.plan is not None for point in curve.points)


def test_a_table_of_measured_calls_prices_parts(tmp_path):
    graph, table = wide(64), tmp_path / "costs.json"
    table.write_text(lowtide.costs_of(wide(32, time=1000)))  # a half takes more than the whole
    dearer = {r["parts"]: r["overhead"] for r in graph.regions(hoist=False, costs=table)["regions"]}
    free = {r["parts"]: r["overhead"] for r in graph.regions(hoist=False)["regions"]}
    assert dearer[2] > 100 > free[2] and dearer[4] == free[4]
    budget = int(0.55 * graph.own_peak)
    plans = [lowtide.plan(graph, budget, techniques="split", work=50_000, costs=costs).plan for costs in (None, table)]
    assert [plan.transforms[0]["parts"] == 2 for plan in plans] == [True, False]
    with pytest.raises(lowtide.Error, match="none.json"):
        lowtide.fit(graph, "5%", costs=tmp_path / "none.json")
