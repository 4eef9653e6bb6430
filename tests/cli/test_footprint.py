"""footprint: what a plan reserves under the allocator's model."""

import json
import re

import pytest
from conftest import lowtide

MIB = 1 << 20


@pytest.fixture
def growing(tmp_path):
    """A chain whose tensors grow, so that no freed segment serves the next."""
    sizes = [12, 14, 16, 18, 20]
    path = tmp_path / "growing.graph.json"
    path.write_text(json.dumps({
        "format": "lowtide-graph", "version": 1, "name": "growing", "tick": "us",
        "tensors": [{"bytes": size * MIB} for size in sizes],
        "ops": [{"inputs": [at], "outputs": [at + 1], "time": 1} for at in range(4)], "outputs": [4]}))
    return path


def test_the_unplanned_step(growing):
    done = lowtide("footprint", growing)
    assert done.code == 0, done.err
    assert "reserved   80.0 MiB" in done.out and "expandable_segments:True  saves 20.0 MiB" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_plan_and_its_json(growing, tmp_path):
    plan = tmp_path / "growing.plan.json"
    assert lowtide("plan", growing, "--budget", "100%", "-o", plan).code == 0
    done = lowtide("footprint", growing, plan, "--steps", 2, "--allocator", "expandable_segments:True", "--json")
    found = done.json()
    assert done.code == 0 and len(found["steps"]) == 2
    assert found["allocator"] == "expandable_segments:True" and found["memory"] is None and found["out_of_memory"] is None
    assert found["live"] == found["peaks"]["allocated"] == 50 * MIB and found["peaks"]["reserved"] == 60 * MIB
    assert found["better"] == [] and found["retries"] == 0


def test_memory(growing):
    tight = lowtide("footprint", growing, "--memory", "60MiB", "--json")
    assert tight.code == 0 and tight.json()["retries"] > 0
    lost = lowtide("footprint", growing, "--memory", "40MiB", "--json")
    assert lost.code == 1 and lost.json()["out_of_memory"]["reserved"] <= 40 * MIB
    assert "no memory" in lowtide("footprint", growing, "--memory", "40MiB").out


@pytest.mark.parametrize("flags, parts", [
    (["--allocator", "max_split_size_mb:3"], ["--allocator", "max_split_size_mb", "at least 20"]),
    (["--allocator", "backend:cudaMallocAsync"], ["not modelled"]),
    (["--allocator", "per_process_memory_fraction:0.5"], ["per_process_memory_fraction"]),
    (["--memory", "lots"], ["--memory", "lots"]),
    (["--steps", "0"], ["--steps"]),
])
def test_bad_flags(growing, flags, parts):
    done = lowtide("footprint", growing, *flags)
    assert done.code == 2 and all(part in done.err for part in parts), done.err


def test_a_plan_that_does_not_hold(growing, tmp_path):
    plan = tmp_path / "growing.plan.json"
    assert lowtide("plan", growing, "--budget", "100%", "-o", plan).code == 0
    changed = json.loads(plan.read_text())
    changed["steps"].pop(0)
    plan.write_text(json.dumps(changed))
    done = lowtide("footprint", growing, plan)
    assert done.code == 3 and str(plan) in done.err and done.out == ""


@pytest.mark.parametrize("allocator", ["", "expandable_segments:True"])
def test_a_budget_of_what_is_reserved(resnet, tmp_path, allocator):
    plan = tmp_path / "reserved.plan.json"
    done = lowtide("plan", resnet, "--budget", "70%", "--footprint", "reserved", "--allocator", allocator, "--work", 400_000, "-o", plan,
                   "--json")
    found = done.json()
    assert done.code == 0 and found["footprint"] == "reserved" and found["peak"] < found["reserved"] <= found["budget"]
    written = json.loads(plan.read_text())
    assert written["footprint"] == "reserved" and written.get("allocator", "") == allocator
    assert written["claims"]["reserved"] == found["reserved"]
    verified = lowtide("verify", resnet, plan, "--json")
    assert verified.code == 0 and verified.json()["reserved"] == found["reserved"]
    replayed = lowtide("footprint", resnet, plan, "--allocator", allocator, "--json").json()
    assert replayed["peaks"]["reserved"] == found["reserved"]

    written["claims"]["reserved"] -= 512
    plan.write_text(json.dumps(written))
    refused = lowtide("verify", resnet, plan)
    assert refused.code == 3 and "reserved" in refused.out


def test_a_budget_of_the_arena(resnet, tmp_path):
    plan = tmp_path / "arena.plan.json"
    done = lowtide("plan", resnet, "--budget", "70%", "--footprint", "arena", "--work", 400_000, "-o", plan, "--json")
    found = done.json()
    assert done.code == 0 and found["peak"] <= found["arena"] <= found["budget"] and found["reserved"] is None
    written = json.loads(plan.read_text())
    assert written["claims"]["arena"] == found["arena"] and written["offsets"]
    assert lowtide("verify", resnet, plan).code == 0


@pytest.mark.parametrize("flags, part", [(["--allocator", "expandable_segments:True"], "--footprint reserved"),
                                         (["--footprint", "reserved", "--allocator", "expandable_segments:1"], "True or False"),
                                         (["--footprint", "most"], "most")])
def test_bad_footprints(growing, flags, part):
    done = lowtide("plan", growing, "--budget", "100%", *flags)
    assert done.code == 2 and part in done.err


def test_show_says_what_is_reserved(growing, resnet, tmp_path):
    plan, page = tmp_path / "reserved.plan.json", tmp_path / "page.html"
    unplanned = lowtide("show", growing)
    assert "reserves" not in unplanned.out
    said = lowtide("show", growing, "--allocator", "", "--html", page)
    assert said.code == 0
    found = lowtide("footprint", growing, "--json").json()
    assert "PyTorch's allocator reserves" in said.out and "allocated" in said.out
    if found["better"]:
        assert f"{found['better'][0]['allocator']} saves" in said.out
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page.read_text(), re.S).group(1))
    assert data["reserved"]["bytes"] == found["peaks"]["reserved"] and data["reserved"]["text"] in said.out.replace("\n", " ")

    # A file that claims reserved bytes is shown by its own settings, and its budget limits them.
    assert lowtide("plan", resnet, "--budget", "80%", "--footprint", "reserved", "--allocator", "expandable_segments:True",
                   "--work", 200_000, "-o", plan).code == 0
    shown = lowtide("show", resnet, plan).out
    assert "(expandable_segments:True) reserves" in shown and ", reserved: the plan keeps it" in shown
    refused = lowtide("show", growing, "--allocator", "expandable_segments:1")
    assert refused.code == 2 and "--allocator" in refused.err and refused.out == ""
    written = json.loads(plan.read_text())
    written["allocator"] = "expandable_segments:1"
    plan.write_text(json.dumps(written))
    assert lowtide("show", resnet, plan).code == 2
