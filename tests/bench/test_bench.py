"""The benchmark on tiny graphs: what stands in its files can be true, and tables and pictures come of it."""
import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = os.environ.get("LOWTIDE_BENCH", "build/release/lowtide_bench")
SOURCE = Path(os.environ.get("LOWTIDE_SOURCE_DIR", ".")).resolve()


def bench(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600, cwd=SOURCE)


def rows(folder, name="rows.csv"):
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A suite of its own, so that tables and pictures find what they look for."""
    folder = tmp_path_factory.mktemp("bench")
    suite = folder / "suite.csv"
    suite.write_text(
        "# tiny\nset,graph,budgets,orders,solvers,variants\n"
        f"examples,{SOURCE}/examples/unet-train.graph.json.gz,act:50% act:1%,given free,auto,base\n"
        "layered,layered-40,80%,given,auto bounds,base\n"
        "ablation,chain-60,60%,given,auto bounds,each\n"
        "moccasin,DATA/moccasin/G1.json,80%,given,auto,base\n")
    done = bench("--suite", suite, "--time", 0.1, "--seeds", 2, "--out", folder / "out")
    assert done.returncode == 0, done.stderr
    assert "skipped, not there: DATA/moccasin/G1.json" in done.stdout
    return folder / "out"


def test_every_question_has_a_row_for_each_seed(measured):
    base = [row for row in rows(measured) if row["variant"] == "base"]
    asked = [tuple(row[name] for name in ("graph", "budget", "order", "solver", "seed")) for row in base]
    assert len(asked) == len(set(asked)) == 2 * (4 + 2 + 2)
    assert ("examples/unet-train", "act:50%", "free", "auto", "2") in asked
    assert ("layered-40", "80%", "given", "bounds", "1") in asked


def test_figures_can_be_true(measured):
    for row in rows(measured):
        assert row["status"] in ("optimal", "feasible", "infeasible", "unknown"), row["failure"]
        assert int(row["ops"]) > 0 and int(row["links"]) > 0
        assert int(row["budget_bytes"]) <= int(row["own_peak"])
        assert 0 <= float(row["bound"])
        assert 0 <= float(row["time_s"]) < 5
        if row["resident"]:
            assert int(row["resident"]) > 1 << 20
        planned = row["status"] in ("optimal", "feasible")
        assert planned == bool(row["overhead"]) == bool(row["peak"]) == bool(row["first_plan_s"])
        if not planned:
            assert not row["within"] and not row["gap"] and not row["overhead_0.1s"]
            continue
        overhead, bound = float(row["overhead"]), float(row["bound"])
        assert int(row["peak"]) <= int(row["budget_bytes"])
        assert bound <= overhead
        assert float(row["gap"]) == pytest.approx(100 * ((100 + overhead) / (100 + bound) - 1), abs=1e-3)
        if bound:
            assert float(row["within"]) == pytest.approx(100 * (overhead - bound) / bound, rel=1e-2, abs=1e-3)
        if row["status"] == "optimal":
            assert overhead == bound
        for mark in ("overhead_0.1s", "overhead_1s", "overhead_10s"):
            assert not row[mark] or float(row[mark]) >= overhead
        if row["found_by"] == "search" and row["status"] == "feasible":  # it never ends by itself
            assert not row["overhead_1s"] and not row["overhead_10s"]


def test_history_only_gets_better_and_ends_where_the_row_does(measured):
    histories = {}
    key = ("set", "graph", "budget", "order", "solver", "variant", "seed")
    for point in rows(measured, "history.csv"):
        histories.setdefault(tuple(point[name] for name in key), []).append(point)
    final = {tuple(row[name] for name in key): row for row in rows(measured)}
    assert histories.keys() == final.keys()
    for asked, points in histories.items():
        times = [float(point["seconds"]) for point in points]
        overheads = [float(point["overhead"]) for point in points if point["overhead"]]
        bounds = [float(point["bound"]) for point in points]
        assert times == sorted(times)
        assert overheads == sorted(overheads, reverse=True)
        assert bounds == sorted(bounds)
        assert points[-1]["overhead"] == final[asked]["overhead"]
        assert points[-1]["bound"] == final[asked]["bound"]


def test_ablation_leaves_out_parts_and_turns_switches(measured):
    variants = {(row["solver"], row["variant"]) for row in rows(measured) if row["set"] == "ablation"}
    assert {("auto", "base"), ("auto", "without search"), ("auto", "bounds.cuts=off"),
            ("bounds", "base"), ("bounds", "bounds.cuts=off")} <= variants
    assert ("auto", "without auto") not in variants
    # `order` does not take a given order: without it nothing is different.
    assert ("auto", "without order") not in variants
    assert not any(solver == "bounds" and variant.startswith("without") for solver, variant in variants)


def test_a_part_that_is_left_out_finds_nothing(tmp_path):
    done = bench("--budget", "60%", "chain-60", "--time", 0.1, "--without", "search", "--option", "evict.score=lru",
                 "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = rows(tmp_path)
    assert row["variant"] == "evict.score=lru without search"
    assert row["found_by"] != "search"


def test_all_solvers_can_be_compared(tmp_path):
    done = bench("chain-60", "--budget", "80%", "--time", 0.05, "--solver", "all", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    found = {row["solver"]: row["status"] for row in rows(tmp_path)}
    assert {"given", "greedy", "evict", "search", "bounds", "auto"} <= found.keys()
    assert found["order"] == "unsupported"


@pytest.mark.parametrize("arguments, message", [
    (["chain-60", "--option", "search.nothing=1"], "nothing"),
    (["chain-60", "--option", "search"], "solver.name=value"),
    (["chain-60", "--without", "nobody"], "nobody"),
    (["chain-60", "--solver", "nobody"], "nobody"),
    (["no-such-graph.json"], "no-such-graph.json"),
    (["--suite", "no-such-file.csv"], "no-such-file.csv"),
])
def test_impossible_arguments_are_refused(tmp_path, arguments, message):
    done = bench(*arguments, "--time", 0.05, "--out", tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_suite_of_the_project_can_be_read():
    done = bench("--dry")
    assert done.returncode == 0, done.stderr
    assert "skipped, not there: DATA/captured/" in done.stdout
    assert "runs of 10 s" in done.stdout


def test_tables_show_ours_beside_what_was_published(measured, tmp_path):
    (tmp_path / "them.csv").write_text(
        "graph,budget,order,method,overhead,bound,seconds,note,source\n"
        'layered-40,80%,given,Theirs,12.5,,60,over budget,"A paper, table 1"\n')
    done = subprocess.run([sys.executable, SOURCE / "bench/tables.py", measured, "--published", tmp_path],
                          capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stdout.splitlines() if len(line) > 80 and str(measured) not in line]
    text = (measured / "tables.md").read_text()
    assert "12.5 (60 s, over budget)" in text and "A paper, table 1" in text
    assert "Ablation: bound of `bounds`" in text and "cuts | branching" in text
    assert "infeasible" in text
    for block in text.split("\n\n"):
        widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


def test_pictures(measured):
    pytest.importorskip("matplotlib")
    done = subprocess.run([sys.executable, SOURCE / "bench/anytime.py", measured], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for suffix, limit in (("png", 200_000), ("svg", 200_000)):
        assert 1000 < (measured / f"anytime-networks.{suffix}").stat().st_size < limit


def test_all_runs_in_one_picture_beside_those_of_another_version(tmp_path):
    pytest.importorskip("matplotlib")
    head = "graph,budget,order,seed,solver,variant,seconds,overhead,bound\n"
    for name, runs in {"now": "0.001,,0\n 0.02,3,1\n 0.1,2.5,2\n", "before": "0.05,4,0\n 0.1,3,1\n"}.items():
        (tmp_path / name).mkdir()
        lines = ["a,50%,given,1,auto,base," + run.strip() for run in runs.splitlines()]
        (tmp_path / name / "history.csv").write_text(head + "\n".join(lines) + "\n")
    done = subprocess.run([sys.executable, SOURCE / "bench/anytime.py", tmp_path / "now", "--before", tmp_path / "before"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # above the highest bound of all, which is 2
    assert "now, 1 runs, points above the bound: 0.1 s: 0.500 median, 0.50 worst, 0 without" in done.stdout
    assert "before, 1 runs, points above the bound: 0.1 s: 1.000 median, 1.00 worst, 0 without" in done.stdout
    assert (tmp_path / "now/anytime-all.png").stat().st_size > 1000


def test_published_figures_are_figures():
    for path in (SOURCE / "bench/published").glob("*.csv"):
        for row in rows(path.parent, path.name):
            assert float(row["overhead"]) >= 0 and row["method"] and row["source"]
            assert row["order"] in ("given", "free")
            assert not row["bound"] or float(row["bound"]) <= 1.05 * float(row["overhead"])  # rounded
