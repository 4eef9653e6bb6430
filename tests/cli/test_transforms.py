"""Plans that change the graph: asked for, verified, shown, applied."""

import json
from pathlib import Path

import pytest
from conftest import lowtide

SPLIT = {"kind": "split", "ops": [0, 1], "parts": 2, "axes": [{"tensor": 0, "dim": 0}], "exact": True,
         "prices": [[0, 6, 0], [1, 6, 0]], "joins": [[2, 1, 0]]}


@pytest.fixture
def graph(tmp_path):
    part = {"shape": [6, 4], "strides": [4, 1], "dtype": "f32"}
    ops = [
        {"name": f"relu{i}", "kind": "aten.relu", "inputs": [i], "outputs": [i + 1], "time": 10,
         "operands": [{"argument": "self", "tensor": i, **part}], "results": [{"tensor": i + 1, **part}]}
        for i in range(2)
    ]
    path = tmp_path / "relus.graph.json"
    path.write_text(json.dumps({"format": "lowtide-graph", "version": 1, "outputs": [2], "ops": ops,
                                "tensors": [{"bytes": 96, "shape": [6, 4], "dtype": "f32"}] * 3}))
    return path


@pytest.fixture
def transforms(tmp_path):
    path = tmp_path / "transforms.json"
    path.write_text(json.dumps([SPLIT]))
    return path


def test_plan_verify_show_apply(graph, transforms, tmp_path):
    plan = tmp_path / "split.plan.json"
    said = lowtide("plan", graph, "--budget", "100%", "--transform", transforms, "--work", "10000", "-o", plan, "--json")
    assert said.code == 0
    found = said.json()
    assert found["transforms"] == ["split of 2 ops into 2 parts"] and found["bound_scope"] == "graph"
    assert found["budget"] == 288 and found["base_duration"] == 20  # of the graph as it was
    assert found["duration"] == found["bound"] == 26
    written = json.loads(plan.read_text())
    assert written["transforms"] == [SPLIT] and "split" in written["techniques"]
    assert written["transform_hash"].startswith("sha256:") and written["claims"]["bound_scope"] == "graph"

    verified = lowtide("verify", graph, plan)
    assert verified.code == 0 and "split of 2 ops into 2 parts" in verified.out
    assert lowtide("verify", graph, plan, "--techniques", "default").code == 3
    page = tmp_path / "page.html"
    shown = lowtide("show", graph, plan, "--html", page)
    # What is proven is proven of the graph that they make.
    assert "No plan with these transforms and this budget takes less" in shown.out
    assert shown.code == 0 and "Transforms" in shown.out and '"stretches":[[0,0,0,' in page.read_text()

    out, ordinary = tmp_path / "out.graph.json", tmp_path / "out.plan.json"
    assert lowtide("apply", graph, plan, "-o", out, "--plan", ordinary).code == 0
    again = lowtide("verify", out, ordinary, "--json").json()
    assert (again["peak"], again["duration"], again["transforms"]) == (found["peak"], 26, [])
    # A plan file is a file with transforms, too.
    assert lowtide("plan", graph, "--budget", "288", "--transform", plan, "--work", "1000", "--start", plan).code == 0


def test_transforms_of_another_graph(graph, transforms, tmp_path):
    plan = tmp_path / "split.plan.json"
    assert lowtide("plan", graph, "--budget", "100%", "--transform", transforms, "--work", "100", "-o", plan).code == 0
    good = json.loads(plan.read_text())
    for key in ("graph_hash", "transform_hash"):
        plan.write_text(json.dumps(good | {key: "sha256:0"}))
        refused = lowtide("plan", graph, "--budget", "100%", "--transform", plan, "--work", "100")
        assert refused.code == 3 and "the transforms are for another graph" in refused.err
    plan.write_text(json.dumps(good | {"graph_hash": 7}))
    assert lowtide("plan", graph, "--budget", "100%", "--transform", plan, "--work", "100").code == 2


