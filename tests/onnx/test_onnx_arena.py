"""Offsets for the values of a planned model, and the forms of runtimes."""

import itertools
import json
import random
import struct

import pytest

onnx = pytest.importorskip("onnx")

import lowtide.onnx
from onnx_models import FLOAT, model_of, node, numbers, random_model, saved

import lowtide


def loaded(model, folder, **more):
    return lowtide.onnx.load(saved(model, folder / "model.onnx"), {"batch": 3} if "batch" in str(model.graph.input) else None, **more)


def check_apart(model, arena):
    """No two values that hold different storages at once share a byte; each reader finds what it reads."""
    for a, b in itertools.combinations(arena.places, 2):
        together = a.first <= b.last and b.first <= a.last and a.size and b.size
        overlap = a.offset < b.offset + b.size and b.offset < a.offset + a.size
        # a result over its operand begins where that ends, at the same offset; other names of one storage are equal
        handed_on = a.offset == b.offset and (a.last == b.first or b.last == a.first)
        one_storage = (a.offset, a.size, a.first, a.last) == (b.offset, b.size, b.first, b.last)
        assert not (together and overlap) or handed_on or one_storage, (a, b)
    assert all(p.offset % arena.alignment == 0 and p.offset + p.size <= arena.size for p in arena.places)
    by_name = {op.name: op for op in model.graph.ops}
    for position, name in enumerate(arena.nodes):
        for t in by_name[name].inputs + by_name[name].outputs:
            tensor = model.graph.tensor(t)
            if tensor.role != "parameter" and tensor.bytes:
                assert any(p.value == tensor.name and p.first <= position <= p.last for p in arena.places), (name, tensor.name)


@pytest.mark.parametrize("seed", range(8))
def test_values_that_live_at_once_lie_apart(seed, tmp_path):
    given = random_model(seed)
    for i, n in enumerate(given.graph.node):
        n.name = f"n{i}"
    model = loaded(given, tmp_path, free_inputs=seed % 2 == 0)
    draw = random.Random(seed)
    order = list(model.graph.order)
    again = [j for j in order for _ in range(1 + (model.graph.op(j).recomputable and draw.random() < 0.2))]
    for plan in (model.plan(work=2_000, time=None).plan, lowtide.Plan.from_sequence(model.graph, again), lowtide.own_plan(model.graph)):
        arena = model.place(plan, work=20_000)
        check_apart(model, arena)
        assert arena.peak <= arena.size <= max(arena.greedy.values())


def test_a_result_lies_over_its_operand_and_a_view_where_it_is(tmp_path):
    nodes = [node("Exp", "x", "a"), node("Flatten", "a", "b"), node("Relu", "b", "c"), node("Tile", "c twice", "y")]
    model = loaded(model_of(nodes, {"x": [4, 16]}, ["y"], [numbers("twice", [1, 2])]), tmp_path)
    arena = model.place(model.plan(work=1_000, time=None))
    at = {place.value: place for place in arena.places}
    assert at["a"].offset == at["b"].offset == at["c"].offset and at["a"].last == at["c"].first == 1
    assert at["x"].first == -1 and at["x"].last == 2 and arena.size == 256 + 256 + 512 == arena.peak
    assert "twice" not in at and arena.nodes == ["Exp_0", "Relu_2", "Tile_3"]


def test_the_forms_of_runtimes(tmp_path):
    nodes = [node("Exp", "x", "a"), node("Relu", "a", "b"), node("MatMul", "b w", "y")]
    model = loaded(model_of(nodes, {"x": [1, 8]}, ["y"], [numbers("w", [[1.0] * 4] * 8, FLOAT)]), tmp_path)
    arena = model.place(model.plan(work=1_000, time=None))
    at = {place.value: place.offset for place in arena.places}
    words = struct.unpack("<8i", arena.to_tflite_micro(["x", "w", "a", "b", "y"]))
    assert words == (1, 0, 5, at["x"], -1, at["a"], at["b"], at["y"])
    assert struct.unpack("<3i", arena.to_tflite_micro(subgraph=2)[:12]) == (1, 2, 4)
    made = json.loads(arena.to_executorch())
    assert made["non_const_buffer_sizes"] == [0, arena.size]
    assert made["allocation_info"]["y"] == {"memory_id": 1, "memory_offset_low": at["y"], "memory_offset_high": 0}
    told = json.loads(arena.to_json())
    assert told["bytes"] == arena.size and len(told["places"]) == 4 and set(told["greedy"]) == {"by_size", "by_duration", "shared_objects"}
    arena.save(tmp_path / "arena.json")
    assert json.loads((tmp_path / "arena.json").read_text()) == told


def test_values_of_no_bytes_need_no_place(tmp_path):
    model = lowtide.onnx.load(saved(random_model(3), tmp_path / "model.onnx"), {"batch": 0})
    arena = model.place(model.plan(work=1_000, time=None))
    assert all(place.size for place in arena.places)


def test_a_value_in_two_places_is_refused_where_a_runtime_cannot_say_it(tmp_path):
    nodes = [node("Exp", "x", "a"), node("Neg", "a", "b"), node("Add", "a b", "y")]
    model = loaded(model_of(nodes, {"x": [4]}, ["y"]), tmp_path)
    arena = model.place(lowtide.Plan.from_sequence(model.graph, [0, 1, 0, 2]))
    for form in (arena.to_tflite_micro, arena.to_executorch):
        with pytest.raises(lowtide.onnx.ModelError, match="'a' is computed again and lies in two places"):
            form()
    model.save(tmp_path / "planned.onnx", lowtide.Plan.from_sequence(model.graph, [0, 1, 0, 2]))
    planned = lowtide.onnx.load(tmp_path / "planned.onnx")
    assert planned.place(lowtide.own_plan(planned.graph)).to_executorch()
