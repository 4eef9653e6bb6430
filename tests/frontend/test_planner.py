"""A program and a budget -> the schedule that will run, stage by stage, with nothing of it code."""

import json
import warnings

import pytest
from fake_program import INPUT, OUTPUT, chain, changed, wide
from lowtide.frontend.errors import BudgetError, CallerError, LowtideWarning
from lowtide.frontend.exactness import Exactness
from lowtide.frontend.options import Options
from lowtide.frontend.planning import planner
from lowtide.frontend.planning.constraints import Constraints
from lowtide.frontend.planning.planner import plan_program

import lowtide

SIZES = [4096] * 6
ACTIVATIONS = frozenset(range(1, 7))


def options(budget="60%", **more):
    return Options(budget, **{"work": 2000, "time": None, "techniques": "recompute,in_place"} | more)


def copying(budget="60%", **more):
    return options(budget, **{"techniques": "offload", "link": "1GB/s,0ns"} | more)


def planned(program, asked, constraints=None, **more):
    return plan_program(program, asked, constraints or Constraints(), **more)


@pytest.fixture
def asked(monkeypatch):
    """The budgets of the questions that were asked, and whether the smallest peak was."""
    made = []

    class Noted(planner.Question):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            made.append("smallest" if self.smallest else "no copies" if not self.plain_terms else self.limit)

    monkeypatch.setattr(planner, "Question", Noted)
    return made


@pytest.fixture
def searches(monkeypatch, tmp_path):
    """A cache of its own, and what was searched for."""
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    made, plan = [], lowtide.plan
    monkeypatch.setattr(lowtide, "plan", lambda *given, **told: made.append(given) or plan(*given, **told))
    return made


def entries(folder):
    return sorted((folder / "plans").glob("*.json")) if (folder / "plans").exists() else []


@pytest.mark.parametrize("share", ["100%", "60%", "45%"])
def test_a_plan_is_scheduled_within_its_budget_and_reported(share):
    program = chain(*SIZES)
    graph = program.graph
    schedule, report = planned(program, options(share))
    assert report.peak <= report.budget == lowtide.Problem(graph, share).budget
    assert lowtide.verify(report.graph, report.plan, budget=report.budget).peak == report.peak
    assert (report.own_peak, report.ops, report.inputs) == (graph.own_peak, graph.num_ops, INPUT)
    assert max(report.early_peak, report.late_peak) == report.peak and report.saved >= OUTPUT
    counts = {index: schedule.ops.count(index) - 1 for index in schedule.ops}
    assert {name: sum(again.values()) for name, again in report.again.items()} == {
        f"layers.{index}": times for index, times in counts.items() if times}
    assert bool(report.again) == (share != "100%")


def test_memory_beside_a_plan_counts_in_the_budget():
    _, alone = planned(chain(*SIZES), options(20_000))
    _, beside = planned(chain(*SIZES), options(20_000), Constraints(resident=6000, gradients=500))
    assert alone.peak <= 20_000 >= beside.peak and beside.saved <= alone.saved - 4096 and beside.resident == 6000
    _, limited = planned(chain(*SIZES), options(50_000), Constraints(save_limit=9000))
    assert limited.saved <= 9000 < planned(chain(*SIZES), options(50_000))[1].saved


def test_a_budget_below_the_floor_is_refused_with_the_smallest_that_is_kept():
    with pytest.raises(BudgetError, match="proven; the smallest found takes .* more time; without a plan it takes") as refused:
        planned(chain(*SIZES), options(5000))
    assert refused.value.budget == 5000 < refused.value.floor <= refused.value.smallest
    _, report = planned(chain(*SIZES), options(refused.value.smallest))
    assert report.peak <= refused.value.smallest
    with pytest.raises(BudgetError):
        planned(chain(*SIZES), options(), budget=5000)  # in the place of that of the options


# ---- the cache


def test_a_plan_is_searched_for_once(searches):
    first = planned(chain(*SIZES), options())[1]
    assert searches and not first.cached
    searches.clear()
    again = planned(chain(*SIZES), options())[1]
    assert not searches and again.cached and again.plan.steps == first.plan.steps
    for other in (options("70%"), options(seed=2), options(order="given"), options(work=2001)):
        assert not planned(chain(*SIZES), other)[1].cached
    assert not planned(chain(*SIZES[1:]), options())[1].cached
    assert not planned(chain(*SIZES), options(), Constraints(resident=8))[1].cached


@pytest.mark.parametrize("broken", [
    lambda entry: entry | {"steps": entry["steps"][1:]}, lambda entry: entry | {"steps": [["compute", 99]]},
    lambda entry: {key: entry[key] for key in entry if key != "bound"}, lambda entry: [], lambda entry: entry | {"steps": 3},
    lambda entry: entry | {"transforms": [{"kind": "hoist"}]}],
    ids=["a step short", "ops of another graph", "a key short", "a list", "no steps", "transforms that cannot be applied"])
def test_an_entry_that_does_not_hold_is_searched_for_again(broken, searches, tmp_path):
    planned(chain(*SIZES), options())
    (file,) = entries(tmp_path)
    file.write_text(json.dumps(broken(json.loads(file.read_text()))))
    searches.clear()
    assert not planned(chain(*SIZES), options())[1].cached and searches
    assert planned(chain(*SIZES), options())[1].cached


class Cancelled:
    """An outcome of a search that somebody has ended."""

    def __init__(self, outcome):
        self.outcome, self.stopped_by = outcome, "cancelled"

    def __getattr__(self, name):
        return getattr(self.outcome, name)