def test_infeasible_with_these_transforms(graph, transforms):
    asked = ("plan", graph, "--budget", "100", "--transform", transforms, "--work", "100")
    assert "infeasible: with these transforms no plan can need less than" in lowtide(*asked).out
    said = lowtide(*asked, "--json").json()
    assert said["status"] == "infeasible" and said["bound_scope"] == "graph"


def test_starts_with_transforms(graph, transforms, tmp_path):
    plan = tmp_path / "split.plan.json"
    assert lowtide("plan", graph, "--budget", "100%", "--transform", transforms, "--work", "100", "-o", plan).code == 0
    asked = ("plan", graph, "--budget", "100%", "--work", "1000", "--start", plan)
    assert lowtide(*asked, "--techniques", "default,split,hoist").code == 0  # they are looked for
    for more, words in (
        ((), "its transforms differ from those of --transform"),
        (("--techniques", "default,split,hoist", "--solver", "search"), "its transforms differ from those of --transform"),
        (("--techniques", "default,hoist"), "it has a split, which --techniques does not allow"),
    ):
        refused = lowtide(*asked, *more)
        assert refused.code == 2 and words in refused.err


def test_nothing_is_bounded_by_what_was_not_found(graph):
    said = lowtide("plan", graph, "--budget", "100", "--work", "1000", "--techniques", "default,split", "--json").json()
    assert said["status"] == "unknown" and said["bound"] is None and said["bound_scope"] == "techniques"
    assert said["floor"] <= 100


@pytest.mark.parametrize("changed, code, words", [
    ({"parts": 4}, 3, 'dimension 0 of tensor 0 has 6 slices, which do not go into 4 parts of two or more'),
    ({"ops": [0, 5], "prices": [[0, 6, 0], [5, 6, 0]]}, 3, "there is no op 5"),
    ({"joins": []}, 2, "the price of tensor 2, which is needed outside, is missing"),
    ({"prices": [[0, 6, 0]]}, 2, "/0/prices: the price of op 1 is missing"),
    ({"kind": "fuse"}, 2, 'unknown transform "fuse"'),
])
def test_refused(graph, transforms, tmp_path, changed, code, words):
    transforms.write_text(json.dumps([SPLIT | changed]))
    refused = lowtide("plan", graph, "--budget", "100%", "--transform", transforms, "--work", "100")
    assert refused.code == code and words in refused.err
    if code == 2 and "kind" in changed:
        return
    plan = tmp_path / "good.plan.json"
    transforms.write_text(json.dumps([SPLIT]))
    lowtide("plan", graph, "--budget", "100%", "--transform", transforms, "--work", "100", "-o", plan)
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"transforms": [SPLIT | changed]}))
    for command in (("verify",), ("show",), ("apply", "-o", tmp_path / "x.json")):
        done = lowtide(command[0], graph, plan, *command[1:])
        assert done.code == code and words in done.out + done.err
    assert not (tmp_path / "x.json").exists()


def test_substitutions_are_listed_planned_and_verified(tmp_path):
    graph = Path(__file__).parents[1] / "fuzz" / "seeds" / "substitutions.graph.json"
    listed = lowtide("regions", graph, "--json").json()["substitutions"]
    assert len({one["rule"] for one in listed}) == len(listed) == 7
    assert "other_side" in lowtide("regions", graph).out

    plan = tmp_path / "rules.plan.json"
    said = lowtide("plan", graph, "--budget", "100%", "--techniques", "default,substitute", "--work", "50000", "-o", plan,
                   "--json").json()
    assert said["duration"] < said["base_duration"] and said["transforms"][0].startswith("substitutions: ")
    assert lowtide("verify", graph, plan).code == 0
    assert lowtide("verify", graph, plan, "--techniques", "default").code == 3

    written = json.loads(plan.read_text())
    written["transforms"][0]["exact"] = True
    plan.write_text(json.dumps(written))
    refused = lowtide("verify", graph, plan)
    assert refused.code == 3 and "may change bits" in refused.out + refused.err
