"""`lowtide curve` and `lowtide fit`: text, JSON, CSV, pages, plans, limits, errors."""

import csv
import io
import json
import re
import signal
import subprocess
import time

import pytest
from conftest import BINARY, lowtide, wait_for_handler

POINT_KEYS = ["budget", "share_percent", "status", "peak", "duration", "overhead_percent", "bound", "bound_percent",
              "gap_percent", "link_price", "transforms", "found_by", "reason"]


ONE_OP = json.dumps({
    "format": "lowtide-graph", "version": 1, "tensors": [{"bytes": 4}],
    "ops": [{"inputs": [], "outputs": [0], "time": 1}], "outputs": [0]})

# So that the runs end alike on every machine, and soon.
WORK = ("--work", 600_000)


@pytest.fixture(scope="module")
def said(resnet):
    done = lowtide("curve", resnet, "--points", 6, *WORK, "--json")
    assert done.code == 0 and done.err == ""
    return done.json()


def test_points_are_evenly_spaced_and_monotone(said):
    points = said["points"]
    assert len(points) == 6 and all(list(point) == POINT_KEYS for point in points)
    assert points[0]["budget"] == said["own_peak"]
    shares = [point["share_percent"] for point in points]
    assert shares == pytest.approx([100, 84, 68, 52, 36, 20], abs=0.01)
    assert points[0]["status"] == "optimal" and points[0]["overhead_percent"] == 0
    durations = [point["duration"] for point in points if point["duration"] is not None]
    bounds = [point["bound"] for point in points if point["bound"] is not None]
    assert durations == sorted(durations) and bounds == sorted(bounds)
    for point in points:
        if point["peak"] is not None:
            assert point["peak"] <= point["budget"] and point["bound"] <= point["duration"]
        assert (point["status"] == "infeasible") == (point["budget"] < said["floor"])
    smallest = said["smallest"]
    assert smallest["peak"] == smallest["budget"] >= said["floor"]


def test_text_has_the_plot_and_the_table(resnet):
    for width, locale in ((40, "C.UTF-8"), (60, "C"), (100, "C.UTF-8")):
        done = lowtide("curve", resnet, "--points", 5, *WORK, env={"COLUMNS": str(width), "LC_ALL": locale})
        assert done.code == 0 and done.err == ""
        for word in ("graph", "overhead", "bound", "smallest", "floor", "100.0 %", "optimal"):
            assert word in done.out
        assert "\x1b" not in done.out and done.out.isascii() == (locale == "C")
        plot = done.out.split("\n\n")[1].splitlines()
        assert max(map(len, plot)) <= width


def test_csv(resnet, tmp_path, said):
    path = tmp_path / "curve.csv"
    assert lowtide("curve", resnet, "--points", 6, *WORK, "--csv", path).code == 0
    printed = lowtide("curve", resnet, "--points", 6, *WORK, "--csv", "-").out
    for text in (path.read_text(), printed):
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == 7  # and the smallest reachable budget
        assert [int(row["budget"]) for row in rows[:6]] == [point["budget"] for point in said["points"]]
        assert [row["status"] for row in rows[:6]] == [point["status"] for point in said["points"]]
        assert all((row["duration"] == "") == (row["status"] in ("infeasible", "unknown")) for row in rows)


def test_page_is_complete_in_itself(resnet, tmp_path):
    page = tmp_path / "curve.html"
    assert lowtide("curve", resnet, "--points", 4, *WORK, "--html", page).code == 0
    text = page.read_text()
    assert text.lstrip().lower().startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text), "the page asks for the network"
    assert "{{" not in text and "prefers-color-scheme: dark" in text
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S).group(1))
    assert len(data["points"]) == 4 and data["smallest"]["duration"] >= data["base"]


