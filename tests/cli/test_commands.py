"""verify, show, solvers, generate, convert, completion, help."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import BINARY, SOURCE, lowtide

COMMANDS = ("demo", "plan", "curve", "fit", "sweep", "verify", "place", "show", "snapshot", "footprint", "apply", "dimensions", "regions", "solvers", "devices",
            "generate", "convert", "completion")


@pytest.fixture
def planned(chain, tmp_path):
    path = tmp_path / "chain.plan.json"
    assert lowtide("plan", chain, "--budget", "100%", "-o", path).code == 0
    return path


def change(path, **fields):
    plan = json.loads(path.read_text())
    plan.update(fields)
    path.write_text(json.dumps(plan))
    return path


def test_verify_refuses_a_changed_step(chain, planned):
    steps = json.loads(planned.read_text())["steps"]
    done = lowtide("verify", chain, change(planned, steps=steps[1:]))
    assert done.code == 3 and "not verified" in done.out


def test_verify_refuses_false_claims(chain, planned):
    claims = json.loads(planned.read_text())["claims"]
    assert lowtide("verify", chain, change(planned, claims={**claims, "peak": claims["peak"] - 1})).code == 3
    assert lowtide("verify", chain, change(planned, claims={**claims, "duration": 1})).code == 3
    assert lowtide("verify", chain, change(planned, claims=claims)).code == 0


def test_verify_refuses_a_plan_for_another_graph(resnet, planned):
    done = lowtide("verify", resnet, planned, "--json")
    assert done.code == 3 and not done.json()["ok"] and "another graph" in done.json()["reason"]


def test_verify_tells_no_plan_from_a_plan_without_steps(tmp_path):
    graph, plan = tmp_path / "none.graph.json", tmp_path / "none.plan.json"
    graph.write_text(json.dumps({"format": "lowtide-graph", "version": 1, "ops": [], "outputs": [],
                                 "tensors": [{"bytes": 5}]}))
    for budget, code in (("5", 0), ("4", 1)):
        assert lowtide("plan", graph, "--budget", budget, "-o", plan).code == code
        assert lowtide("verify", graph, plan).code == code
        assert lowtide("verify", graph, plan, "--json").json()["peak"] == (5 if code == 0 else None)


def test_verify_refuses_bad_input(chain, planned):
    assert lowtide("verify", chain, chain).code == 2
    assert lowtide("verify", planned, planned).code == 2
    assert lowtide("verify", chain).code == 2


def test_verify_refuses_unknown_transforms(chain, planned):
    done = lowtide("verify", chain, change(planned, transforms=[{"kind": "telepathy"}]))
    assert done.code == 2 and "telepathy" in done.err


@pytest.mark.parametrize("width", [40, 80, 132])
def test_show_fits_the_window(resnet, tmp_path, width):
    plan = tmp_path / "p.plan.json"
    lowtide("plan", resnet, "--budget", "60%", "--time", 1, "-o", plan)
    for arguments in ([resnet], [resnet, plan]):
        done = lowtide("show", *arguments, env={"COLUMNS": str(width), "LC_ALL": "C.UTF-8"})
        assert done.code == 0 and done.err == ""
        assert max(map(len, done.out.splitlines())) <= width
        assert "GiB" in done.out


def test_show_speaks_ascii_where_the_locale_does(resnet):
    done = lowtide("show", resnet, env={"LC_ALL": "C", "LANG": "C"})
    assert done.code == 0 and done.out.isascii()


def test_show_says_which_layers_repeat():
    out = lowtide("show", SOURCE / "examples" / "gpt2-train.graph.json.gz", env={"COLUMNS": "100"}).out
    table = out.split("Blocks that repeat\n")[1].splitlines()
    assert re.match(r" +times +ops each +of all ops +of the time +phase +where$", table[0])
    assert [(row.split()[0], row.split()[-2:]) for row in table[1:3]] == [
        ("12", ["backward", "transformer.h.*"]), ("12", ["forward", "transformer.h.*"])]


def test_show_writes_one_page(resnet, tmp_path):
    plan, page = tmp_path / "p.plan.json", tmp_path / "p.html"
    lowtide("plan", resnet, "--budget", "60%", "--time", 1, "-o", plan)
    assert lowtide("show", resnet, plan, "--html", page).code == 0
    text = page.read_text()
    assert text.lstrip().lower().startswith("<!doctype html>") and "</html>" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text), "the page asks for the network"
    assert "layer" in text


def test_show_refuses_a_plan_for_another_graph(resnet, planned):
    done = lowtide("show", resnet, planned)
    assert done.code == 3 and "another graph" in done.err


def test_solvers():
    listed = lowtide("solvers", "--json").json()
    assert {"given", "order", "greedy", "evict", "sqrt", "auto"} <= {row["name"] for row in listed}
    for row in listed:
        assert row["summary"] and row["available"] is (row["needs"] is None)
        assert row["available"] or row["name"] in ("moccasin", "checkmate")
    traits = {row["name"]: row["traits"] for row in listed}
    assert traits["greedy"] == [] and traits["evict"] == ["constructive"] and traits["auto"] == ["transfers", "portfolio"]
    assert traits["checkmate"] == ["proving", "external"]
    text = lowtide("solvers").out
    assert "anytime, external" in text and max(map(len, text.split("\n\n")[0].splitlines())) <= 80
    assert "CP-SAT" in text and "HiGHS" in text
    assert all(row["name"] in text for row in listed)
    assert "--option score" in lowtide("solvers", "--options").out


@pytest.mark.parametrize("kind", ["layered", "chain", "resnet", "unet", "transformer"])
def test_generate(tmp_path, kind):
    first, second, other = (tmp_path / f"{n}.graph.json" for n in "abc")
    for path, seed in ((first, 5), (second, 5), (other, 6)):
        assert lowtide("generate", kind, "--ops", 500, "--seed", seed, "-o", path).code == 0
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()
    assert abs(len(json.loads(first.read_text())["ops"]) - 500) < 60
    done = lowtide("plan", first, "--budget", "90%", "--time", 1, "--json")
    assert done.code in (0, 1), done.err


def test_generate_says_what_it_made(tmp_path):
    path = tmp_path / "g.graph.json"
    said = lowtide("generate", "transformer", "--ops", 5000, "-o", path).out
    made = len(json.loads(path.read_text())["ops"])
    assert made != 5000 and f"{made:,} ops (5,000 were asked for)" in said
    printed = lowtide("generate", "transformer", "--ops", 5000)
    assert len(json.loads(printed.out)["ops"]) == made and "5,000 were asked for" in printed.err
    assert "asked" not in lowtide("generate", "transformer", "--ops", made, "-o", path).out


def test_generate_refuses():
    assert lowtide("generate", "gan", "--ops", 10).code == 2
    assert lowtide("generate", "chain", "--ops", 0).code == 2
    assert lowtide("generate", "chain", "--ops", 10, "--width", 0.3).code == 2


def test_convert_round_trip(chain, tmp_path):
    again = tmp_path / "again.graph.json.gz"
    assert lowtide("convert", chain, again).code == 0
    assert lowtide("convert", again).out == lowtide("convert", chain).out
    dot = lowtide("convert", chain, "--format", "dot").out
    assert dot.startswith("digraph") and dot.rstrip().endswith("}")
    done = lowtide("convert", chain, tmp_path / "chain.png")
    assert done.code == 2 and "chain.png" in done.err


def test_node_link_graphs_are_read_by_content(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({
        "directed": True, "multigraph": False, "graph": {},
        "nodes": [{"id": 0, "name": "a", "cost_cpu": 3, "cost_ram": 5}, {"id": 1, "name": "b", "cost_cpu": 1, "cost_ram": 2}],
        "links": [{"source": 0, "target": 1}],
    }))
    said = lowtide("plan", path, "--budget", "7", "--json").json()
    assert said["status"] == "optimal" and said["duration"] == 4


SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.mark.parametrize("shell", SHELLS)
def test_completion(shell, tmp_path):
    done = lowtide("completion", shell)
    assert done.code == 0
    for word in ("plan", "verify", "budget", "evict", "transformer", "curve", "overhead"):
        assert word in done.out
    if shutil.which(shell):
        script = tmp_path / "completion"
        script.write_text(done.out)
        subprocess.run([*SHELLS[shell], script], check=True)


def test_bash_completion_completes(tmp_path):
    script = tmp_path / "completion"
    script.write_text(lowtide("completion", "bash").out)
    ask = (f'source {script}; COMP_WORDS=(lowtide "$@"); COMP_CWORD=$#; _lowtide; printf "%s\\n" "${{COMPREPLY[@]}}"')

    def complete(*words):
        return subprocess.run(["bash", "-c", ask, "-", *words], capture_output=True, text=True).stdout.split()

    assert complete("pl") == ["plan", "place"]
    assert "--budget" in complete("plan", "--b")
    assert complete("plan", "--order", "g") == ["given"]
    assert "evict" in complete("plan", "--solver", "")


def test_help_and_version():
    done = lowtide("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert command in done.out
        assert lowtide(command, "--help").code == 0
    assert re.fullmatch(r"lowtide \d+\.\d+\.\d+\n", lowtide("--version").out)


def test_documentation_names_every_command_and_flag():
    page = (SOURCE / "docs/reference/command.md").read_text()
    for command in COMMANDS:
        assert f"`{command}" in page
    for command in ("demo", "plan", "curve", "fit"):
        for flag in re.findall(r"--[a-z]+", lowtide(command, "--help").out):
            assert flag in page or flag == "--help"


def test_usage_errors():
    for arguments in ([], ["dance"], ["plan"], ["--nonsense"]):
        done = lowtide(*arguments)
        assert done.code == 2 and done.out == "" and "lowtide" in done.err


def test_documentation_lists_every_solver_and_option():
    """The page holds the command's own words; write it anew with what the message says."""
    page = (SOURCE / "docs/reference/solvers.md").read_text()
    listed = lowtide("solvers", "--options").out
    assert f"```\n{listed}```\n" in page, f"docs/reference/solvers.md must hold this:\n{listed}"


@pytest.mark.parametrize("flag, value", [("--time", "nan"), ("--time", "-1"), ("--time", "1e400"), ("--time", "soon"),
                                         ("--work", "99999999999999999999"), ("--work", "-1"), ("--seed", "-1"),
                                         ("--work", "1.5")])
def test_limits_that_are_none(chain, flag, value):
    done = lowtide("plan", chain, "--budget", "100%", flag, value)
    assert done.code == 2 and flag in done.err and f"'{value}'" in done.err
    assert len(done.err) < 200


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_standard_output(chain):
    with open("/dev/full", "w") as full:
        run = subprocess.run([BINARY, "plan", chain, "--budget", "100%", "--json"], stdout=full,
                             stderr=subprocess.PIPE, text=True, timeout=600)
    assert run.returncode == 2 and "standard output" in run.stderr
