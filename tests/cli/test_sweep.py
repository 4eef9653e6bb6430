"""`lowtide sweep`: every combination once, results that outlive a kill, a table, CSV, errors."""

import csv
import io
import json
import signal
import subprocess
import time

import pytest
from conftest import BINARY, lowtide, wait_for_handler

FOUND_KEYS = ["status", "budget_bytes", "peak", "taken", "duration", "base_duration", "overhead_percent", "bound", "gap_percent",
              "smallest_peak", "floor", "found_by", "stopped_by", "time_s", "reason"]


@pytest.fixture
def write(tmp_path, chain):
    """A sweep file beside the chain's, with other keys."""
    def written(name="sweep.json", **keys):
        path = tmp_path / name
        path.write_text(json.dumps({"format": "lowtide-sweep", "version": 1, "graph": chain.name, "budget": "100%", "work": 2000,
                                    **keys}))
        return path

    return written


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_combination_is_planned_once(write, chain, tmp_path):
    (tmp_path / "copy.graph.json").write_text(chain.read_text().replace('"time": 4', '"time": 5'))
    sweep = write(graph="*.graph.json", budget=["100%", 19, "100%"], seed=[0, 1])
    done = lowtide("sweep", sweep)
    assert done.code == 0 and done.err == ""
    found = rows(tmp_path / "sweep.results.jsonl")
    assert len(found) == 8 and len({row["task"] for row in found}) == 8
    assert all(list(row) == ["task", "given", "found"] and list(row["found"]) == FOUND_KEYS for row in found)
    assert {(r["given"]["graph"], r["given"]["budget"], r["given"]["seed"]) for r in found} == {
        (g, b, s) for g in ("chain.graph.json", "copy.graph.json") for b in ("100%", 19) for s in (0, 1)}
    for row in found:
        alone = lowtide("plan", tmp_path / row["given"]["graph"], "--budget", row["given"]["budget"], "--work", 2000,
                        "--seed", row["given"]["seed"], "--json").json()
        same = ("status", "peak", "duration", "base_duration", "overhead_percent", "smallest_peak", "floor", "found_by", "reason")
        assert {k: row["found"][k] for k in same} == {k: alone[k] for k in same}
        assert row["found"]["budget_bytes"] == alone["budget"]


def test_a_sweep_goes_on_where_it_was_killed(write, tmp_path):
    sweep, results = write(budget=["100%", "90%", "80%", "70%"]), tmp_path / "r.jsonl"
    assert lowtide("sweep", sweep, "-o", results).code == 0
    whole = results.read_text().splitlines(keepends=True)
    for kept in ("", whole[0], whole[0] + whole[1][:30], whole[0] + whole[1] + "{"):
        results.write_text(kept)
        assert lowtide("sweep", sweep, "-o", results).code == 0
        assert results.read_text().startswith(kept[:kept.rfind("\n") + 1])
        assert {row["task"] for row in rows(results)} == {json.loads(line)["task"] for line in whole}
        assert len(rows(results)) == 4
    before = results.read_text()
    assert "4 of 4" in lowtide("sweep", sweep, "-o", results).out and results.read_text() == before


def test_a_wider_sweep_keeps_what_is_there_and_a_changed_graph_is_planned_again(write, chain, tmp_path):
    results = tmp_path / "r.jsonl"
    lowtide("sweep", write(budget="100%"), "-o", results)
    lowtide("sweep", write(budget=["100%", "90%"]), "-o", results)
    assert len(rows(results)) == 2
    chain.write_text(chain.read_text().replace('"time": 4', '"time": 7'))
    lowtide("sweep", write(budget=["100%", "90%"]), "-o", results)
    assert len(rows(results)) == 4


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_signal_loses_nothing(write, tmp_path, resnet, how):
    (tmp_path / "resnet.graph.json.gz").symlink_to(resnet)
    results = tmp_path / "r.jsonl"
    sweep = write(graph=["chain.graph.json", "resnet.graph.json.gz"], budget="60%", work=10**12)
    run = subprocess.Popen([BINARY, "sweep", sweep, "-o", results], stdout=subprocess.PIPE, text=True)
    wait_for_handler(run)
    end = time.monotonic() + 600
    while not (results.exists() and "\n" in results.read_text()) and time.monotonic() < end:
        time.sleep(0.01)
    run.send_signal(how)
    out = run.communicate(timeout=600)[0]
    assert [row["given"]["graph"] for row in rows(results)] == ["chain.graph.json"]  # the other one was cut short
    if how == signal.SIGINT:
        assert run.returncode == 1 and "1 of 2 planned" in out


