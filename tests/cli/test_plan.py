"""`lowtide plan`: exit status, JSON, files, limits."""

import gzip
import json
import re

import pytest
from conftest import lowtide

KEYS = ["status", "solver", "order", "seed", "budget", "peak", "duration", "base_duration", "overhead_percent",
        "bound", "gap_percent", "time_s", "plan_file", "history"]


def test_a_plan_within_the_budget(resnet, tmp_path):
    plan = tmp_path / "p.plan.json"
    done = lowtide("plan", resnet, "--budget", "60%", "--time", 2, "-o", plan, "--json")
    assert done.code == 0, done.err
    said = done.json()
    assert [key for key in KEYS if key not in said] == []
    assert said["status"] in ("optimal", "feasible") and said["peak"] <= said["budget"]
    assert said["duration"] >= said["bound"] >= said["base_duration"] > 0
    assert said["overhead_percent"] == pytest.approx(100 * (said["duration"] / said["base_duration"] - 1))
    assert said["plan_file"] == str(plan)
    durations = [step["duration"] for step in said["history"]]
    assert durations == sorted(durations, reverse=True) and durations[-1] == said["duration"]
    checked = lowtide("verify", resnet, plan, "--json")
    assert checked.code == 0
    assert (checked.json()["peak"], checked.json()["duration"]) == (said["peak"], said["duration"])


def test_text_says_what_matters(resnet):
    done = lowtide("plan", resnet, "--budget", "60%", "--time", 1)
    assert done.code == 0 and done.err == ""
    for word in ("budget", "status", "peak", "overhead", "bound", "gap", "solver", "time"):
        assert word in done.out
    assert "\x1b" not in done.out and max(map(len, done.out.splitlines())) <= 120


@pytest.mark.parametrize(
    "budget, bytes_",
    # Own peak: a, b and x (24 bytes) while X runs.
    [("25", 25), ("1KiB", 1024), ("2 kB", 2000), ("100%", 24), ("99.9%", 23), ("act:50%", 12), ("act:100%", 24)],
)
def test_budgets(chain, budget, bytes_):
    said = lowtide("plan", chain, "--budget", budget, "--json").json()
    assert said["budget"] == bytes_


def test_optimal_when_nothing_need_be_recomputed(chain):
    done = lowtide("plan", chain, "--budget", "100%", "--json")
    assert done.code == 0 and done.json()["status"] == "optimal" and done.json()["gap_percent"] == 0


def test_infeasible_is_proven_and_written(chain, tmp_path):
    plan = tmp_path / "none.plan.json"
    done = lowtide("plan", chain, "--budget", "17", "-o", plan, "--json")
    said = done.json()
    assert done.code == 1 and said["status"] == "infeasible"
    assert said["peak"] is None and said["duration"] is None and said["smallest_peak"] >= said["floor"] == 18
    written = json.loads(plan.read_text())
    assert written["steps"] == [] and written["claims"]["status"] == "infeasible"
    assert lowtide("verify", chain, plan).code == 1


def test_where_a_budget_is_refuted_nothing_is_called_the_smallest_found(resnet):
    text = lowtide("plan", resnet, "--budget", "1%").out
    assert "infeasible" in text and "is the smallest peak seen; lowtide curve looks for smaller ones" in text
    assert "was the smallest peak found" in lowtide("plan", resnet, "--budget", "14%", "--work", 1_000_000).out


def test_unknown_names_the_smallest_peak(resnet):
    done = lowtide("plan", resnet, "--budget", "60%", "--solver", "given", "--json")
    said = done.json()
    assert done.code == 1 and said["status"] == "unknown" and said["smallest_peak"] > said["budget"]
    text = lowtide("plan", resnet, "--budget", "60%", "--solver", "given").out
    assert "unknown" in text and "smallest" in text


def test_unsupported_says_why(resnet):
    done = lowtide("plan", resnet, "--budget", "60%", "--solver", "order", "--order", "given", "--json")
    assert done.code == 1 and done.json()["status"] == "unsupported" and "order" in done.json()["reason"]


@pytest.mark.parametrize("solver", [s["name"] for s in lowtide("solvers", "--json").json()])
def test_same_seed_same_plan(resnet, tmp_path, solver):
    plans = []
    for turn in range(2):
        path = tmp_path / f"{turn}.plan.json"
        lowtide("plan", resnet, "--budget", "70%", "--solver", solver, "--work", 60000, "--seed", 3,
                "--threads", 1 + turn, "-o", path)
        written = json.loads(path.read_text())
        plans.append((written["steps"], written["claims"]))
    assert plans[0] == plans[1]


