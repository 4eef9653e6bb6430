"""`lowtide.sweep`: the results of the command, in processes, executors and Ray, whole after any of them dies."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import lowtide

ROOT = Path(os.environ.get("LOWTIDE_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))


@pytest.fixture
def graph():
    return lowtide.generate("layered", ops=40, seed=1)


@pytest.fixture
def file(tmp_path, graph):
    graph.save(tmp_path / "a.graph.json.gz")
    lowtide.generate("chain", ops=10, seed=2).save(tmp_path / "b.graph.json")
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps({"format": "lowtide-sweep", "version": 1, "graph": "*.graph.json*", "budget": ["60%", "80%", "1%"],
                                "techniques": ["default", "recompute"], "work": 3000, "options": {"blocks": "off"}}))
    return path


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def by_task(rows):
    return {row["task"]: (row["given"], {k: v for k, v in row["found"].items() if k != "time_s"}) for row in rows}


def test_python_and_the_command_find_the_same_and_go_on_with_each_other(file, tmp_path):
    found = lowtide.sweep(file, results=tmp_path / "python.jsonl")
    assert found.complete and len(found.rows) == 12 and found.errors == []
    assert subprocess.run([BINARY, "sweep", file, "-o", tmp_path / "command.jsonl"], stdout=subprocess.DEVNULL).returncode == 0
    ours, theirs = by_task(lines(tmp_path / "python.jsonl")), by_task(lines(tmp_path / "command.jsonl"))
    assert ours.keys() == theirs.keys()
    for task, (given, result) in ours.items():
        assert given == theirs[task][0] and result == pytest.approx(theirs[task][1])
    before = (tmp_path / "command.jsonl").read_text()
    again = lowtide.sweep(file, results=tmp_path / "command.jsonl")
    assert [r["given"] for r in again.rows] == [r["given"] for r in found.rows]
    assert (tmp_path / "command.jsonl").read_text() == before
    run = subprocess.run([BINARY, "sweep", file, "-o", tmp_path / "python.jsonl", "--csv", "-"], stdout=subprocess.PIPE, text=True)
    assert run.stdout.splitlines()[0] == found.to_csv().splitlines()[0] and len(run.stdout.splitlines()) == 13
    assert len(lines(tmp_path / "python.jsonl")) == 12


def test_graphs_in_memory_and_one_value_or_a_list(graph, tmp_path):
    told = []
    grid = {"graph": {"mine": graph, "other": lowtide.generate("chain", ops=10)}, "budget": "80%", "work": 1000, "seed": [0, 1]}
    found = lowtide.sweep(grid, results=tmp_path / "r.jsonl", progress=lambda done, all_: told.append((done, all_)))
    assert [(r["given"]["graph"], r["given"]["seed"]) for r in found.rows] == [("mine", 0), ("mine", 1), ("other", 0), ("other", 1)]
    assert told == [(i, 4) for i in range(5)]
    graph.save(tmp_path / "g.json")
    one = lowtide.sweep({"graph": graph, "budget": 10**9, "work": 1000})
    assert one.rows[0]["given"]["budget"] == 10**9 and one.rows[0]["found"]["budget_bytes"] == 10**9
    plan = lowtide.plan(graph, "80%", work=1000, threads=1)
    assert found.rows[0]["found"]["duration"] == plan.duration and found.rows[0]["found"]["peak"] == plan.peak
    assert "mine" in str(found) and "seed" in str(found) and "work" not in str(found)


def test_an_interrupted_sweep_loses_nothing(file, tmp_path):
    class Stop(Exception):
        pass

    def after_three(done, _):
        if done == 3:
            raise Stop

    with pytest.raises(Stop):
        lowtide.sweep(file, results=tmp_path / "r.jsonl", progress=after_three)
    kept = lines(tmp_path / "r.jsonl")
    assert len(kept) == 3
    with open(tmp_path / "r.jsonl", "a") as half:
        half.write('{"task":"01')
    told = []
    found = lowtide.sweep(file, results=tmp_path / "r.jsonl", progress=lambda *at: told.append(at))
    assert told[0] == (3, 12) and found.complete and lines(tmp_path / "r.jsonl")[:3] == kept
    assert len(lines(tmp_path / "r.jsonl")) == 12


def processes():
    """The worker processes of this one."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and b"lowtide.sweeps.worker" in command:
            found.append(int(status.parent.name))
    return found


@pytest.fixture
def unending():
    """A graph whose search at 70 % proves nothing before its work ends."""
    return lowtide.generate("layered", ops=400, seed=1)


def test_a_worker_that_is_killed_costs_its_task_alone(unending, tmp_path):
    grid = {"graph": {"long": unending}, "budget": "70%", "work": [10**13, 1000, 1001, 1002]}
    killed = threading.Event()

    def killer():
        end = time.monotonic() + 120
        while time.monotonic() < end and not killed.is_set():
            for worker in processes():
                os.kill(worker, signal.SIGKILL)
                killed.set()
            time.sleep(0.05)

    thread = threading.Thread(target=killer)
    thread.start()
    found = lowtide.sweep(grid, results=tmp_path / "r.jsonl", workers=1)
    thread.join()
    assert killed.is_set() and len(found.rows) == 4 and not found.complete
    (error,) = found.errors
    assert "SIGKILL" in error["found"]["reason"]
    assert processes() == []