def test_errors_are_rows_and_are_tried_again(write, tmp_path):
    results, sweep = tmp_path / "r.jsonl", write(solver=["auto", "nobody"])
    done = lowtide("sweep", sweep, "-o", results, "--csv", tmp_path / "r.csv")
    assert done.code == 1 and "1 of 2 planned, 1 errors" in done.out and "nobody" in done.out
    assert sorted(row["found"]["status"] for row in rows(results)) == ["error", "optimal"]
    lowtide("sweep", sweep, "-o", results)
    assert [row["found"]["status"] for row in rows(results)].count("error") == 2  # one for each run
    table = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    assert [row["solver"] for row in table] == ["auto", "nobody"]
    assert list(table[0]) == ["graph", "budget", "solver", "work", *FOUND_KEYS] and "nobody" in table[1]["reason"]


def test_settings_reach_the_planner(write, chain, tmp_path):
    device = lowtide("devices", "a100", "--json").out
    (tmp_path / "mine.json").write_text(device)
    settings = {"techniques": "recompute", "order": "given", "footprint": "arena", "device": "./mine.json", "link": "1GB/s",
                "derate": "20%", "host_budget": "1GiB", "solver": "auto", "seed": 3,
                "options": {"blocks": "off", "bounds-share": 0.1}, "threads": 2, "time": 0.5}
    done = lowtide("sweep", write(budget="1MiB", **settings), "-o", tmp_path / "r.jsonl")
    (row,) = rows(tmp_path / "r.jsonl")
    assert done.code == 0 and row["given"].items() >= settings.items() and row["found"]["taken"] >= row["found"]["peak"]
    for key, value in {"device": "nowhere", "link": "x", "derate": "x", "host_budget": "x", "techniques": "x",
                       "options": {"x": 1}, "allocator": "x:1"}.items():
        done = lowtide("sweep", write(**{key: value}), "-o", tmp_path / f"{key}.jsonl")
        (row,) = rows(tmp_path / f"{key}.jsonl")
        assert done.code == 1 and row["found"]["status"] == "error" and row["found"]["reason"], key


@pytest.mark.parametrize(("keys", "words"), [
    ({"budgets": 1}, ["/budgets", "unknown key", "budget"]), ({"budget": []}, ["/budget", "empty"]),
    ({"budget": ["50%", "0.5"]}, ["/budget/1", "50%"]), ({"budget": None}, ["/budget"]), ({"order": "any"}, ["/order", "free"]),
    ({"graph": "none*.json"}, ["/graph", "none*.json"]), ({"graph": "none.json"}, ["none.json", "cannot be read"]),
    ({"work": 1.5}, ["/work"]), ({"time": -1}, ["/time"]), ({"threads": 0}, ["/threads"]), ({"seed": "x"}, ["/seed"]),
    ({"format": "lowtide-plan"}, ["/format", "plan"]), ({"version": 2}, ["version"]), ({"options": "x=1"}, ["/options"])])
def test_mistakes_are_named_with_their_place(write, tmp_path, keys, words):
    done = lowtide("sweep", write(**keys))
    assert done.code == 2 and done.out == "" and all(word in done.err for word in words), done.err
    assert not (tmp_path / "sweep.results.jsonl").exists()


def test_other_files_are_not_overwritten(write, chain, tmp_path):
    before = chain.read_text()
    done = lowtide("sweep", write(), "-o", chain)
    assert done.code == 2 and "not a result of a sweep" in done.err and chain.read_text() == before
    broken = tmp_path / "r.jsonl"
    broken.write_text('{"task":"0","given":{}}\n')
    done = lowtide("sweep", write(), "-o", broken)
    assert done.code == 2 and "line 1" in done.err


def test_two_sweeps_do_not_share_a_file(write, tmp_path, resnet):
    (tmp_path / "resnet.graph.json.gz").symlink_to(resnet)
    results = tmp_path / "r.jsonl"
    run = subprocess.Popen([BINARY, "sweep", write(graph="resnet.graph.json.gz", budget="60%", work=10**12), "-o", results])
    try:
        wait_for_handler(run)
        done = lowtide("sweep", write("other.json"), "-o", results)
        assert done.code == 2 and "another sweep" in done.err
    finally:
        run.kill()
        run.wait()


def test_the_table_fits_the_terminal(write):
    for width, locale in ((40, "C.UTF-8"), (64, "C"), (100, "C.UTF-8")):
        done = lowtide("sweep", write(f"{width}.json", budget=["100%", "1%"], order=["free", "given"]),
                       env={"COLUMNS": str(width), "LC_ALL": locale})
        assert done.code == 0 and max(map(len, done.out.splitlines()[:-1])) <= width
        assert "100%" in done.out and (width == 40 or "infeasible" in done.out)
