"""A graph under construction, the file it becomes, and the times of a data sheet."""

import gzip
import json

import pytest
from graph_rules import check, with_defaults
from lowtide.frontend.draft import BrokenOrder, GraphBuilder, Op
from lowtide.frontend.roofline import DEVICES, kernel_ns

import lowtide


def small():
    """state, input -> draw -> new state (for the barrier to write back) and out."""
    graph = GraphBuilder()
    state, source = (graph.tensor(name, 8, role, [2], "f32") for name, role in (("s", "state"), ("x", "input")))
    drawn, moved, out, tangent = (graph.tensor(name, 8, None, [2], "f32") for name in ("d", "m", "o", "t"))
    draw = graph.op(Op("draw", "rand", [], [drawn], 5, "forward"), effect=True)
    move = graph.op(Op("move", "add", [state, drawn], [moved], 5, "forward"))
    graph.op(Op("use", "mul", [source, drawn], [out], 5, "forward"))
    graph.due_at_barrier.append(move)
    barrier = graph.cross([out, moved, state], [tangent])
    barrier.mutates = [state]
    last = graph.op(Op("again", "rand", [tangent], [graph.tensor("g", 8, "gradient", [2], "f32")], 5, "backward"),
                    effect=True)
    return graph, (state, out, tangent, draw, move, last)


def test_builder_keeps_the_rules():
    graph, (state, out, tangent, draw, move, last) = small()
    producer = graph.producer
    assert producer[out].name == "use" and producer[tangent] is graph.barrier and state not in producer
    graph = with_defaults(graph.finish("small", [out, tangent]).to_dict())
    check(graph)
    assert [t["name"] for t in graph["tensors"]] == ["s", "x", "d", "m", "o", "t", "g"]
    assert [op["after"] for op in graph["ops"]] == [[], [], [], [0, 1], [3]]
    assert graph["outputs"] == [4, 5] and graph["ops"][3]["mutates"] == [0]
    assert not draw.recomputable and not last.recomputable and move.recomputable


def test_builder_refuses_a_read_after_a_change():
    graph, (state, *_) = small()
    graph.op(Op("late", "neg", [state], [], 1, "backward", "layer"))
    with pytest.raises(BrokenOrder, match=r"late \(in layer\) reads s as it was before barrier changed it"):
        graph.finish("small", [])


def test_files_are_the_same_plain_and_compressed(tmp_path):
    graph, (_, out, *_) = small()
    graph = graph.finish("smäll", [out])
    for name in ("a.graph.json", "a.graph.json.gz", "b.graph.json.gz"):
        graph.save(tmp_path / name)
    plain, packed, again = ((tmp_path / f).read_bytes() for f in ("a.graph.json", "a.graph.json.gz", "b.graph.json.gz"))
    assert packed == again and gzip.decompress(packed) == plain == graph.to_json().encode()
    assert packed[4:8] == bytes(4)  # no time of writing
    assert with_defaults(json.loads(plain))["ops"][0]["kind"] == "rand" and json.loads(plain)["name"] == "smäll"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.graph.json", "a.graph.json.gz", "b.graph.json.gz"]
    assert lowtide.Graph.load(tmp_path / "a.graph.json.gz").hash == graph.hash


def test_times_follow_the_roofline():
    a100 = DEVICES["a100"]
    assert kernel_ns(a100, 0, "f32", 0) == a100.launch_ns
    assert kernel_ns(a100, 312 * 10**9, "bf16", 0) == a100.launch_ns + 1_666_667
    assert kernel_ns(a100, 1, "bf16", 2039 * 10**6) == a100.launch_ns + 1_250_000
    assert kernel_ns(a100, 10**9, "i64", 0) == kernel_ns(a100, 10**9, "f32", 0)