def test_a_name_cannot_break_the_page(tmp_path):
    graph, page = tmp_path / "g.json", tmp_path / "p.html"
    graph.write_text(json.dumps({
        "format": "lowtide-graph", "version": 1, "name": "</script><b>\x1b[31m",
        "tensors": [{"name": "a", "bytes": 4}], "ops": [{"name": "A", "inputs": [], "outputs": [0], "time": 1}],
        "outputs": [0]}))
    done = lowtide("curve", graph, *WORK, "--html", page)
    assert done.code == 0 and "\x1b" not in done.out
    assert "</script><b>" not in page.read_text() and "\x1b" not in page.read_text()


def test_plans_are_written_and_hold(resnet, tmp_path):
    folder = tmp_path / "deep" / "plans"
    said = lowtide("curve", resnet, "--points", 4, *WORK, "-o", folder, "--json").json()
    planned = [point for point in [*said["points"], said["smallest"]] if point["peak"] is not None]
    assert {path.name for path in folder.iterdir()} == {f"{point['budget']}.plan.json" for point in planned}
    for point in planned:
        path = folder / f"{point['budget']}.plan.json"
        checked = lowtide("verify", resnet, path, "--json").json()
        assert checked["ok"] and checked["duration"] == point["duration"] and checked["peak"] == point["peak"]


def test_with_a_work_limit_threads_change_nothing(resnet):
    runs = []
    for threads in (1, 3):
        run = lowtide("curve", resnet, "--points", 5, "--work", 1_000_000, "--threads", threads, "--json").json()
        run.pop("time_s")
        runs.append(run)
    assert runs[0] == runs[1]


def test_ranges(chain):
    # Own peak: 24 bytes. One op needs 18; that no plan needs less than 24 only looking at all of them proves.
    said = lowtide("curve", chain, "--from", "16", "--to", "act:100%", "--points", 9, *WORK, "--json").json()
    assert [point["budget"] for point in said["points"]] == list(range(24, 15, -1))
    assert [point["status"] for point in said["points"]][-2:] == ["infeasible", "infeasible"]
    assert said["floor"] == 24
    one = lowtide("curve", chain, "--from", "100%", *WORK, "--json")
    assert one.code == 0 and len(one.json()["points"]) == 1
    none = lowtide("curve", chain, "--from", "1", "--to", "9", *WORK, "--json")
    assert none.code == 1 and none.json()["smallest"]["budget"] >= 18
    assert lowtide("curve", chain, "--from", "1", "--to", "9", *WORK).code == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--from", "80%", "--to", "40%"], ["--from", "--to", "smaller first"]),
        (["--from", "0.6"], ["--from", "did you mean 60%?"]),
        (["--from", "lots"], ["--from", "lots", "80%"]),
        (["--to", "-3"], ["--to", "negative"]),
        (["--points", "1"], ["--points"]),
        (["--points", "many"], ["--points"]),
        (["--time", "-1"], ["--time"]),
        (["--order", "sorted"], ["sorted"]),
        (["--threads", "0"], ["--threads"]),
        (["--csv", "-", "--json"], ["--csv -", "--json"]),
        (["--csv", "/no/such/folder/c.csv"], ["/no/such/folder"]),
        (["-o", "/dev/null"], ["-o /dev/null", "folder"]),
    ],
)
def test_bad_arguments(chain, arguments, words):
    done = lowtide("curve", chain, *arguments)
    assert done.code == 2 and done.out == ""
    for word in words:
        assert word in done.err


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "resnet.graph.json"
    assert lowtide("generate", "resnet", "--ops", 30000, "--seed", 3, "-o", path).code == 0
    return path


