"""What others do over a link, as the benchmark models it: by hand, and beside exact answers."""
import csv
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("LOWTIDE_SOURCE_DIR", ".")).resolve()
BINARY = os.environ.get("LOWTIDE_BIN", "build/release/lowtide")
sys.path.insert(0, str(SOURCE / "bench"))

import offload_tiny
from peers import checkmate_transfers, highs, pofo, saved_on_host


def test_save_on_cpu_by_hand():
    # a makes t1 (10 bytes) of the input t0 (4), b makes t2 (2); the backward of b reads t1, that of a reads t0.
    graph = {
        "tensors": [{"bytes": 4}, {"bytes": 10}, {"bytes": 2}, {"bytes": 10}, {"bytes": 4}],
        "ops": [
            {"inputs": [0], "outputs": [1], "time": 5, "phase": "forward"},
            {"inputs": [1], "outputs": [2], "time": 5, "phase": "forward"},
            {"inputs": [2, 1], "outputs": [3], "time": 10, "phase": "backward"},
            {"inputs": [3, 0], "outputs": [4], "time": 10, "phase": "backward"},
        ],
        "outputs": [4],
    }
    duration, peak = saved_on_host.price(graph, lambda size: 100 + size)
    # t0, t1 and t2 go and come once each.
    assert duration == 30 + 2 * (104 + 110 + 102)
    # At the backward of b: t0, t3, and the copies of t1 and t2. The forward needs 4 + 10 + 2.
    assert peak == 4 + 10 + 10 + 2
    assert saved_on_host.price({**graph, "ops": graph["ops"][:2]}, lambda size: 0) is None


def chain():
    return pofo.Chain([4, 4, 4, 4], [0, 5, 5, 5], [0, 10, 10, 10])


def test_pofo_by_hand():
    # Backward of the last layer: a0 to a3, two gradients.
    assert pofo.Pofo(chain(), 24, 1, slots=6).duration() == chain().total()
    # With one tensor less and nearly no link a1 and a2 are made again for the last layer's or the second's backward.
    slow = pofo.Pofo(chain(), 20, 1e-9, slots=5)
    assert chain().total() < slow.duration() == slow.rotor(1, 3, 4) < 2 * chain().total()
    # Over a fast link a0 goes and comes back for nothing.
    assert pofo.Pofo(chain(), 20, 4, slots=5).duration() == chain().total()
    assert pofo.Pofo(chain(), 12, 4, slots=3).duration() == pofo.INFINITE


@pytest.mark.parametrize("seed", range(12))
def test_without_a_link_pofo_is_a_plan_of_ours(seed, tmp_path):
    """It only recomputes then, and as rotor does, which we may beat but never lose to."""
    drawn = pofo.drawn(6, seed)
    path = tmp_path / "chain.graph.json"
    path.write_text(json.dumps(drawn.graph()))
    done = subprocess.run([BINARY, "plan", path, "--budget", "65%", "--order", "given", "--work", "3000000", "--json"],
                          capture_output=True, text=True, timeout=600)
    ours = json.loads(done.stdout)
    theirs = pofo.Pofo(drawn, ours["budget"], 1e-9)
    assert theirs.duration() >= drawn.total()
    if theirs.duration() < 100 * drawn.total():  # else it waits for the link
        assert ours["duration"] <= theirs.duration()


@pytest.mark.parametrize("seed, budget, rate", [(2, 85, 5), (4, 70, 5), (6, 85, 20), (6, 70, 5)])
def test_where_pofo_takes_less_than_ours_no_whole_copies_do(seed, budget, rate, tmp_path):
    drawn = pofo.drawn(3, seed)
    case = offload_tiny.Case(drawn.graph(), f"{budget}%", rate, tmp_path, latency=0)
    ours = case.plan("--work", 200_000)
    case.budget = ours["budget"]
    assert pofo.Pofo(drawn, ours["budget"], 1000 * rate).duration() < ours["duration"] == case.fastest()


@pytest.fixture(scope="module")
def solver():
    return highs.library() or pytest.skip("HiGHS is not installed")


