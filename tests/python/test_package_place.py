"""Offsets for plans from Python."""

import json

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")


@pytest.fixture(scope="module")
def graph():
    return lowtide.generate("resnet", 120, seed=2)


@pytest.fixture(scope="module")
def plan(graph):
    return lowtide.plan(graph, "80%", work=20_000, threads=1).plan


def test_a_plan_is_placed(graph, plan, tmp_path):
    placed = lowtide.place(graph, plan, work=100_000)
    assert placed.status in ("optimal", "feasible") and placed.arena >= placed.bound >= placed.load > 0
    assert placed.plan.steps == plan.steps and placed.plan.offsets == placed.offsets
    assert placed.plan.alignment == 512 and placed.plan.claimed_arena == placed.arena
    assert set(placed.baselines) == {"by_size", "by_duration", "shared_objects"}
    assert all(placed.load <= height for height in placed.baselines.values())
    assert all(offset % 512 == 0 for _, _, offset in placed.offsets)
    starts = [tensor for step, tensor, _ in placed.offsets if step is None]
    assert starts == [t.index for t in graph.tensors if t.producer is None and t.bytes > 0]
    assert "arena" in repr(placed)
    path = tmp_path / "placed.plan.json"
    placed.plan.save(path)
    read = lowtide.Plan.load(path)
    assert read.offsets == placed.offsets
    assert lowtide.verify(graph, read).peak <= placed.arena
    # The same work gives the same offsets; without a limit of work there is one of time.
    assert lowtide.place(graph, plan, work=100_000).offsets == placed.offsets
    assert lowtide.place(graph, plan, time=0).arena >= placed.bound


def test_a_plan_of_steps_alone(graph, plan):
    bare = lowtide.Plan(plan.steps)
    assert bare.offsets == [] and bare.alignment is None and bare.claimed_arena is None and bare.footprint == "live"
    placed = lowtide.place(graph, bare, alignment=1, work=10_000)
    assert placed.load == lowtide.verify(graph, placed.plan).peak
    with pytest.raises(lowtide.PlanError):
        lowtide.place(graph, lowtide.Plan(plan.steps[1:]))


def test_a_capacity(graph, plan):
    placed = lowtide.place(graph, plan, work=100_000)
    assert lowtide.place(graph, plan, capacity=placed.arena, work=100_000).arena <= placed.arena
    assert lowtide.place(graph, plan, capacity=placed.load - 1, work=1_000).status == "infeasible"
    for wrong in ({"alignment": 0}, {"capacity": "much"}, {"work": -1}, {"time": -1.0}):
        with pytest.raises(lowtide.Error):
            lowtide.place(graph, plan, **wrong)


def test_wrong_offsets_are_refused(graph, plan):
    text = json.loads(lowtide.place(graph, plan, work=10_000).plan.to_json())
    text["offsets"] = [[step, tensor, 0] for step, tensor, _ in text["offsets"]]
    with pytest.raises(lowtide.PlanError, match="overlaps"):
        lowtide.verify(graph, lowtide.Plan.from_json(json.dumps(text)))


def test_a_budget_of_the_arena(graph):
    outcome = lowtide.plan(graph, "70%", footprint="arena", work=60_000, threads=1)
    assert outcome.footprint == "arena" and outcome.peak <= outcome.arena <= outcome.budget
    assert outcome.plan.footprint == "arena" and outcome.plan.claimed_arena == outcome.arena
    lowtide.verify(graph, outcome.plan)
    with pytest.raises(lowtide.PlanError, match="arena"):
        lowtide.verify(graph, outcome.plan, budget=outcome.arena - 1)
    assert lowtide.plan(graph, "70%", work=1_000).arena is None
    with pytest.raises(lowtide.Error, match="is not one of live, arena, reserved"):
        lowtide.plan(graph, "70%", footprint="cached")