@pytest.mark.parametrize("command", [["curve"], ["fit", "--overhead", "5%"]])
def test_interrupted_runs_return_what_they_have(large, command):
    run = subprocess.Popen([BINARY, command[0], large, *command[1:], "--time", "200", "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_handler(run)
    time.sleep(1)  # it may have begun to search by then, or still read
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0 and err == ""
    assert json.loads(out)["stopped_by"] in ("cancelled", "finished", "gave up")


def test_the_clock_is_for_the_whole_curve(large):
    """Loosely: the machine may be busy."""
    said = lowtide("curve", large, "--time", "1", "--json").json()
    assert said["stopped_by"] in ("deadline", "finished") and said["time_s"] < 10


def test_points_say_what_the_link_is_worth(resnet):
    run = ("curve", resnet, "--points", 3, "--from", "40%", *WORK, "--json")
    assert all(point["link_price"] is None for point in lowtide(*run).json()["points"])
    points = lowtide(*run, "--link", "2GB/s").json()["points"]
    # Of the baseline peak nothing has to leave; of less, what the link carries counts.
    assert points[0]["link_price"] == 0 and 0 < points[-1]["link_price"] < 1
    done = lowtide("fit", resnet, "--overhead", "3%", "--link", "2GB/s", *WORK, "--json").json()
    assert done["found"] and 0 <= done["link_price"] < 1


def test_fit(resnet, tmp_path):
    plan = tmp_path / "fit.plan.json"
    budgets = []
    for overhead in ("0%", "5%", "20"):
        done = lowtide("fit", resnet, "--overhead", overhead, *WORK, "-o", plan, "--json")
        assert done.code == 0 and done.err == ""
        said = done.json()
        assert said["overhead_percent"] <= float(overhead.rstrip("%")) and said["duration"] <= said["time_limit"]
        assert said["budget"] == said["peak"] >= said["floor"]
        assert said["smallest_proven"] == (said["budget"] == said["floor"])
        checked = lowtide("verify", resnet, plan, "--json").json()
        assert checked["ok"] and checked["peak"] == said["budget"] and checked["duration"] == said["duration"]
        budgets.append(said["budget"])
    assert budgets == sorted(budgets, reverse=True) and budgets[-1] < budgets[0]


def test_fit_says_what_matters(resnet, tmp_path):
    done = lowtide("fit", resnet, "--overhead", "5%", *WORK)
    assert done.code == 0 and done.err == ""
    for word in ("budget", "overhead", "bound", "too small", "proven", "time"):
        assert word in done.out
    assert max(map(len, done.out.splitlines())) <= 120
    # All of it is needed at once, whatever it takes.
    one = tmp_path / "one.graph.json"
    one.write_text(ONE_OP)
    assert "every smaller budget" in lowtide("fit", one, "--overhead", "100%").out


def test_fit_says_how_it_ended(resnet, tmp_path):
    def ended(*arguments):
        text = lowtide("fit", *arguments).out
        return re.search(r"^status +(.*)$", text, re.M).group(1), lowtide("fit", *arguments, "--json").json()

    text, said = ended(resnet, "--overhead", "5%", "--work", 1_000_000)
    assert text == "not proven the smallest; stopped by the work limit" and said["stopped_by"] == "work limit"
    text, said = ended(resnet, "--overhead", "5%", "--time", "1")
    assert "stopped by the time limit" in text and said["stopped_by"] == "deadline"
    one = tmp_path / "one.graph.json"
    one.write_text(ONE_OP)
    text, said = ended(one, "--overhead", "100%", *WORK)
    assert text.startswith("proven") and said["smallest_proven"] and said["stopped_by"] == "finished"


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], ["--overhead"]),
        (["--overhead", "-5%"], ["--overhead", "negative"]),
        (["--overhead", "0.05"], ["--overhead", "did you mean 5%?"]),
        (["--overhead", "little"], ["--overhead", "little", "5%"]),
        (["--overhead", "act:5%"], ["--overhead", "percentage"]),
        (["--overhead", "5GiB"], ["--overhead", "percentage"]),
        (["--overhead", "5%", "-o", "-", "--json"], ["-o -", "--json"]),
        (["--overhead", "5%", "-o", "/no/such/folder/p.json"], ["/no/such/folder"]),
    ],
)
def test_fit_refuses(chain, arguments, words):
    done = lowtide("fit", chain, *arguments)
    assert done.code == 2 and done.out == ""
    for word in words:
        assert word in done.err