def test_a_search_that_was_cancelled_is_not_kept(searches, tmp_path, monkeypatch):
    """With a plan in hand: a poorer one than the next start would find."""
    plan = lowtide.plan
    with monkeypatch.context() as patched:
        patched.setattr(lowtide, "plan", lambda *given, **told: Cancelled(plan(*given, **told)))
        assert planned(chain(*SIZES), options())[1].again and not entries(tmp_path)
    assert not planned(chain(*SIZES), options())[1].cached and entries(tmp_path)


def test_an_exception_of_the_callers_progress_is_the_callers():
    def heard(event):
        raise KeyError("enough")

    with pytest.raises(CallerError) as raised:
        planned(chain(*SIZES), options(progress=heard))
    assert isinstance(raised.value.__cause__, KeyError)


def test_that_another_solver_has_planned_is_said_of_a_kept_plan_too(searches):
    asked = options("70%", solver="exhaustive")
    program = chain(*[4096] * 30)
    for cached in (False, True):
        with pytest.warns(LowtideWarning, match="exhaustive has found no plan of chain .*; auto has"):
            assert planned(program, asked)[1].cached == cached


# ---- copies to the host


def test_copies_that_code_can_make_are_made(asked):
    schedule, report = planned(chain(*SIZES, can_move=ACTIVATIONS), copying())
    assert asked == [report.budget] and schedule.copied and report.offloaded == {f"a{t - 1}": 4096 for t in schedule.copied}
    assert report.link == "1GB/s,0ns" and report.peak <= report.budget and not report.again


def test_where_code_can_make_fewer_copies_the_plan_is_made_again_within_less(asked):
    """What stays takes more than the plan says, by which the next budget is less: here the smallest result, which is the
    cheapest to copy and stays."""
    program = chain(600, *SIZES, can_move=frozenset(range(2, 8)))
    own_peak = program.graph.own_peak
    schedule, report = planned(program, copying(own_peak - 500))
    assert asked == [own_peak - 500, own_peak - 1000]
    assert schedule.copied and set(schedule.copied) <= program.can_move and report.peak <= report.budget == own_peak - 500


def test_where_no_copy_can_be_made_there_are_none_in_the_end(asked):
    for share in ("60%", "45%"):  # of which half is less than what stays
        asked.clear()
        schedule, report = planned(chain(*SIZES), copying(share))
        assert not schedule.copied and report.link is None and report.peak <= report.budget
        assert asked[0] == report.budget and asked[-2:] == ["smallest", "no copies"]
        assert all(0 < limit <= report.budget for limit in asked[:-2]) and len(asked) <= 3 + planner.ATTEMPTS


def test_an_infeasible_budget_is_refused_with_the_smallest_peak_of_all_attempts():
    with pytest.raises(BudgetError) as refused:
        planned(chain(*SIZES), copying("20%"))
    smallest = refused.value.smallest
    assert refused.value.floor <= smallest
    assert planned(chain(*SIZES), copying(smallest))[1].peak <= smallest


def test_a_state_whose_home_is_the_host_needs_room_there():
    def program():
        made = chain(*SIZES, at_home=(0,))
        made.graph = changed(made.graph, lambda entries: entries["tensors"][0].update(role="state", home="host", bytes=5000))
        return made

    with pytest.raises(BudgetError, match="host_budget: 4000 bytes are less than the 5000 of the optimizer's state") as refused:
        planned(program(), copying(host_budget=4000))
    assert (refused.value.floor, refused.value.smallest) == (0, None)


# ---- transforms


def parts(budget="60%", **more):
    return options(budget, **{"techniques": "recompute,in_place,split", "costs": "a100"} | more)


def test_a_region_runs_in_parts_where_nothing_else_keeps_the_budget():
    program = wide(kept_bits=Exactness(sums=("weight",), parts=(2,)))
    _, report = planned(program, parts())
    assert report.transforms == ["split of 3 ops into 2 parts"] and report.peak <= report.budget < report.own_peak
    (split,) = (t for t in report.techniques if t.name == "split")
    assert split.modules == {"body": 3} and report.own_peak - split.saved <= report.budget
    assert "sums over 2 parts" in str(report)
    with pytest.raises(BudgetError):
        planned(wide(), options())


def test_a_graph_that_cannot_run_in_parts_is_reported_and_planned_whole():
    program = wide(refuses="the 3rd op has no axis")
    with pytest.warns(LowtideWarning, match="wide does not run in parts: the 3rd op has no axis"), pytest.raises(BudgetError):
        planned(program, parts())
    assert program.asked
    loose = wide(refuses="it never does")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not planned(loose, parts("100%"))[1].transforms and not loose.asked


def test_plans_in_parts_are_kept_with_their_transforms(searches):
    first, again = (planned(wide(), parts())[1] for _ in range(2))
    assert again.cached and again.transforms == first.transforms and again.plan.steps == first.plan.steps
    with pytest.warns(LowtideWarning, match="does not run in parts"), pytest.raises(BudgetError):
        planned(wide(refuses="this one cannot"), parts())  # a kept plan of which no code can be made is none


@pytest.mark.parametrize("technique", ["split", "hoist", "substitute", "in_place"])
def test_one_technique_alone_is_enough_for_a_plan(technique):
    schedule, report = planned(chain(*SIZES), options(30_000, techniques=[technique]))
    assert report.peak <= report.budget and len(set(schedule.ops)) == len(schedule.ops)
