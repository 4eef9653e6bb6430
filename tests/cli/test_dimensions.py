"""`lowtide dimensions`: how far an axis reaches, and what stops it."""

import json

import pytest
from conftest import SOURCE, lowtide

GPT2, RESNET = (SOURCE / "examples" / f"{name}-train.graph.json.gz" for name in ("gpt2", "resnet50"))


def view(argument, tensor, shape, strides):
    return {"argument": argument, "tensor": tensor, "shape": shape, "strides": strides, "dtype": "f32"}


@pytest.fixture
def small(tmp_path):
    """relu of a transposed [6, 4], then a softmax along what was dimension 0."""
    ops = [("aten.relu", 0, [4, 6], [1, 4], 1, [6, 1], {}), ("aten._softmax", 1, [4, 6], [6, 1], 2, [6, 1], {"dim": 1})]
    graph = {
        "format": "lowtide-graph", "version": 1, "name": "small",
        "tensors": [{"name": name, "bytes": 96, "shape": shape, "dtype": "f32"}
                    for name, shape in (("x", [6, 4]), ("same", [4, 6]), ("same", [4, 6]))],
        "ops": [{"name": f"op{i}", "kind": kind, "origin": f"body.{i}", "inputs": [x], "outputs": [y], "time": 1,
                 "operands": [view("self", x, shape, strides)], "results": [view("", y, shape, made)], "arguments": given}
                for i, (kind, x, shape, strides, y, made, given) in enumerate(ops)],
        "outputs": [2],
    }
    path = tmp_path / "small.graph.json"
    path.write_text(json.dumps(graph))
    return str(path)


def test_an_axis_passes_a_view_and_stops_at_an_op_that_mixes_it(small):
    done = lowtide("dimensions", small, "--axis", "x:0", "--json").json()
    assert done["axes"] == [{"tensor": 0, "name": "x", "dim": 0, "slices": 6}]
    assert (done["ops"], done["carried"], done["stopped"], done["bytes"], done["carried_bytes"]) == (2, 1, 1, 192, 96)
    assert done["carries"] == [0]
    (stop,) = done["stops"]
    assert stop == {"op": 1, "name": "op1", "kind": "aten._softmax", "origin": "body.1", "cause": "mixes", "tensor": 1,
                    "reason": "normalizes over dimension 1 of \"self\""}
    assert done["tensors"] == [{"tensor": 0, "state": "split", "slices": 6, "stride": 16},
                               {"tensor": 1, "state": "split", "slices": 6, "stride": 4}]
    assert [m["origin"] for m in done["modules"]] == ["body.*"]
    other = lowtide("dimensions", small, "--axis", "0:1", "--json").json()
    assert other["carries"] == [0, 1] and not other["stops"]


def test_for_people(small):
    text = lowtide("dimensions", small, "--axis", "x:0").out
    assert "carried    1 of 2 ops (50.0 %), which make 96 B of 192 B (50.0 %)" in text
    assert "\n      1  aten._softmax, in body.*\n         normalizes over dimension 1 of \"self\"\n" in text
    text = lowtide("dimensions", small, "--axis", "x:1").out
    assert "carried    2 of 2 ops (100 %)" in text and "Stopped" not in text


@pytest.mark.parametrize(("axis", "reason"), [
    ("x", "--axis x: must be a tensor, by its name or number, and a dimension: input0:0"),
    ("x:first", "--axis x:first: must be a tensor"),
    ("y:0", "--axis y:0: no tensor is called \"y\"; its inputs are x"),
    ("same:0", "--axis same:0: 2 tensors are called \"same\"; the first is number 1"),
    ("9:0", "--axis 9:0: there is no tensor 9; the graph has 3"),
    ("x:2", "tensor 0 \"x\": has no dimension 2; it has 2, counted from 0"),
    ("x:-1", "tensor 0 \"x\": has no dimension -1"),
])
def test_axes_that_there_are_not(small, axis, reason):
    done = lowtide("dimensions", small, "--axis", axis)
    assert done.code == 2 and reason in done.err


def test_real_networks():
    gpt2 = lowtide("dimensions", GPT2, "--axis", "input0:0", "--json").json()
    assert gpt2["carried_bytes"] > 0.98 * gpt2["bytes"]
    assert {stop["kind"] for stop in gpt2["stops"]} == {"lowtide.barrier", "aten.embedding_dense_backward"}
    resnet = lowtide("dimensions", RESNET, "--axis", "input0:0", "--json").json()
    assert resnet["carried"] == 2
    assert {stop["reason"] for stop in resnet["stops"]} == {"takes statistics over dimension 0 of \"input\""}
