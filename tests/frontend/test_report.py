"""What became of a plan, for people: the report and what each technique did."""

import json
import pickle
from collections import Counter

import pytest
from fake_program import chain, wide
from lowtide.frontend.options import Options
from lowtide.frontend.planning import breakdown
from lowtide.frontend.planning.constraints import Constraints
from lowtide.frontend.planning.planner import plan_program
from lowtide.frontend.planning.report import Technique, publish, reports, time_text

import lowtide


def report_of(program, budget="60%", constraints=None, **options):
    options = {"work": 2000, "time": None, "techniques": "recompute,in_place"} | options
    return plan_program(program, Options(budget, **options), constraints or Constraints())[1]


def test_the_parts_of_a_step_are_told_from_one_another():
    """Counted by hand: input 16, activations, what the barrier makes 8, the gradients 4 and 8."""
    report = report_of(chain(400, 300), "100%")
    assert (report.inputs, report.saved, report.between) == (16, 400 + 300 + 8, 16 + 400 + 300 + 8 + 8)
    assert report.early_peak == 16 + 400 + 300 + 8 and report.peak == report.late_peak == report.own_peak
    beside = report_of(chain(400, 300), "100%", Constraints(resident=50, gradients=20))
    assert (beside.saved, beside.inputs) == (report.saved, 16) and beside.between == report.between + 50 + 20


def test_recomputed_ops_are_listed_by_module():
    report = report_of(chain(*[4096] * 6))
    (technique,) = (t for t in report.techniques if t.name == "recompute")
    assert report.again == {module: Counter({module.replace("layers.", "f"): times})
                            for module, times in technique.modules.items()}
    assert technique.saved == report.own_peak - report.peak > 0
    assert technique.cost == pytest.approx(report.overhead) and technique.detail == f"{technique.modules.total()} results computed again"


def test_overwritten_tensors_are_listed():
    report = report_of(wide(), "100%")
    assert not [t for t in report.techniques if t.name == "in_place"]
    program = wide()
    program.graph = program.graph.edited(ops={1: {"in_place": [(3, 4)]}})
    (technique,) = report_of(program, "100%").techniques
    assert technique.name == "in_place" and technique.modules == {"body": 1} and technique.cost == 0


def test_offloaded_tensors_are_listed_with_their_stalls():
    report = report_of(chain(*[4096] * 6, can_move=frozenset(range(1, 7))), techniques="offload", link="1GB/s,0ns")
    (technique,) = report.techniques
    assert technique.name == "offload" and report.offloaded and set(report.offloaded) <= {f"a{i}" for i in range(6)}
    assert technique.detail == f"{len(report.offloaded)} results, {4 * len(report.offloaded)} KiB, to the host and back"
    assert technique.modules == {f"layers.{name[1:]}": 1 for name in report.offloaded}
    assert technique.cost == pytest.approx(report.overhead)


def test_substitutions_that_follow_one_another_are_said_together():
    split = {"kind": "split", "ops": [0, 1], "parts": 4}
    rules = [{"kind": "substitute", "rule": rule} for rule in ("b", "a", "b")]
    assert breakdown.together([*rules, split, rules[0], {"kind": "hoist"}]) == [rules, [split], rules[:1], [{"kind": "hoist"}]]
    assert [breakdown.said(several) for several in (rules, [split], [{"kind": "hoist"}])] == [
        "substitutions: 2 by b, 1 by a", "split of 2 ops into 4 parts", "hoist of the backward into the forward"]


def test_a_saving_is_called_less_and_a_cost_more():
    """Parts may take less time than the whole, and a hoist more memory."""
    said = [str(Technique("hoist", "how", saved, cost, Counter({"head": 1})))
            for saved, cost in ((2048, -0.1), (-2048, 0.1), (0, 0.0))]
    assert ["2 KiB less, -10.00 % time" in said[0], "2 KiB more, +10.00 % time" in said[1],
            "as much memory, +0.00 % time" in said[2]] == [True] * 3
    assert (time_text(0.05), time_text(-0.4534), time_text(0)) == ("5.00 % more time", "45.34 % less time", "0.00 % more time")
    many = str(Technique("recompute", "3 results", 0, 0.0, Counter({name: 9 - i for i, name in enumerate("abcd")})))
    assert many.endswith("in a, b, c, ...")


def test_a_report_is_one_line_and_a_page(tmp_path):
    report = report_of(chain(*[4096] * 6))
    assert str(report) == (f"lowtide: chain: peak 12 KiB, budget 14.4 KiB (unplanned 24 KiB), overhead {100 * report.overhead:.2f} %, "
                           f"{report.status}, planned in {report.seconds:.2f} s; bit-identical")
    report.cached, report.outside, report.transforms = True, 3, ["a hoist"]
    assert ", from the cache, a hoist; bit-identical" in str(report) and "the gradients of 3 parameters are made outside" in str(report)
    report.save_html(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text() == lowtide.report_html(report.graph, report.plan)
    report.save_snapshot(tmp_path / "plan.pickle")
    with open(tmp_path / "plan.pickle", "rb") as file:
        events = pickle.load(file)["device_traces"][0]
    live = [sum(event["size"] * {"alloc": 1, "free_completed": -1}.get(event["action"], 0) for event in events[:i])
            for i in range(len(events) + 1)]
    assert max(live) == report.peak
    report.save_trace(tmp_path / "plan.json")
    counts = [event["args"]["live"] for event in json.loads((tmp_path / "plan.json").read_text())["traceEvents"] if event["ph"] == "C"]
    assert max(counts) == report.peak
    report.own_duration = 0
    assert report.overhead == 0


def test_the_latest_plan_of_a_region_is_in_its_place():
    first, second, later = (report_of(chain(8), "100%") for _ in range(3))
    assert [publish(first, None), publish(second, None), publish(later, 0)] == [0, 1, 0]
    assert reports()[0] is later and reports()[1] is second