def swap():
    # t0 (20 bytes) is read first and last; between them op 1 takes long and makes 30 bytes for nothing.
    return {"tensors": [{"bytes": 20}, {"bytes": 1}, {"bytes": 30}, {"bytes": 1}],
            "ops": [{"inputs": [0], "outputs": [1], "time": 10}, {"inputs": [1], "outputs": [2], "time": 100},
                    {"inputs": [0, 1], "outputs": [3], "time": 7}], "outputs": [3]}


@pytest.mark.parametrize("budget, out, back, duration", [
    (51, 90, 90, 117),    # all of it fits
    (50, 5, 90, 207),     # out behind op 0; back once op 1 has ended, since its output takes the place until then
    (50, 15, 90, 212),    # the free waits 5 for the copy
    (31, 10, 0, 117),     # hidden wholly
    (30, 10, 0, None),    # op 1 needs 31
])
def test_milp_by_hand(solver, budget, out, back, duration):
    program = checkmate_transfers.Transfers(swap(), budget, lambda size: out if size == 20 else 0,
                                            lambda size: back if size == 20 else 0)
    status, bound, steps = program.solve(solver, 60)
    assert (status, bound) == (("optimal", duration) if duration else ("infeasible", None))
    if duration and budget < 51:
        assert [step for step in steps if step[1] == 0 and step[0] in ("offload", "prefetch")] == [
            ["offload", 0], ["prefetch", 0]]


def test_milp_says_what_it_does_not_take():
    graph = swap()
    graph["ops"][1]["mutates"] = [1]
    with pytest.raises(ValueError, match="changes a tensor"):
        checkmate_transfers.Transfers(graph, 51, lambda size: 0, lambda size: 0)


@pytest.mark.parametrize("seed", range(1, 11))
def test_milp_is_at_or_above_the_least_of_all_plans(seed, solver, tmp_path):
    """And here always at it. Its plans hold and take what it says; ours are never below what is proven."""
    draw = random.Random(seed)
    graph = offload_tiny.drawn(2, seed)
    graph["ops"][1]["recomputable"] = draw.random() < 0.7
    graph["ops"][3]["workspace"] = draw.choice([0, 30_000_000])
    case = offload_tiny.Case(graph, 0, draw.choice([4, 20]), tmp_path)
    case.budget = offload_tiny.budget_of(graph, case.path, draw.choice([0, 25, 60]))
    graph["tensors"][0] |= draw.choice([{}, {"releasable": True}, {"stays": True}])
    case.path.write_text(json.dumps(graph))
    ours = case.plan("--work", 300_000)
    status, duration, bound = case.milp(solver, 60)
    exact = case.fastest()
    assert exact is not None
    if exact == "none":
        assert status == ours["status"] == "infeasible"
        return
    assert status == "optimal" and math.ceil(bound) == duration == exact
    assert exact <= ours["duration"] <= 1.02 * exact
    assert ours["bound"] <= exact


def test_table_of_tiny_graphs(solver, tmp_path):
    done = subprocess.run(
        [sys.executable, SOURCE / "bench/offload_tiny.py", "--layers", "2", "--seeds", "1", "--rooms", "0", "--links", "20",
         "-o", tmp_path / "tiny"], capture_output=True, text=True, timeout=600,
        env={**os.environ, "LOWTIDE_BIN": str(Path(BINARY).resolve())})
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "tiny.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["bound"]) <= float(row["brute force"]) == float(row["MILP"]) <= float(row["auto"])
    assert "| 5 |" in (tmp_path / "tiny.md").read_text()


def test_table_of_all_peers(tmp_path):
    done = subprocess.run(
        [sys.executable, SOURCE / "bench/offload.py", "chain-30", "--links", "25", "--budgets", "60", "--time", "0.2",
         "-o", tmp_path / "offload"], capture_output=True, text=True, timeout=600,
        env={**os.environ, "LOWTIDE_BIN": str(Path(BINARY).resolve())})
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "offload.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["auto"]) <= float(row["recompute"]) + 0.05
    assert float(row["bound"]) <= float(row["auto"])
    assert "chain-30" in (tmp_path / "offload.md").read_text()
