"""HLO text through the command: every command that reads graphs, and what a plan says in the names of the instructions."""

import pytest
from conftest import SOURCE, lowtide

MODULE = SOURCE / "examples/transformer-jax.hlo.txt.gz"
LOOP = SOURCE / "tests/io/hlo/nested-loops.hlo.txt.gz"


def done(*arguments, code=0):
    run = lowtide(*arguments)
    assert run.code == code, run.err
    return run


def test_every_command_reads_a_module(tmp_path):
    plan = tmp_path / "plan.json"
    limits = ["--work", "20000"]
    done("plan", LOOP, "--budget", "100%", *limits, "-o", plan)
    done("verify", LOOP, plan)
    done("place", LOOP, plan)
    done("footprint", LOOP, plan)
    done("curve", LOOP, *limits)
    done("fit", LOOP, "--overhead", "10%", *limits)
    done("partition", LOOP)
    done("convert", LOOP, tmp_path / "loop.graph.json")
    done("convert", LOOP, tmp_path / "loop.dot")
    assert done("show", LOOP).out == done("show", tmp_path / "loop.graph.json").out


def test_a_plan_is_told_by_the_names_of_instructions(tmp_path):
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    done("plan", MODULE, "--budget", "70%", "--work", "50000", "-o", plan)
    lines = done("show", MODULE, plan, "--steps").out.splitlines()
    told = done("show", MODULE, plan, "--json", "--html", page).json()
    assert len(lines) == len(told["steps"])
    assert any("compute" in line and "multiply_tanh_fusion" in line for line in lines)
    over = next(step["step"] for step in told["steps"] if step["step"][1] == "wrapped_scatter")
    assert over[0] == "compute_in_place" and over[2].startswith("wrapped_broadcast")
    assert max(step["live"] for step in told["steps"]) == told["plan"]["peak"] <= 0.7 * told["unplanned"]["peak"]
    assert told["plan"]["peak"] <= told["plan"]["xla_total"]
    assert "wrapped_scatter" in page.read_text()


def test_what_counts_is_chosen(tmp_path):
    plain, held, fast = (done("show", MODULE, "--json", *flags).json()["unplanned"]
                         for flags in ([], ["--outputs-from-start"], ["--price-on", "h100"]))
    assert held["peak_in_place"] > plain["peak_in_place"] == fast["peak_in_place"]
    assert plain["peak_in_place"] <= plain["xla_total"] <= held["peak_in_place"]
    assert fast["duration"] < plain["duration"] == held["duration"]
    plan = tmp_path / "plan.json"
    flags = ["--price-on", "h100", "--outputs-from-start"]
    done("plan", MODULE, "--budget", "90%", "--work", "20000", "-o", plan, *flags)
    done("verify", MODULE, plan, *flags)
    assert "another graph" in done("verify", MODULE, plan, code=3).out


@pytest.mark.parametrize("flags", [["--outputs-from-start"], ["--price-on", "h100"]])
def test_choices_for_modules_are_refused_for_other_graphs(flags):
    graph = SOURCE / "examples/vit-train.graph.json.gz"
    assert "is no HLO text" in done("show", graph, *flags, code=2).err


def test_a_module_that_is_cut_off_is_refused_with_its_place(tmp_path):
    path = tmp_path / "cut.txt"
    path.write_text("HloModule m\n\nENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[2] add(x, ")
    assert done("show", path, code=2).err == (
        f"lowtide: {path}: line 5, column 21: instruction \"y\": expected the name of an operand\n")
