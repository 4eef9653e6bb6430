"""The check of a card: its parent process, its worker, its words, and some of its sections on a CPU."""

import json
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from cuda_graph_support import StandIn
from lowtide.torch.check import report
from lowtide.torch.check.__main__ import main
from lowtide.torch.check.meanings import FAULTS, NOTES
from lowtide.torch.check.parent import run_sections
from lowtide.torch.check.section import Context, DeviceLost, Section
from lowtide.torch.check.sections import recorded
from lowtide.torch.check.sections.suites import suites
from lowtide.torch.check.table import SECTIONS
from lowtide.torch.check.timeline import merged, overlap
from lowtide.torch.check.worker import run

# A worker without torch: each section is named after what it does.
WORKER = """
import json, os, subprocess, sys, time
for name in sys.argv[1].split(","):
    if name.startswith("unborn"):
        os._exit(4)
    if name.startswith("hangs"):  # before its time begins, so that a machine with other work has it, too
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(json.dumps({"result": {"section": name, "what": "child", "faults": [], "notes": [], "pid": child.pid}}), flush=True)
    print(json.dumps({"begin": name}), flush=True)
    if name.startswith("dies"):
        os._exit(9)
    if name.startswith("hangs"):
        time.sleep(600)
    result = {"section": name, "what": os.environ.get("SETTING", "unset"), "faults": [], "notes": [], "pid": os.getpid()}
    print(json.dumps({"result": result}) + "\\nno event", flush=True)
    print(json.dumps({"end": name}), flush=True)
    if name.startswith("lost"):
        os._exit(3)
"""


def heard(names, seconds=600.0, limits=None, settings=None):
    """What the parent hears of a worker that does as the names of the sections say."""
    results = []
    limits, settings = limits or {}, settings or {}
    sections = [Section(name, limits.get(name, 600.0), lambda _: None, settings.get(name, {})) for name in names]
    run_sections(sections, lambda names, _: [sys.executable, "-c", WORKER, ",".join(names)], seconds, results.append)
    return results