@pytest.mark.parametrize("solver", ["greedy", "search"])
def test_another_solver_answers_alone(resnet, tmp_path, solver):
    given = ("--solver", solver, "--work", 300_000, "--json")
    plan = tmp_path / "fit.plan.json"
    fit = lowtide("fit", resnet, "--overhead", "20%", *given, "-o", plan)
    assert fit.code == 0 and fit.json()["found_by"] == solver
    written = json.loads(plan.read_text())
    assert written["found_by"]["solver"] == solver and lowtide("verify", resnet, plan).code == 0
    curve = lowtide("curve", resnet, "--points", 4, *given)
    assert {point["found_by"] for point in curve.json()["points"] if point["found_by"]} <= {solver, "given"}


def test_options_are_those_of_the_solver(resnet):
    for command in (("fit", resnet, "--overhead", "20%"), ("curve", resnet, "--points", 2)):
        refused = lowtide(*command, "--solver", "greedy", "--option", "colour=red", "--work", 1000)
        assert refused.code == 2 and "colour" in refused.err
        assert lowtide(*command, "--option", "colour").code == 2
        assert lowtide(*command, "--solver", "abacus").code == 2


@pytest.mark.parametrize("footprint, allocator", [("arena", ""), ("reserved", "expandable_segments:True")])
def test_budgets_of_what_counts(resnet, tmp_path, footprint, allocator):
    flags = ["--footprint", footprint, *(["--allocator", allocator] if allocator else [])]
    folder, table, page = tmp_path / "plans", tmp_path / "curve.csv", tmp_path / "curve.html"
    run = ("curve", resnet, "--points", 4, "--from", "50%", *WORK, *flags, "-o", folder, "--csv", table, "--html", page)
    said = lowtide(*run, "--json").json()
    assert said["footprint"] == footprint and said["allocator"] == (allocator or None)
    planned = [point for point in [*said["points"], said["smallest"]] if point["peak"] is not None]
    assert len(planned) > 2 and list(planned[0]) == [*POINT_KEYS, footprint]
    for point in planned:
        assert point["peak"] <= point[footprint] <= point["budget"]
        path = folder / f"{point['budget']}.plan.json"
        checked = lowtide("verify", resnet, path, "--json").json()
        assert checked["ok"] and checked[footprint] == point[footprint]
        written = json.loads(path.read_text())
        assert written["footprint"] == footprint and written.get("allocator", "") == allocator
    assert said["smallest"][footprint] == said["smallest"]["budget"]
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [row[footprint] for row in rows] == ["" if point["peak"] is None else str(point[footprint])
                                                for point in [*said["points"], said["smallest"]]]
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page.read_text(), re.S).group(1))
    assert data["footprint"] == footprint and data["points"][-1]["taken"] == said["points"][0][footprint]
    text = lowtide(*run[:-6]).out
    assert f"footprint  {footprint}: " in text and allocator in text

    plan = tmp_path / "fit.plan.json"
    fit = lowtide("fit", resnet, "--overhead", "10%", *WORK, *flags, "-o", plan, "--json").json()
    assert fit["footprint"] == footprint and fit["peak"] <= fit[footprint] == fit["budget"]
    assert lowtide("verify", resnet, plan, "--json").json()[footprint] == fit["budget"]


@pytest.mark.parametrize("command", [["curve"], ["fit", "--overhead", "5%"]])
@pytest.mark.parametrize("flags, word", [(["--allocator", "expandable_segments:True"], "--footprint reserved"),
                                         (["--footprint", "reserved", "--allocator", "max_split_size_mb:1"], "--allocator"),
                                         (["--footprint", "most"], "most")])
def test_bad_footprints(chain, command, flags, word):
    done = lowtide(command[0], chain, *command[1:], *flags)
    assert done.code == 2 and done.out == "" and word in done.err
