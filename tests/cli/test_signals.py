"""Long runs: interruption, the plan on disk, the live line, the clock."""

import csv
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest
from conftest import BINARY, lowtide, wait_for_handler


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "resnet.graph.json"
    assert lowtide("generate", "resnet", "--ops", 80000, "--seed", 3, "-o", path).code == 0
    return path


def start(graph, plan, *more, solver="evict"):
    # One score after another on 80,000 ops: seconds of work, the first plan within the first.
    return subprocess.Popen(
        [BINARY, "plan", graph, "--budget", "45%", "--solver", solver, "--time", "200", "-o", plan, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def wait_for(path, seconds=600):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} was not written"
        time.sleep(0.02)


def wait_until(holds, seconds=600):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "nothing better was written"
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_runs_return_their_best_plan(large, tmp_path, number):
    plan = tmp_path / "best.plan.json"
    run = start(large, plan, "--json")
    wait_for(plan)  # written while it runs, and whole
    assert json.loads(plan.read_text())["steps"]
    run.send_signal(number)
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0, err
    said = json.loads(out)
    assert said["stopped_by"] in ("cancelled", "finished") and said["status"] == "feasible"
    checked = lowtide("verify", large, plan, "--json")
    assert checked.code == 0 and checked.json()["duration"] == said["duration"]


def test_interrupted_and_killed_runs_keep_their_transfers(large, tmp_path):
    for number in (signal.SIGINT, signal.SIGKILL):
        plan = tmp_path / f"{number}.plan.json"
        run = start(large, plan, "--link", "25GB/s,10us", "--order", "given", solver="offload")
        wait_for(plan)
        run.send_signal(number)
        run.communicate(timeout=600)
        # 0 after a kill: it was done before.
        assert run.returncode in ((0,) if number == signal.SIGINT else (0, -number))
        steps = json.loads(plan.read_text())["steps"]
        assert any(word == "prefetch" for word, *_ in steps)
        assert lowtide("verify", large, plan).code == 0


def test_second_interrupt_ends_at_once(large, tmp_path):
    plan = tmp_path / "best.plan.json"
    run = start(large, plan)
    wait_for(plan)
    for _ in range(200):
        if run.poll() is not None:
            break
        run.send_signal(signal.SIGINT)
    run.communicate(timeout=600)
    # 0: it was done before the second came.
    assert run.returncode in (130, 0)
    json.loads(plan.read_text())


def test_second_interrupt_while_reading(tmp_path):
    """A command that waits for its input cannot be done before the second signal."""
    run = subprocess.Popen([BINARY, "plan", "-", "--budget", "50%"], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_handler(run)
    run.send_signal(signal.SIGINT)
    time.sleep(0.2)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=600) == 130
    run.stdin.close()


def test_deadline_is_kept(large):
    """Counting polls is the exact test; a search without an end would outlast this command's patience."""
    done = lowtide("plan", large, "--budget", "45%", "--solver", "evict", "--time", "0.5", "--json").json()
    assert done["stopped_by"] in ("deadline", "finished")


def on_a_terminal(*arguments, columns=200):
    """What the command writes on standard error if that is a terminal."""
    leader, follower = pty.openpty()
    run = subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=follower,
                           env={**os.environ, "COLUMNS": str(columns)})
    os.close(follower)
    text = b""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                chunk = os.read(leader, 4096)
            except OSError:
                break
            if not chunk:
                break
            text += chunk
    run.wait(timeout=600)
    os.close(leader)
    return text.decode()


def test_live_line_on_a_terminal_only(large, tmp_path):
    quiet = subprocess.run([BINARY, "plan", large, "--budget", "45%", "--solver", "evict", "--time", "1"],
                           capture_output=True, text=True, timeout=600)
    assert quiet.stderr == ""
    shown = on_a_terminal("plan", large, "--budget", "45%", "--solver", "evict", "--time", "4")
    assert re.search(r"\d+\.\d s", shown)
    assert "overhead" in shown and "bound" in shown and "gap" in shown and "peak" in shown
    assert shown.endswith("\x1b[K"), "the line is wiped at the end"


def test_live_line_is_no_wider_than_the_terminal(resnet):
    shown = on_a_terminal("curve", resnet, "--time", "2", columns=50)
    lines = [line for line in shown.replace("\x1b[K", "").split("\r") if line]
    assert lines and all(len(line) < 50 for line in lines)
    assert "points planned" in shown


def test_a_long_curve_that_is_interrupted_has_its_points(tmp_path):
    graph = tmp_path / "transformer.graph.json"
    assert lowtide("generate", "transformer", "--ops", 300, "-o", graph).code == 0
    table = tmp_path / "curve.csv"
    run = subprocess.Popen([BINARY, "curve", graph, "--from", "50%", "--points", "5", "--time", "2000", "--json",
                            "--csv", table], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(table)
    end = time.monotonic() + 600
    # The last row is the smallest budget's, which is no point.
    while len({row["duration"] for row in list(csv.DictReader(table.open()))[:5]} - {""}) < 5:
        assert time.monotonic() < end, "no plan of its own for each point"
        time.sleep(0.1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0, err
    durations = [point["duration"] for point in json.loads(out)["points"]]
    # Not one plan for all, which is what the first solves leave.
    assert len(set(durations)) == len(durations) == 5


def test_a_killed_fit_leaves_its_plan(resnet, tmp_path):
    plan = tmp_path / "fit.plan.json"
    run = subprocess.Popen([BINARY, "fit", resnet, "--overhead", "5%", "--time", "300", "-o", plan])
    own = lowtide("plan", resnet, "--budget", "100%", "--json").json()["budget"]
    wait_for(plan)
    wait_until(lambda: json.loads(plan.read_text())["claims"]["peak"] < own)
    run.kill()
    run.wait(timeout=600)
    found = lowtide("verify", resnet, plan, "--json").json()
    assert found["ok"] and found["overhead_percent"] <= 5 and found["peak"] < own
    assert "while the search was running" in json.loads(plan.read_text())["found_by"]["note"]


def test_a_killed_curve_leaves_its_files(resnet, tmp_path):
    table, page, folder = tmp_path / "curve.csv", tmp_path / "curve.html", tmp_path / "plans"
    run = subprocess.Popen([BINARY, "curve", resnet, "--points", "4", "--time", "300", "--csv", table, "--html", page,
                            "-o", folder])
    wait_for(page)

    def written():
        rows = list(csv.DictReader(table.open()))
        return len({row["duration"] for row in rows if row["duration"]}) > 1 and len(list(folder.glob("*.json"))) >= 3

    wait_until(written)
    run.kill()
    run.wait(timeout=600)
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 5 and len({row["duration"] for row in rows if row["duration"]}) > 1
    assert page.read_text().rstrip().endswith("</html>")
    plans = list(folder.glob("*.plan.json"))
    assert len(plans) >= 3
    for plan in plans:
        assert lowtide("verify", resnet, plan, "--json").json()["ok"]


def test_a_pipe_is_written_once(resnet, tmp_path):
    """A pipe takes one answer, however long the run."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run = subprocess.Popen([BINARY, "fit", resnet, "--overhead", "5%", "--time", "2", "-o", pipe],
                           stdout=subprocess.DEVNULL)
    with pipe.open() as end:
        json.loads(end.read())
    assert run.wait(timeout=600) == 0