def test_the_same_work_gives_the_same_file(resnet, tmp_path):
    first, second = tmp_path / "1.plan.json", tmp_path / "2.plan.json"
    for path, threads in ((first, 1), (second, 2)):
        assert lowtide("plan", resnet, "--budget", "50%", "--work", 1_000_000, "--threads", threads, "-o", path).code == 0
    assert first.read_bytes() == second.read_bytes() and b'"history"' in first.read_bytes()
    lowtide("plan", resnet, "--budget", "50%", "--work", 1_000_000, "--time", 100, "-o", first)
    assert "seconds" in json.loads(first.read_text())["found_by"]["history"][0]


def test_time_work_and_gain_of_each_subsolver_of_auto(resnet, tmp_path):
    path = tmp_path / "p.plan.json"
    asked = ("plan", resnet, "--budget", "50%", "--work", 2_000_000, "-o", path)
    said = lowtide(*asked, "--json").json()
    parts = {part["name"]: part for part in said["parts"]}
    assert parts[said["found_by"]]["plans"] > 0 and parts["search"]["work"] > 0 and parts["search"]["time"] > 0
    assert sum(part["plans"] for part in said["parts"]) == len(said["history"])
    durations = [entry["duration"] for entry in said["history"]]
    assert sum(part["won"] for part in said["parts"]) == durations[0] - durations[-1]
    assert sum(part["bound"] for part in said["parts"]) == said["bound"] - said["base_duration"]
    assert sum(part["work"] for part in said["parts"]) <= 2_100_000
    # The file has the same, without the seconds of a run that repeats.
    written = json.loads(path.read_text())["found_by"]["parts"]
    assert written == [{key: value for key, value in part.items() if key != "time"} for part in said["parts"]]
    text = lowtide(*asked).out
    assert re.search(r"^ +search +\d+\.\d{3} ", text, re.MULTILINE)
    page = tmp_path / "p.html"
    shown = lowtide("show", resnet, path, "--html", page).out
    assert re.search(r"^Found by\n +solver +work +plans", shown, re.MULTILINE) and '"name":"search"' in page.read_text()
    alone = lowtide("plan", resnet, "--budget", "50%", "--solver", "greedy", "--json").json()
    assert alone["parts"] == []


def test_lines_fit_and_counts_are_readable(resnet, tmp_path):
    narrow = lowtide("plan", resnet, "--budget", "60%", "--time", 1, env={"COLUMNS": "50"}).out
    assert len(narrow.splitlines()[0]) <= 50 and re.search(r"\(\d,\d{3},\d{3},\d{3} bytes\)", narrow)
    unnamed = tmp_path / "mine.graph.json"
    unnamed.write_text(json.dumps({
        "format": "lowtide-graph", "version": 1, "tensors": [{"bytes": 4}],
        "ops": [{"inputs": [], "outputs": [0], "time": 1}], "outputs": [0]}))
    for arguments in (["plan", unnamed, "--budget", "100%"], ["curve", unnamed], ["fit", unnamed, "--overhead", "5%"],
                      ["show", unnamed]):
        assert "mine.graph.json" in lowtide(*arguments).out.splitlines()[0]
    assert "name" not in json.loads(lowtide("convert", unnamed).out)


def test_compressed_plans_and_standard_streams(resnet, tmp_path):
    packed = tmp_path / "p.plan.json.gz"
    assert lowtide("plan", resnet, "--budget", "70%", "--time", 1, "-o", packed).code == 0
    assert json.loads(gzip.decompress(packed.read_bytes()))["format"] == "lowtide-plan"
    assert lowtide("verify", resnet, packed).code == 0
    text = gzip.decompress(resnet.read_bytes()).decode()
    assert lowtide("plan", "-", "--budget", "70%", "--time", 1, stdin=text).code == 0


def test_solver_options(resnet):
    done = lowtide("plan", resnet, "--budget", "70%", "--solver", "evict", "--option", "score=lru", "--json")
    assert done.code == 0
    best = lowtide("plan", resnet, "--budget", "70%", "--solver", "evict", "--json").json()
    assert done.json()["duration"] > best["duration"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--budget", "nonsense"], ["budget", "80%"]),
        (["--budget", "-5"], ["negative"]),
        (["--budget", "0.6"], ["did you mean 60%?"]),
        (["--budget", "8 apples"], ["apples"]),
        ([], ["--budget"]),
        (["--budget", "50%", "--solver", "magic"], ["magic", "auto"]),
        (["--budget", "50%", "--order", "sorted"], ["sorted"]),
        (["--budget", "50%", "--time", "-1"], ["--time"]),
        (["--budget", "50%", "--threads", "0"], ["--threads"]),
        (["--budget", "50%", "--solver", "evict", "--option", "score"], ["NAME=VALUE"]),
        (["--budget", "50%", "--solver", "evict", "--option", "score=best"], ["best", "dtr_eq"]),
        (["--budget", "50%", "--solver", "given", "--option", "x=1"], ["no options"]),
        (["--budget", "50%", "-o", "/no/such/folder/p.json"], ["/no/such/folder"]),
        (["--budget", "50%", "-o", "-", "--json"], ["-o -", "--json"]),
    ],
)
def test_bad_arguments(resnet, arguments, words):
    done = lowtide("plan", resnet, *arguments)
    assert done.code == 2 and done.out == ""
    for word in words:
        assert word in done.err


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "\x1f\x8b broken", '{"format": "lowtide-graph", "version": 9}'])
def test_bad_files_name_the_file(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content, encoding="latin-1")
    done = lowtide("plan", path, "--budget", "50%")
    assert done.code == 2 and done.out == "" and str(path) in done.err


