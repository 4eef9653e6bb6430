"""The parts of python/tools/torch_capture that need no torch, and the committed examples."""

import gzip
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tools"))

from graph_rules import check, kinds, names, with_defaults
from torch_capture.graph_builder import BrokenOrder, GraphBuilder, Op
from torch_capture.graph_file import to_json, write_graph
from torch_capture.roofline import DEVICES, kernel_ns


def small():
    """state, input -> draw -> new state (written back) and out."""
    graph = GraphBuilder()
    state, source = (graph.tensor(name, 8, role, [2], "f32") for name, role in (("s", "state"), ("x", "input")))
    drawn, moved, out, tangent = (graph.tensor(name, 8, None, [2], "f32") for name in ("d", "m", "o", "t"))
    draw = graph.op(Op("draw", "rand", [], [drawn], 5, "forward"), effect=True)
    move = graph.op(Op("move", "add", [drawn], [moved], 5, "forward"))
    graph.op(Op("use", "mul", [source, drawn], [out], 5, "forward"))
    graph.write_into(move, state)
    graph.cross([out], [tangent])
    last = graph.op(Op("again", "rand", [tangent], [graph.tensor("g", 8, "gradient", [2], "f32")], 5, "backward"),
                    effect=True)
    return graph, (state, out, draw, move, last)


def test_builder_keeps_the_rules():
    graph, (state, out, draw, move, last) = small()
    graph = graph.finish("small", [out, out])
    check(graph)
    assert [t["name"] for t in graph["tensors"]] == ["s", "x", "d", "o", "t", "g"]
    assert graph["outputs"] == [3]
    assert [op["after"] for op in graph["ops"]] == [[], [], [], [0, 1], [3]]
    assert (move.kind, move.inputs, move.outputs, move.mutates) == ("add_", [2, state], [], [state])
    assert not draw.recomputable and not last.recomputable


def test_builder_refuses_a_read_after_a_change():
    graph, (state, *_) = small()
    graph.op(Op("late", "neg", [state], [], 1, "backward", "layer"))
    with pytest.raises(BrokenOrder, match=r"late \(in layer\) reads s as it was before move changed it"):
        graph.finish("small", [])


def test_files_are_the_same_plain_and_compressed(tmp_path):
    graph, (_, out, *_) = small()
    graph = graph.finish("smäll", [out])
    sizes = [write_graph(graph, tmp_path / name) for name in ("a.graph.json", "a.graph.json.gz", "b.graph.json.gz")]
    plain, packed, again = ((tmp_path / f).read_bytes() for f in ("a.graph.json", "a.graph.json.gz", "b.graph.json.gz"))
    assert packed == again and gzip.decompress(packed) == plain == to_json(graph).encode()
    assert sizes == [len(plain), len(packed), len(packed)] and packed[4:8] == bytes(4)
    assert with_defaults(json.loads(plain))["ops"][0]["kind"] == "rand" and json.loads(plain)["name"] == "smäll"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.graph.json", "a.graph.json.gz", "b.graph.json.gz"]


def test_times_follow_the_roofline():
    a100 = DEVICES["a100"]
    assert kernel_ns(a100, 0, "f32", 0) == a100.fixed
    assert kernel_ns(a100, 312 * 10**9, "bf16", 0) == a100.fixed + 1_666_667
    assert kernel_ns(a100, 1, "bf16", 2039 * 10**6) == a100.fixed + 1_250_000
    assert kernel_ns(a100, 10**9, "i64", 0) == kernel_ns(a100, 10**9, "f32", 0)


@pytest.mark.parametrize("name", ["resnet50", "gpt2", "unet", "vit"])
def test_committed_examples_are_sound(name):
    packed = (ROOT / "examples" / f"{name}-train.graph.json.gz").read_bytes()
    graph = with_defaults(json.loads(gzip.decompress(packed)))
    check(graph)
    assert len(packed) < 1_000_000
    assert len(names(graph, "gradient")) == len(names(graph, "parameter"))
    assert not {k for k in kinds(graph) if "bernoulli" in k or k in ("aten.bmm", "aten._softmax", "aten.dropout")}