def ended(pid):
    """Has a process ended?  What has, and was not asked about, is a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_sections_share_a_process():
    results = heard(["a", "b"])
    assert [r["section"] for r in results] == ["a", "b"] and results[0]["pid"] == results[1]["pid"]


def test_a_section_with_an_environment_has_a_process_of_its_own():
    results = heard(["a", "b", "c"], settings={"b": {"SETTING": "mine"}})
    assert [r["what"] for r in results] == ["unset", "mine", "unset"] and len({r["pid"] for r in results}) == 3


@pytest.mark.parametrize("name, status", [("dies", 9), ("unborn", 4)])
def test_a_section_that_ends_its_process_costs_itself(name, status):
    results = heard(["a", name, "b"] if name == "dies" else [name, "b"])
    assert [(r["section"], r["faults"]) for r in results if r["section"] != "a"] == [(name, ["died"]), ("b", [])]
    assert next(r["status"] for r in results if r["section"] == name) == status


def test_a_worker_that_ends_behind_a_section_has_done_it():
    """As after an error of CUDA, behind which nothing runs."""
    results = heard(["lost", "b"])
    assert [(r["section"], r["faults"]) for r in results] == [("lost", []), ("b", [])] and results[0]["pid"] != results[1]["pid"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_section_that_hangs_is_ended_with_what_it_started():
    child, stopped, behind = heard(["hangs", "b"], limits={"hangs": 0.1})
    assert (stopped["faults"], behind["section"], behind["faults"]) == (["time"], "b", [])
    for _ in range(1000):
        if ended(child["pid"]):
            return
        time.sleep(0.01)
    raise AssertionError("the child of a section that was ended goes on")


def test_checks_without_time_are_reported():
    assert [(r["section"], r["faults"]) for r in heard(["a", "b"], seconds=1.0)] == [("a", ["left out"]), ("b", ["left out"])]


def context(hear):
    return Context("cpu", True, None, hear)


def test_an_error_in_a_section_is_a_result():
    results, events = [], []

    def raises(context):
        with context.guarded("first"):
            raise ValueError("wrong number\nof parts")
        context.say("second", value=1)
        raise KeyError("name")

    sections = [Section("raises", 60, raises), Section("behind", 60, lambda c: c.say("third"))]
    assert run(sections, context(results.append), events.append, 600) == 0
    assert [(r["section"], r["what"], r["faults"]) for r in results] == [
        ("raises", "first", ["error"]), ("raises", "second", []), ("raises", "section", ["error"]), ("behind", "third", [])]
    assert results[0]["error"] == "ValueError" and results[0]["text"] == "wrong number" and "raises" in results[0]["trace"]
    assert events == [{"begin": "raises"}, {"end": "raises"}, {"begin": "behind"}, {"end": "behind"}]


def test_nothing_runs_behind_an_error_of_the_device():
    results, events = [], []

    def loses(context):
        with context.guarded("kernel"):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        raise AssertionError("goes on")

    sections = [Section("loses", 60, loses), Section("behind", 60, lambda c: c.say("third"))]
    assert run(sections, context(results.append), events.append, 600) == 3
    assert [r["what"] for r in results] == ["kernel"] and events[-1] == {"end": "loses"}
    with pytest.raises(DeviceLost), context(results.append).guarded("outer"):
        raise DeviceLost


def test_a_section_knows_how_much_time_is_left():
    results = []
    given = context(results.append)
    given.begin("short", time.monotonic() + 30)
    assert given.has_time(1, "a step") and not given.has_time(100, "a long one")
    assert [(r["section"], r["what"], r["faults"]) for r in results] == [("short", "a long one", ["left out"])]


PLAN = {"section": "gpt", "what": "GPT 60%", "faults": [], "notes": [], "peak_mib": 10.0, "requested_mib": 9.0, "plan_mib": 9.5,
        "budget_mib": 9.8, "equal": True, "predicted": 1.0, "measured": 2.0, "measured_least": 1.5}


def test_the_verdict_says_where_and_what_it_means():
    results = [PLAN | {"faults": ["rounding"], "notes": ["host"]}, {"section": "a", "what": "b", "faults": [], "notes": []}]
    said = report.verdict(results)
    assert said.startswith("1 of 2 results are not as they should be:")
    assert FAULTS["rounding"] in said and NOTES["host"] in said and FAULTS["bits"] not in said
    assert "GPT 60% (peak 10.0, requested 9.0, plan 9.5, budget 9.8 MiB)" in said
    assert report.verdict(results[1:]) == "0 of 1 results are not as they should be."


def test_every_line_fits_a_terminal():
    long = {"section": "a", "what": "b", "faults": ["error"], "notes": [], "error": "E", "text": "x" * 300, "trace": "y"}
    for result in (PLAN, long, {"section": "a", "what": "not run", "faults": ["left out"], "notes": []}):
        for width in (40, 80):
            assert len(report.line(result, 1234.5, width)) <= width
    assert all(len(row) <= 100 for row in report.table([PLAN, PLAN | {"peak_mib": 81234.5, "measured": None}]).splitlines())
    assert report.table([long]) == ""


def test_sections_have_names_of_their_own():
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)


def test_every_fault_and_note_has_a_meaning():
    """And no meaning is left over."""
    text = "\n".join(path.read_text() for path in Path(report.__file__).parent.rglob("*.py") if path.name != "meanings.py")
    for table in (FAULTS, NOTES):
        assert [key for key in table if f'"{key}"' not in text] == []
    with pytest.raises(ValueError, match="'unheard'"):
        Context("cpu", True, None, lambda _: None).say("a", faults=["unheard"])


def test_overlaps():
    busy = merged([(5, 7), (0, 2), (1, 3), (7, 9)])
    assert busy == [(0, 3), (5, 9)]
    assert overlap((2, 6), busy) == 2 and overlap((3, 5), busy) == 0 and overlap((0, 20), busy) == 7


def test_the_command_refuses_what_it_does_not_know(capsys):
    for wrong, said in ((["--sections", "gtp"], "no section 'gtp'"), (["--tests", "/nowhere"], "no folder")):
        with pytest.raises(SystemExit) as ends:
            main([*wrong, "--device", "cpu"])
        assert ends.value.code == 2 and said in capsys.readouterr().err


def test_the_suites_that_are_there_run(tmp_path):
    (tmp_path / "test_torch_compat.py").write_text("def test_right():\n    pass\n\ndef test_wrong():\n    assert 1 == 2\n")
    for folder, expected in ((tmp_path, [("test_torch_compat.py", ["tests"], [])]), (None, [("tests", [], ["no tests"])])):
        results = []
        given = Context("cpu", True, folder, results.append)
        given.begin("suites", time.monotonic() + 300)
        suites(given)
        assert [(r["what"], r["faults"], r["notes"]) for r in results] == expected
        if folder:
            assert "1 failed, 1 passed" in results[0]["last"] and "test_wrong" in results[0]["failed"][0] and results[0]["output"]


def test_the_check_runs_on_a_cpu(tmp_path, capsys):
    """In processes of its own, as users start it."""
    code = main(["--device", "cpu", "--scale", "tiny", "--sections", "machine,runtime,attention,reserved", "--seconds", "550", "--out",
                 str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text())["results"]
    out = capsys.readouterr().out
    log = (tmp_path / "worker.log").read_text()
    assert code == 0 and all(not result["faults"] for result in results), f"{out}\n{log}"
    assert {result["section"] for result in results} == {"machine", "runtime", "attention", "reserved"}
    rows = [result for result in results if report.is_plan(result)]
    assert len(rows) == 2 and all(row["equal"] and row["peak_mib"] <= row["budget_mib"] for row in rows)
    assert "attention dropout bf16 80%" in out and f"0 of {len(results)} results are not as they should be." in out
    assert [json.loads(text) for text in (tmp_path / "results.jsonl").read_text().splitlines()] == results


@pytest.mark.parametrize("refuses", [False, True])
def test_the_section_of_cuda_graphs_says_what_is_not_recorded(monkeypatch, refuses):
    def not_recorded(self, run):
        raise RuntimeError("operation not permitted when stream is capturing")

    def measured(run):
        run()
        return dict.fromkeys(("before", "peak", "requested", "reserved"), 1 << 20)

    def models(context, *_, **__):
        torch.manual_seed(0)
        module = torch.nn.Sequential(*(part for _ in range(6) for part in (torch.nn.Linear(8, 8), torch.nn.Tanh())), MeanOfSquares())
        return module, (torch.randn(512, 8),)

    monkeypatch.setattr("lowtide.torch.runtime.recorded.CudaGraph", StandIn)
    monkeypatch.setattr("lowtide.torch.runtime.recorded.DEVICES", ("cpu",))
    monkeypatch.setattr("lowtide.torch.settings.RECORDED", ("cpu",))
    monkeypatch.setattr(recorded, "gpt", models)
    monkeypatch.setattr(recorded, "cuda_peaks", measured)
    if refuses:
        monkeypatch.setattr(StandIn, "record", not_recorded)
    results = []
    given = context(results.append)
    recorded._both_sides(given, "eager")
    recorded._whole_step(given)
    both, whole = results
    assert both["equal"] and whole["equal"]
    assert all(("not recorded" in result["faults"]) == refuses == bool(result["refused"]) for result in results)


class MeanOfSquares(torch.nn.Module):
    def forward(self, x):
        return x.square().mean()
