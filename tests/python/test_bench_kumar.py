"""bench/papers/tf1: graphs that can be planned, and are of the size that Table 1 of Kumar et al. says."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
from package_support import ROOT, command

sys.path.append(str(ROOT / "bench" / "papers"))

import tf1

# Nodes, edges, and the width that minimum fill finds.
TABLE_1 = {"resnet": (tf1.resnet, 200, 17705, 27312, 11), "ffn": (tf1.ffn, 100, 3217, 4447, 6),
           "transformer": (tf1.transformer, "base", 15842, 21771, 18)}


def near(found, published):
    return abs(found / published - 1) < 0.2


@pytest.mark.parametrize("name", TABLE_1)
def test_sizes_are_those_of_table_1(name, tmp_path):
    build, size, nodes, edges, width = TABLE_1[name]
    graph = build(size)
    graph.write(tmp_path / "graph.json")
    done = command("plan", tmp_path / "graph.json", "--solver", "twremat", "--budget", "1000%", "--option", "filter=off",
                   "--option", "decomposition=min_fill", "--option", "limit=1000000", "--option", "separators=unit")
    assert done.returncode == 0, done.stderr
    assert near(len(graph.ops), nodes) and near(graph.edges(), edges)
    assert near(int(re.search(r"width (\d+)", done.stdout)[1]), width)


@pytest.mark.parametrize("build, size", [(tf1.resnet, 18), (tf1.ffn, 3), (tf1.transformer, "base")])
def test_every_variable_is_updated_once(build, size):
    graph = build(size)
    updates = [op for op in graph.ops if op["name"].startswith(("Apply", "ScatterSub"))]
    assert {op["inputs"][0] for op in updates} == {handle for handle, _ in graph.variables}
    assert len(updates) == len(graph.variables)
    assert {tensor for op in updates for tensor in op["outputs"]} <= set(graph.outputs)


def test_gradients_have_the_shapes_of_their_variables():
    graph = tf1.resnet(50)
    maker = {tensor: op for op in graph.ops for tensor in op["outputs"]}
    shapes = {handle: graph.shapes[read] for handle, read in graph.variables}
    for op in graph.ops:
        if op["name"].startswith("ApplyMomentum"):
            handle, _, _, gradient, _ = op["inputs"]
            assert graph.shapes[gradient] == shapes[handle], maker[gradient]["name"]


def test_a_graph_is_the_same_each_time(tmp_path):
    for name in ("one", "other"):
        tf1.ffn(4).write(tmp_path / name)
    assert json.loads((tmp_path / "one").read_text()) == json.loads((tmp_path / "other").read_text())


def test_the_report_says_what_was_reached():
    pytest.importorskip("matplotlib")
    import kumar_report

    def measured(static, length):
        return SimpleNamespace(static=static, live=static, length=length)

    found = {"NoRemat": measured(3480, 1), "TWRemat": measured(1100, 9), "twremat, the paper's reduction": None,
             "auto, the paper's reduction": measured(1000, 1.1)}
    missed, none, reached = kumar_report.on_table_2({"Transformer base": found}).splitlines()
    assert "3.16 times" in missed and missed.endswith(": not reached, not shorter.")
    assert none.endswith("no plan with 3.48 times less.")
    assert reached.endswith(": reached, shorter.")
    assert kumar_report.static(measured(2**30, 1)) == "1.00"
    assert kumar_report.static(SimpleNamespace(static=2**30, live=2**30 * 0.99)) == "1.00 (1.00 %)"