def test_outputs_are_checked_before_the_search(resnet, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for path, words in ((folder, "folder"), (tmp_path / "absent" / "p.json", "No such file"),
                        (resnet / "p.json", "Not a directory"), ("/proc/p.json", "cannot be written")):
        for arguments in (["plan", resnet, "--budget", "60%", "-o", path], ["fit", resnet, "--overhead", "5%", "-o", path],
                          ["curve", resnet, "--csv", path], ["curve", resnet, "--html", path]):
            done = lowtide(*arguments, "--time", 100_000)  # which no test waits for
            assert done.code == 2 and done.out == "" and str(path) in done.err and words in done.err
    assert lowtide("curve", resnet, "--time", 100_000, "-o", "/proc").code == 2
    assert lowtide("show", resnet, "--html", folder).out == ""
    assert list(tmp_path.iterdir()) == [folder] and list(folder.iterdir()) == []


def test_a_plan_to_start_from(resnet, chain, tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    early = lowtide("plan", resnet, "--budget", "60%", "--solver", "greedy", "-o", first, "--json").json()
    later = lowtide("plan", resnet, "--budget", "60%", "--solver", "search", "--work", 1000, "--start", first, "--json")
    assert later.json()["duration"] <= early["duration"]
    # One over the budget is none within it, but still something to begin from.
    assert lowtide("plan", resnet, "--budget", "50%", "--solver", "given", "--start", first).code == 1
    done = lowtide("plan", chain, "--budget", "60%", "--start", first)
    assert done.code == 2 and done.out == ""
    assert all(words in done.err for words in ("first.json", "not usable as a start plan", "another graph"))
    # A file without a plan, one that is not there, and a solver that makes no start of its own.
    assert lowtide("plan", resnet, "--budget", 1, "-o", second).code == 1
    for start, words in ((second, ["second.json", "not usable as a start plan"]), ("absent.json", ["absent.json"]),
                         ("auto", ["option start"])):
        done = lowtide("plan", resnet, "--budget", "60%", "--solver", "search", "--start", start)
        assert done.code == 2 and all(word in done.err for word in words), done.err


def test_missing_file(tmp_path):
    done = lowtide("plan", tmp_path / "absent.json", "--budget", "50%")
    assert done.code == 2 and "absent.json" in done.err


IN_PLACE = {
    "format": "lowtide-graph", "version": 1,
    "tensors": [{"bytes": 10}, {"bytes": 20}, {"bytes": 20}, {"bytes": 5}],
    "ops": [{"inputs": [0], "outputs": [1], "time": 1}, {"inputs": [1], "outputs": [2], "time": 1, "in_place": [[1, 2]]},
            {"inputs": [2], "outputs": [3], "time": 1}],
    "outputs": [3],
}


def test_techniques(tmp_path):
    graph, plan = tmp_path / "g.graph.json", tmp_path / "p.plan.json"
    graph.write_text(json.dumps(IN_PLACE))
    assert lowtide("plan", graph, "--budget", "35", "--work", "10000", "-o", plan).code == 0
    assert ["compute_in_place", 1, 1] in json.loads(plan.read_text())["steps"]
    assert lowtide("verify", graph, plan).code == 0
    refused = lowtide("verify", graph, plan, "--techniques", "recompute")
    assert refused.code == 3 and '"in_place" is not among those allowed' in refused.out
    assert lowtide("plan", graph, "--budget", "35", "--techniques", "recompute").code == 1
    assert "in place" in lowtide("show", graph, plan).out
    for techniques in ("", "fuse", "offload"):
        bad = lowtide("plan", graph, "--budget", "35", "--techniques", techniques)
        assert bad.code == 2 and "--techniques" in bad.err
    fit = lowtide("fit", graph, "--overhead", "0%", "--work", "10000", "--techniques", "in_place", "--json").json()
    assert fit["budget"] == 35
