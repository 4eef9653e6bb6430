"""The search for a plan that code can run: what is tried where a search finds none, and what is refused in which words."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_program import FakeProgram, chain, wide
from lowtide.frontend.errors import BudgetError
from lowtide.frontend.exactness import Exactness
from lowtide.frontend.options import Options
from lowtide.frontend.planning import planner, search
from lowtide.frontend.planning.constraints import Constraints

import lowtide

SIZES = [4096] * 6
PARTS = {"techniques": "recompute,in_place,split", "costs": "a100"}


def searching(program, budget, **options):
    """The search for an answer to a question of this program."""
    question = planner.Question(program, Options(budget, **{"work": 2000, "time": None, "techniques": "recompute,in_place"} | options),
                                Constraints(), None)
    return search.Search(question.problem, question.reduced, question.terms, question.plain_terms, question.options,
                         question.transformed, question._peak_of)


@dataclass
class Calls:
    """How often lowtide.plan and lowtide.fit were called, and with which solvers and starts."""

    plans: int = 0
    fits: int = 0
    solvers: tuple = ()
    starts: tuple = ()


@pytest.fixture
def calls(monkeypatch):
    made, plan, fit = Calls(), lowtide.plan, lowtide.fit

    def planning(*given, solver="auto", start=None, **told):
        made.plans += 1
        made.solvers += (solver,)
        made.starts += (start,)
        return plan(*given, solver=solver, start=start, **told)

    def fitting(*given, **told):
        made.fits += 1
        return fit(*given, **told)

    monkeypatch.setattr(lowtide, "plan", planning)
    monkeypatch.setattr(lowtide, "fit", fitting)
    return made


def least(program, **options):
    """The smallest budget that a refusal names."""
    with pytest.raises(BudgetError) as refused:
        searching(program, 1, **options).run(None)
    return refused.value.smallest


def test_one_search_finds_a_plan_where_the_budget_is_loose(calls):
    found, floor = searching(chain(*SIZES), "80%").run(None)
    assert (calls.plans, calls.fits) == (1, 0) and not found.transforms and not found.instead
    assert floor <= found.outcome.peak <= found.outcome.budget


def test_where_a_search_finds_none_the_smallest_is_looked_for_and_known_from_then_on(calls):
    smallest = least(chain(*SIZES))
    assert calls.fits == 1
    found, _ = searching(chain(*SIZES, name="another of the same graph"), smallest, work=0).run(None)
    assert calls.fits == 1 and found.peak <= smallest
    assert calls.starts[-1] is not None  # what is known is where a search begins
    assert least(chain(*SIZES)) == smallest  # which another search may lower


def test_the_plan_of_the_smallest_peak_is_used_for_less_memory_than_it_takes_at_any_price(calls):
    """Within a larger budget the same search may find one that costs less."""
    smallest = least(chain(*SIZES))
    tight = searching(chain(*SIZES), smallest).run(None)[0].outcome
    loose = searching(chain(*SIZES), "70%").run(None)[0].outcome
    assert tight.peak <= smallest and loose.duration < tight.duration


def test_the_smallest_is_asked_for_by_itself():
    found, floor = searching(chain(*SIZES), "100%").smallest()
    assert floor <= found.peak == least(chain(*SIZES))


def test_a_start_of_another_graph_is_none(calls):
    own = lowtide.own_plan(chain(*SIZES).graph)
    searching(chain(*SIZES), "80%").run(own)
    assert calls.starts[-1] is own
    searching(chain(8), "100%").run(own)
    assert calls.starts[-1] is None
    smallest = least(chain(*SIZES))
    other = lowtide.own_plan(chain(8).graph)
    searching(chain(*SIZES), smallest, time=60).run(other)
    assert lowtide.simulate(chain(*SIZES).graph, calls.starts[-1]).peak == smallest


def test_under_a_limit_of_work_alone_earlier_searches_change_no_plan(calls):
    smallest = least(chain(*SIZES))
    calls.starts = ()
    found, _ = searching(chain(*SIZES), smallest).run(None)
    assert calls.starts[0] is None and found.peak <= smallest


def test_a_solver_that_finds_none_is_followed_by_auto_which_says_so(calls):
    found, _ = searching(chain(*[4096] * 30), "70%", solver="exhaustive").run(None)
    assert calls.solvers[0] == "exhaustive" and calls.solvers[-1] == "auto"  # the second time within what is known
    assert found.instead.startswith("exhaustive has found no plan of chain within the budget (")
    assert not searching(chain(*SIZES), "80%", solver="hiremate").run(None)[0].instead


# ---- transforms


def test_parts_are_planned_again_as_they_are_priced(calls):
    program = wide()
    found, _ = searching(program, "60%", **PARTS).run(None)
    assert found.transforms and program.asked == [found.transforms]
    assert calls.plans >= 2 and not found.outcome.plan.transforms  # the last is of the graph that the transforms make


def test_parts_that_take_more_than_was_estimated_are_not_the_answer():
    """As priced they do not fit, and what is smaller does."""
    def dearer(graph):
        """Kernels of two parts need twice what they were thought to."""
        few = sum(op.kind == "aten.relu" for op in graph.ops) == 2
        return graph.edited(ops={index: {"workspace": 300_000 if few else 0} for index in range(graph.num_ops)})

    expected = searching(wide(), "60%", **PARTS).run(None)[0].transforms
    search._smallest.clear()
    program = wide(priced=dearer)
    found, _ = searching(program, "60%", **PARTS).run(None)
    assert expected[0]["parts"] == 2 < found.transforms[0]["parts"]
    assert found.outcome.peak <= lowtide.Problem(program.graph, "60%").budget


def test_transforms_of_which_no_code_can_be_made_end_the_search():
    with pytest.raises(search.NotInParts, match="^it is said why$"):
        searching(wide(refuses="it is said why"), "60%", **PARTS).run(None)


@pytest.mark.parametrize("equal", [True, False])
def test_a_plan_that_keeps_all_bits_is_looked_for_beside_one_that_does_not(equal, calls):
    """With half of the limits; here none fits, so that the one that changes bits stays."""
    program = wide(kept_bits=Exactness() if equal else Exactness(sums=("a",), parts=(2,)))
    found, _ = searching(program, "60%", **PARTS).run(None)
    assert found.transforms and calls.plans == (2 if equal else 3)


@pytest.mark.parametrize(("worth", "whole"), [(1.001, False), (float("inf"), True)])
def test_a_plan_that_keeps_all_bits_is_used_if_it_takes_no_longer(worth, whole, monkeypatch):
    monkeypatch.setattr(search, "_WORTH_BITS", worth)
    plan = lowtide.plan
    split = searching(wide(), "60%", **PARTS).run(None)[0].transforms

    def forced(problem, **told):
        """In parts wherever that is allowed, though the graph as it is keeps the budget."""
        if "split" in problem.techniques:
            return plan(problem.graph, problem.budget, transforms=split, work=2000)
        outcome = plan(problem, **told)
        if outcome.plan is None or problem.graph.num_ops != 4:
            return outcome
        return SimpleNamespace(plan=outcome.plan, duration=int(1.01 * in_parts), peak=outcome.peak)

    made = lowtide.plan(wide().graph, "100%", transforms=split, work=2000)
    in_parts = made.duration
    monkeypatch.setattr(lowtide, "plan", forced)
    found, _ = searching(wide(kept_bits=Exactness(sums=("a",))), "100%", **PARTS).run(None)
    assert bool(found.transforms) != whole


def test_the_smallest_of_all_techniques_is_none_of_fewer():
    program = wide()
    alone, with_parts = least(program), least(program, **PARTS)
    assert with_parts < alone / 2
    assert searching(program, with_parts, **PARTS).run(None)[0].peak <= with_parts


def fused_gpt():
    """Two layers of a GPT in fused kernels.  `fit` misses parts that searches within budgets find, and these find them in some budgets and
    not in larger ones."""
    graph = lowtide.Graph.load(Path(__file__).with_name("fused_gpt.graph.json"))
    return FakeProgram(graph, next(op.index for op in graph.ops if op.kind == "lowtide.barrier"))


@pytest.mark.parametrize("techniques", ["recompute,in_place", "recompute,in_place,split"])
@pytest.mark.parametrize("program", [lambda: chain(*SIZES), wide, fused_gpt])
def test_no_refusal_names_more_than_a_budget_that_is_kept_and_what_it_names_is_kept(program, techniques):
    """Each search by itself: nothing is known of the others."""
    def ask(budget):
        search._smallest.clear()
        try:
            found, _ = searching(program(), budget, techniques=techniques, costs="a100", work=7000).run(None)
        except BudgetError as error:
            return error.smallest
        assert found.outcome.peak <= budget
        return None

    first = ask(1)
    named = {budget: ask(budget) for budget in (int(share * first) for share in (0.85, 0.9, 0.95))}
    kept = [budget for budget, smallest in named.items() if smallest is None]
    smallest = {first, *(n for n in named.values() if n is not None)}
    assert not kept or max(smallest) <= min(kept)
    assert all(ask(n) is None for n in smallest)


def test_parts_of_which_no_code_can_be_made_are_not_named(monkeypatch):
    """Where a search for the smallest peak comes upon them: `fit` finds none here."""
    fit, alone = lowtide.fit, least(wide())
    monkeypatch.setattr(lowtide, "fit", lambda *given, techniques="", **told: fit(*given, **told))
    assert least(wide(), **PARTS) < alone
    search._smallest.clear()
    assert least(wide(refuses="it is said why"), **PARTS) == alone


# ---- refusals


def outcome(floor=None, status="unknown"):
    return SimpleNamespace(floor=floor, status=status)


@pytest.mark.parametrize(("of", "words"), [
    (outcome(5000), "no plan of it can take less than 4.88 KiB (5000 bytes), proven"),
    (outcome(100, "infeasible"), "none that keeps it saves as little for the backward as it may, proven"),
    (outcome(100), "the search found none (no plan can take less than 100 B)")])
def test_a_refusal_says_what_is_proven_and_what_was_found(of, words):
    problem = lowtide.Problem(chain(*SIZES).graph, 4000)
    own_peak = problem.graph.own_peak
    error = search.refusal(problem, of, None)
    assert words in str(error) and f"the smallest found takes 24 KiB ({own_peak} bytes)" in str(error)
    assert (error.floor, error.smallest, error.budget) == (of.floor, own_peak, 4000)
    duration = problem.graph.duration * 3 // 2
    error = search.refusal(problem, of, search.Found([], SimpleNamespace(duration=duration), 9000), 0.9)
    assert "the smallest found takes 8.79 KiB (9000 bytes) and 50 % more time" in str(error) or "49 % more" in str(error)
    assert error.smallest == 9000 and "more time than" not in str(error)
    parts = lowtide.Problem(problem.graph, 4000, techniques="recompute,split")
    assert "more time than 0.9 s may find smaller ones in parts" in str(search.refusal(parts, of, search.Found(
        [], SimpleNamespace(duration=duration), 9000), 0.9))
