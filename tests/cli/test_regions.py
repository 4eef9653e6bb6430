"""`lowtide regions`: what could be split; and plans for which `auto` looks for transforms itself."""

import gzip
import json

import pytest
from conftest import SOURCE, lowtide

GPT2 = SOURCE / "examples" / "gpt2-train.graph.json.gz"


def test_regions_of_a_network():
    found = lowtide("regions", GPT2, "--json").json()
    assert found["hoisted"] and found["graph"].startswith("GPT-2")
    regions = found["regions"]
    assert [r["own_peak"] for r in regions] == sorted(r["own_peak"] for r in regions)
    assert all(r["saved"] == found["own_peak"] - r["own_peak"] > 0 and r["parts"] >= 2 for r in regions)
    graph = json.load(gzip.open(GPT2))
    whole = next(r for r in regions if r["what"] == "whole graph")
    assert whole["own_peak"] < 0.4 * found["own_peak"] and len(whole["ops"]) > 0.8 * len(graph["ops"])
    assert all(0 <= a["tensor"] and 0 <= a["dim"] for r in regions for a in r["axes"])
    head = [r for r in regions if r["what"] == "head"]
    assert head and min(r["overhead_percent"] for r in head) < 5
    other = lowtide("regions", GPT2, "--no-hoist", "--json").json()
    assert not other["hoisted"] and {r["what"] for r in other["regions"]}
    # Parts are slower on a device that is started more slowly.
    dearer = lowtide("regions", GPT2, "--device", "h100", "--json")
    assert dearer.code == 0 and dearer.json()["regions"][0]["overhead_percent"] != regions[0]["overhead_percent"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_table_fits(columns):
    said = lowtide("regions", GPT2, "--most", "5", env={"COLUMNS": str(columns)})
    assert said.code == 0 and "hoist of the backward" in said.out
    assert all(len(line) <= columns for line in said.out.splitlines())
    assert sum(" %  " in line or line.endswith(" %") for line in said.out.splitlines()) == 5
    assert "more; --most" in said.out


def test_ascii(monkeypatch):
    said = lowtide("regions", GPT2, env={"LC_ALL": "C", "LANG": "C"})
    assert said.out.isascii()


def test_nothing_to_split(chain, tmp_path):
    said = lowtide("regions", chain)
    assert said.code == 0 and "no region lowers it" in said.out
    empty = tmp_path / "empty.graph.json"
    empty.write_text(json.dumps({"format": "lowtide-graph", "version": 1, "tensors": [], "ops": [], "outputs": []}))
    assert lowtide("regions", empty, "--json").json()["regions"] == []


@pytest.mark.parametrize("arguments, words", [
    (["--device", "abacus"], "abacus"),
    (["--most", "-1"], "--most"),
    (["--most", "some"], "--most"),
])
def test_bad_flags(arguments, words):
    said = lowtide("regions", GPT2, *arguments)
    assert said.code == 2 and words in said.err and not said.out


def test_bad_files(tmp_path):
    assert lowtide("regions", tmp_path / "none.json").code == 2
    broken = tmp_path / "broken.graph.json"
    broken.write_text('{"format": "lowtide-graph"')
    assert lowtide("regions", broken).code == 2


def test_a_region_is_picked_for_a_plan(tmp_path):
    listed = lowtide("regions", GPT2, "--json").json()["regions"]
    assert [r["number"] for r in listed] == list(range(1, len(listed) + 1))
    one, output = next(r for r in listed if r["what"] == "head"), tmp_path / "head.json"
    said = lowtide("regions", GPT2, "--pick", str(one["number"]), "-o", output)
    assert said.code == 0 and "Regions that may run in parts" in said.out
    hoist, split = json.loads(output.read_text())["transforms"]
    assert hoist["kind"] == "hoist" and split["parts"] == one["parts"] and split["ops"] == one["ops"]
    plan = lowtide("plan", GPT2, "--budget", "80%", "--transform", output, "--work", "20000", "--json").json()
    assert plan["status"] in ("feasible", "optimal") and plan["transforms"][1].endswith(f"into {one['parts']} parts")
    # It is of that graph alone, and standard output takes it too.
    assert lowtide("regions", GPT2, "--pick", "1", "-o", "-").json()["graph_hash"].startswith("sha256:")
    other = SOURCE / "examples" / "unet-train.graph.json.gz"
    assert lowtide("plan", other, "--budget", "80%", "--transform", output, "--work", "100").code == 3


@pytest.mark.parametrize("arguments, words", [
    (["--pick", "2"], "--pick N and -o FILE go together"),
    (["-o", "x.json"], "--pick N and -o FILE go together"),
    (["--pick", "100000", "-o", "x.json"], "there are"),
    (["--pick", "0", "-o", "x.json"], "--pick"),
    (["--pick", "1", "--json", "-o", "-"], "standard output is taken"),
])
def test_bad_picks(arguments, words):
    said = lowtide("regions", GPT2, *arguments)
    assert said.code == 2 and words in said.err and not said.out


def test_auto_finds_transforms(tmp_path):
    plan = tmp_path / "plan.json"
    limits = ("--budget", "40%", "--work", "600000", "--threads", "1")
    without = lowtide("plan", GPT2, *limits, "--json")
    assert without.code == 1 and without.json()["transform_effects"] == []
    found = lowtide("plan", GPT2, *limits, "--techniques", "all", "--json", "-o", plan).json()
    assert found["status"] in ("feasible", "optimal") and found["overhead_percent"] < 10
    assert found["transforms"][0] == "hoist of the backward into the forward"
    assert found["transforms"][1].startswith("split of ")
    assert [e["transform"] for e in found["transform_effects"]] == found["transforms"]
    split = found["transform_effects"][1]
    assert split["own_peak"] < split["own_peak_before"] and split["added_time"] > 0
    assert found["bound_scope"] == "graph" and found["bound"] <= found["duration"]
    assert lowtide("verify", GPT2, plan).code == 0
    said = lowtide("plan", GPT2, *limits, "--techniques", "all")
    assert "baseline peak" in said.out and "with these transforms" in said.out
    page = tmp_path / "page.html"
    assert lowtide("show", GPT2, plan, "--html", page).code == 0 and "split of " in page.read_text()


def test_a_bound_without_transforms_says_so():
    said = lowtide("plan", GPT2, "--budget", "95%", "--work", "200000", "--techniques", "all")
    assert said.code == 0 and "without transforms" in said.out


def test_curve_and_fit_find_them_too(tmp_path):
    limits = ("--techniques", "all", "--work", "1500000", "--threads", "2", "--json")
    curve = lowtide("curve", GPT2, "--from", "40%", "--points", "3", *limits).json()
    assert all(point["status"] in ("feasible", "optimal") for point in curve["points"])
    fit = lowtide("fit", GPT2, "--overhead", "10%", "-o", tmp_path / "fit.json", *limits).json()
    assert fit["peak"] < 0.45 * fit["own_peak"]
    assert any(t["kind"] == "split" for t in json.loads((tmp_path / "fit.json").read_text())["transforms"])
