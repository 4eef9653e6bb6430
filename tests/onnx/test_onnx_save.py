"""Planned models run in ONNX Runtime, with the bits of the model as given."""

import random

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import lowtide.onnx
import numpy as np
from onnx_models import model_of, node, numbers, random_model, run, saved

import lowtide


def any_sequence(graph, draw):
    """Any order of all ops, some of them computed again."""
    left, sequence = {op.index: set() for op in graph.ops}, []
    for op in graph.ops:
        left[op.index] |= {graph.tensor(t).producer for t in op.inputs} - {None} | set(op.after)
    while left:
        ready = [op for op, needs in left.items() if not needs]
        chosen = draw.choice(ready)
        del left[chosen]
        for needs in left.values():
            needs.discard(chosen)
        sequence.append(chosen)
        again = draw.choice(sequence)
        if draw.random() < 0.3 and graph.op(again).recomputable:
            sequence.append(again)
    return sequence


@pytest.mark.parametrize("seed", range(30))
def test_any_plan_of_a_random_model_has_the_same_bits(seed, tmp_path):
    path = saved(random_model(seed), tmp_path / "given.onnx")
    model = lowtide.onnx.load(path, {"batch": 3})
    feeds = {"x": np.random.default_rng(seed).standard_normal((3, 4, 8), np.float32)}
    plans = [lowtide.Plan.from_sequence(model.graph, any_sequence(model.graph, random.Random(seed))), model.plan(work=2_000, time=None).plan]
    for i, plan in enumerate(plans):
        model.save(tmp_path / "planned.onnx", plan)
        onnx.checker.check_model(str(tmp_path / "planned.onnx"))
        for optimized in (False, True)[:2 - i]:
            for a, b in zip(run(path, feeds, optimized), run(tmp_path / "planned.onnx", feeds, optimized), strict=True):
                assert a.shape == b.shape and a.tobytes() == b.tobytes()
        # What the file holds is what was planned: no less memory is needed than its own order says.
        again = lowtide.onnx.load(tmp_path / "planned.onnx", {"batch": 3})
        assert again.graph.num_ops == len(plan.sequence)
        assert [op.kind for op in again.graph.ops] == [model.graph.op(j).kind for j in plan.sequence]


def test_the_saved_order_has_the_planned_peak(tmp_path):
    """A chain beside a large value that is read last: the given order holds both."""
    nodes = [node("Tile", "x eight", "large"), node("Exp", "x", "a"), node("Tile", "a eight", "b"), node("ReduceSum", "b axis", "c"),
             node("ReduceSum", "large axis", "d"), node("Add", "c d", "y")]
    path = saved(model_of(nodes, {"x": [1, 64]}, ["y"], [numbers("eight", [1, 8]), numbers("axis", [1])]), tmp_path / "given.onnx")
    model = lowtide.onnx.load(path)
    outcome = model.plan(work=10_000, time=None)
    assert outcome.peak < model.graph.own_peak and outcome.duration == model.graph.duration
    model.save(tmp_path / "planned.onnx", outcome)
    assert lowtide.onnx.load(tmp_path / "planned.onnx").graph.own_peak == outcome.peak


def test_every_row_of_a_table_can_be_saved(tmp_path):
    model = lowtide.onnx.load(saved(random_model(1), tmp_path / "given.onnx"), {"batch": 3})
    for row in lowtide.onnx.compare(model, time=None, work=2_000).rows:
        model.save(tmp_path / "planned.onnx", row.plan)
        assert lowtide.onnx.load(tmp_path / "planned.onnx", {"batch": 3}).graph.num_ops >= model.graph.num_ops


def test_what_is_computed_again_has_fresh_names(tmp_path):
    nodes = [node("Exp", "x", "a", name="first"), node("Neg", "a", "b"), node("Add", "a b", "y")]
    path = saved(model_of(nodes, {"x": [4]}, ["y", "a"]), tmp_path / "given.onnx")
    model = lowtide.onnx.load(path)
    model.save(tmp_path / "planned.onnx", lowtide.Plan.from_sequence(model.graph, [0, 1, 0, 2]))
    made = onnx.load(tmp_path / "planned.onnx").graph
    assert [list(n.output) for n in made.node] == [["a__again_1"], ["b"], ["a"], ["y"]]
    assert list(made.node[1].input) == ["a__again_1"] and list(made.node[3].input) == ["a", "b"]
    assert [n.name for n in made.node] == ["first__again_1", "", "first", ""]


def test_weights_in_other_files_stay_there(tmp_path):
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "y")]
    given = model_of(nodes, {"x": [2, 64]}, ["y"], [numbers("w", np.ones((64, 64)), onnx.TensorProto.FLOAT)])
    saved(given, tmp_path / "small.onnx")
    onnx.save(given, tmp_path / "given.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    model = lowtide.onnx.load(tmp_path / "given.onnx")
    assert model.weights == 64 * 64 * 4
    plan = model.plan(work=100, time=None)
    model.save(tmp_path / "planned.onnx", plan)
    feeds = {"x": np.ones((2, 64), np.float32)}
    assert (run(tmp_path / "planned.onnx", feeds)[0] == run(tmp_path / "small.onnx", feeds)[0]).all()
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(lowtide.onnx.ModelError, match=f"written into {tmp_path}"):
        model.save(tmp_path / "elsewhere" / "planned.onnx", plan)


def test_plans_that_no_model_says_are_refused(tmp_path):
    path = saved(model_of([node("Exp", "x", "a"), node("Neg", "a", "b"), node("Add", "a b", "y")], {"x": [4]}, ["y"]), tmp_path / "m.onnx")
    model = lowtide.onnx.load(path)
    machine = lowtide.Problem(model.graph, "100%", link="1GB/s,0ns").machine
    moved = lowtide.Plan([("compute", 0), ("offload", 1), ("compute", 1), ("compute", 2), ("free", 1), ("free", 2)], machine=machine)
    with pytest.raises(lowtide.onnx.ModelError, match="copies to the host"):
        model.save(tmp_path / "planned.onnx", moved)
    with pytest.raises(lowtide.PlanError):
        model.save(tmp_path / "planned.onnx", lowtide.Plan([("compute", 1)]))


def test_a_plan_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path / "cache"))
    path = saved(random_model(3), tmp_path / "given.onnx")

    def planned():
        model = lowtide.onnx.load(path, {"batch": 3})
        return model.plan(work=2_000, time=None), model.plan("act:80%", work=2_000, time=None)

    first = planned()
    monkeypatch.setattr("lowtide.onnx.model.Model._searched", None)  # no search
    for a, b in zip(first, planned(), strict=True):
        assert b.found_by == "kept" and b.plan.steps == a.plan.steps
        assert (b.status, b.peak, b.duration, b.bound, b.budget) == (a.status, a.peak, a.duration, a.bound, a.budget)
    for file in (tmp_path / "cache/outcomes").iterdir():
        file.write_text(file.read_text().replace('["compute", 0]', '["compute", 1]'))  # a plan no more
    monkeypatch.undo()
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path / "cache"))
    assert planned()[0].found_by != "kept"


def test_what_no_model_can_follow_is_refused_before_the_search(tmp_path, monkeypatch):
    model = lowtide.onnx.load(saved(random_model(3), tmp_path / "given.onnx"), {"batch": 3})
    monkeypatch.setattr("lowtide.onnx.model.Model._searched", None)
    with pytest.raises(lowtide.onnx.ModelError, match="can follow the techniques recompute and in_place alone, not split"):
        model.plan("80%", techniques="split")