def test_workers_end_with_the_sweep(tmp_path, unending):
    unending.save(tmp_path / "g.json")
    code = ("import lowtide\n"
            f"lowtide.sweep({{'graph': {str(tmp_path / 'g.json')!r}, 'budget': '70%', 'work': 10**13}}, workers=1)")
    run = subprocess.Popen([sys.executable, "-c", code])
    worker = None
    end = time.monotonic() + 120
    while worker is None and time.monotonic() < end and run.poll() is None:
        children = Path(f"/proc/{run.pid}/task").glob("*/children")
        worker = next((int(pid) for c in children for pid in c.read_text().split()), None)
        time.sleep(0.02)
    assert worker is not None
    run.kill()
    run.wait()
    while Path(f"/proc/{worker}").exists() and time.monotonic() < end:
        if Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        assert not Path(f"/proc/{worker}").exists()


def test_an_executor_runs_the_tasks(file):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        there = lowtide.sweep(file, scheduler=pool)
    assert by_task(there.rows) == by_task(lowtide.sweep(file).rows)


def test_an_executor_has_its_own_number_of_workers(file):
    with concurrent.futures.ThreadPoolExecutor(2) as pool, pytest.raises(lowtide.Error, match="workers"):
        lowtide.sweep(file, scheduler=pool, workers=2)


def test_rows_have_the_names_of_this_call(graph, tmp_path):
    for name in ("earlier", "now"):
        found = lowtide.sweep({"graph": {name: graph}, "budget": "80%", "work": 100}, results=tmp_path / "results")
        assert [row["given"]["graph"] for row in found.rows] == [name]
    assert len((tmp_path / "results").read_text().splitlines()) == 1


@pytest.mark.parametrize(("grid", "words"), [
    ({"graph": "g", "budgets": 1}, "unknown key 'budgets'"), ({"graph": []}, "budget"), ({"budget": "5%"}, "graph"),
    ({"graph": "none.json", "budget": "5%"}, "none.json: cannot be read"), ({"graph": "no*.json", "budget": "5%"}, "no file matches"),
    ({"graph": 3, "budget": "5%"}, "not int"), ({"graph": lowtide.generate("chain", ops=3), "budget": []}, "empty"),
    ({"graph": lowtide.generate("chain", ops=3), "budget": [None]}, "NoneType")])
def test_mistakes_are_named(grid, words):
    with pytest.raises(lowtide.Error, match=words.replace("*", r"\*")):
        lowtide.sweep(grid)


def test_wrong_schedulers_and_files_are_refused(graph, tmp_path):
    grid = {"graph": graph, "budget": "80%", "work": 100}
    with pytest.raises(lowtide.Error, match="processes.*ray"):
        lowtide.sweep(grid, scheduler="slurm")
    with pytest.raises(lowtide.Error, match="at least 1"):
        lowtide.sweep(grid, workers=0)
    (tmp_path / "text").write_text("hello\nworld")
    with pytest.raises(lowtide.Error, match="line 1: is not a result"):
        lowtide.sweep(grid, results=tmp_path / "text")
    assert (tmp_path / "text").read_text() == "hello\nworld"
    assert lowtide.sweep(grid | {"solver": "nobody"}).errors[0]["found"]["reason"]
    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(lowtide.Error, match="lowtide-sweep"):
        lowtide.sweep(tmp_path / "s.json")


RAY = """
import json, sys
import ray
from ray.cluster_utils import Cluster
import lowtide

notice_soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": notice_soon})
ray.init(address=cluster.address, log_to_driver=False)  # to the first node, the only one there is
other = cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
graphs = {"a": lowtide.generate("layered", ops=60, seed=1), "b": lowtide.generate("layered", ops=50, seed=2)}
killed = []

def progress(done, all_):
    if done == 5 and not killed:
        killed.append(done)
        cluster.remove_node(other, allow_graceful=False)

found = lowtide.sweep({"graph": graphs, "budget": "60%", "work": 30_000, "seed": list(range(12))}, results=sys.argv[1],
                      progress=progress)
print(json.dumps({"complete": found.complete, "rows": found.rows, "killed": killed}))
ray.shutdown()
cluster.shutdown()
"""


def test_a_sweep_on_two_ray_nodes_is_whole_after_one_is_killed(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed")
    run = subprocess.run([sys.executable, "-c", RAY, str(tmp_path / "r.jsonl")], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"})
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout.splitlines()[-1])
    assert said["complete"] and said["killed"] == [5] and len(said["rows"]) == 24
    assert by_task(lines(tmp_path / "r.jsonl")) == by_task(said["rows"])
    graphs = {"a": lowtide.generate("layered", ops=60, seed=1), "b": lowtide.generate("layered", ops=50, seed=2)}
    here = lowtide.sweep({"graph": graphs, "budget": "60%", "work": 30_000, "seed": list(range(12))})
    assert by_task(said["rows"]) == by_task(here.rows)


def test_without_ray_the_error_says_what_to_install(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(lowtide.Error, match="pip install ray"):
        lowtide.sweep({"graph": graph, "budget": "80%"}, scheduler="ray")
