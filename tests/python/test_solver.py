"""Solvers that are written in Python: registered, run, stopped, refused."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")

from package_support import CHAIN, ROOT, script

WITHIN = [0, 2, 1, 3]  # of CHAIN: 4 + 2 + 1 + 3 ticks


@pytest.fixture(scope="module")
def chain():
    return lowtide.Graph.from_dict(CHAIN)


@pytest.fixture(scope="module")
def large():
    return lowtide.generate("transformer", 1000)


def registered(solve, traits=()):
    """A name of its own, since none can be used twice in a process."""
    name = f"test-{len(lowtide.solvers())}"
    lowtide.register_solver(name, solve, summary="of a test", traits=traits)
    return name


def test_the_page_runs():
    text = (ROOT / "docs/how-to/write-a-solver.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    outcome = names["outcome"]
    assert outcome.found_by == "late" and outcome.plan is not None and outcome.overhead > 0
    assert lowtide.verify(names["graph"], outcome.plan, budget="85%").peak == outcome.peak
    assert ("late", "computes again before late readers", ("constructive", "guest")) in lowtide.solvers()


def test_the_arguments_of_a_solver(chain):
    seen = {}

    def look(problem, context):
        seen.update(budget=problem.budget, order=problem.order, seed=context.seed, threads=context.threads,
                    seconds=context.seconds_left, work=context.work_left, starts=context.starts, best=context.best,
                    cost=context.best_cost, bound=context.bound, floor=context.floor, ops=problem.graph.num_ops)
        plan = lowtide.Plan.from_sequence(problem.graph, WITHIN)
        assert context.offer(plan) is True and context.offer(plan) is False
        seen.update(after=context.best.steps == plan.steps, peak=context.best_cost.peak, context=context)

    start = lowtide.own_plan(chain)
    outcome = lowtide.plan(chain, "100%", order="free", solver=registered(look), work=5000, seed=7, threads=2,
                           start=lowtide.Plan.from_sequence(chain, [0, 1, 2, 3]))
    # The start is the least there is, so the solver is not asked.
    assert outcome.found_by == "start" and seen == {}
    name = registered(look)
    outcome = lowtide.plan(chain, 30, order="free", solver=name, work=5000, seed=7, threads=2)
    context = seen.pop("context")
    assert outcome.found_by == name and outcome.status == "optimal" and outcome.duration == 10
    assert seen == {"budget": 30, "order": "free", "seed": 7, "threads": 2, "seconds": None, "work": 5000, "starts": [],
                    "best": None, "cost": None, "bound": 10, "floor": seen["floor"], "ops": 4, "after": True,
                    "peak": outcome.peak}
    assert len(start) > 0
    with pytest.raises(RuntimeError, match="has ended"):
        context.should_stop()


def test_a_returned_plan_counts_like_an_offered_one(chain):
    name = registered(lambda problem, context: lowtide.Plan.from_sequence(problem.graph, WITHIN))
    assert lowtide.plan(chain, "100%", solver=name).duration == 10
    assert lowtide.plan(lowtide.Problem(chain, 30), solver=name).found_by == name


def test_over_the_budget_it_is_no_answer_but_seen(chain):
    name = registered(lambda problem, context: lowtide.own_plan(problem.graph))
    outcome = lowtide.plan(chain, 20, solver=name)
    assert (outcome.status, outcome.plan, outcome.smallest_peak) == ("unknown", None, 24)
    assert outcome.stopped_by == "gave up"


def test_a_plan_that_breaks_a_rule_is_refused(chain):
    broken = lowtide.Plan([("compute", 1)])
    with pytest.raises(lowtide.PlanError) as caught:
        lowtide.plan(chain, 30, solver=registered(lambda problem, context: broken))
    assert caught.value.step == 0

    def mends(problem, context):
        with pytest.raises(lowtide.PlanError):
            context.offer(broken)
        return lowtide.own_plan(problem.graph)

    assert lowtide.plan(chain, 30, solver=registered(mends)).duration == 10
    # Another order than the given one.
    with pytest.raises(lowtide.PlanError):
        lowtide.plan(chain, 30, order="given", solver=registered(
            lambda problem, context: lowtide.Plan.from_sequence(problem.graph, WITHIN)))


class Own(Exception):
    pass


def test_an_exception_reaches_whoever_asks_for_that_solver(large):
    raised = Own("mine")

    def fails(problem, context):
        raise raised

    name = registered(fails)
    with pytest.raises(Own) as caught:
        lowtide.plan(large, "60%", solver=name)
    assert caught.value is raised


@pytest.mark.parametrize("limits", [{"work": 1_000_000}, {"work": 1_000_000, "time": 600, "threads": 2}])
def test_an_exception_costs_auto_that_solver_alone(large, limits):
    done = []

    def fails(problem, context):
        if not done:
            raise Own("mine")

    name = registered(fails, ("constructive",))
    outcome = lowtide.plan(large, "60%", **limits)
    done.append(True)  # the other tests run `auto` too
    assert outcome.plan is not None
    assert f"{name} failed" in outcome.note and "Own: mine" in outcome.note and "\n" not in outcome.note


def test_a_result_that_is_no_plan_is_refused(chain):
    for value, kind in (([0, 1], "list"), (True, "bool"), ("plan", "str")):
        name = registered(lambda problem, context, value=value: value)
        with pytest.raises(TypeError, match=f'"{name}" returned .*{kind}.*Plan or None'):
            lowtide.plan(chain, 30, solver=name)


def test_a_bound_holds_until_a_plan_beats_it(chain):
    def boasts(problem, context):
        context.raise_bound(1000)
        assert context.bound == 1000
        return lowtide.own_plan(problem.graph)

    outcome = lowtide.plan(chain, 30, solver=registered(boasts))
    assert outcome.bound == 10 and outcome.status == "optimal" and "claimed" in outcome.note

    def proves(problem, context):
        context.raise_bound(11)

    outcome = lowtide.plan(chain, 20, solver=registered(proves))
    assert outcome.bound == 11 and outcome.note == ""


def test_auto_does_not_take_a_bound_on_trust(large):
    done = []

    def boasts(problem, context):
        if not done:
            context.raise_bound(10 * problem.graph.duration)
        done.append(True)

    registered(boasts, ("proving",))
    outcome = lowtide.plan(large, "60%", work=300_000)
    assert done and outcome.plan is not None and outcome.bound <= outcome.duration < 2 * large.duration
    assert "registered solver" in outcome.note


def test_registration_says_what_is_wrong():
    def solve(problem, context):
        return None

    for name in ("auto", "greedy", registered(solve)):
        with pytest.raises(lowtide.Error, match=f'"{name}".*there is one of that name'):
            lowtide.register_solver(name, solve, summary="again")
    for name in ("", "two words", "x" * 41, "ü"):
        with pytest.raises(lowtide.Error, match="letters"):
            lowtide.register_solver(name, solve, summary="badly named")
    with pytest.raises(lowtide.Error, match='"quick".*constructive, tight, anytime, proving, transfers, external'):
        lowtide.register_solver("fine", solve, summary="s", traits=("quick",))
    with pytest.raises(lowtide.Error, match='"portfolio"'):
        lowtide.register_solver("fine", solve, summary="s", traits=["portfolio"])
    with pytest.raises(TypeError, match="several words"):
        lowtide.register_solver("fine", solve, summary="s", traits="tight")
    with pytest.raises(TypeError, match="callable as solve"):
        lowtide.register_solver("fine", "solve", summary="s")
    with pytest.raises(TypeError):
        lowtide.register_solver("fine", solve)
    assert "fine" not in [name for name, _, _ in lowtide.solvers()]


def test_options_are_refused_by_name(chain):
    with pytest.raises(lowtide.Error, match="width"):
        lowtide.plan(chain, 30, solver=registered(lambda problem, context: None), options={"width": 3})


def waits(problem, context):
    while not context.should_stop():
        time.sleep(0.001)


def test_limits_end_it(large):
    name = registered(waits)
    assert lowtide.plan(large, "50%", solver=name, time=0.3).stopped_by == "deadline"
    calls = []

    def counts(problem, context):
        while not context.should_stop(work=1000):
            calls.append(context.work_left)

    assert lowtide.plan(large, "50%", solver=registered(counts), work=10_000).stopped_by == "work limit"
    assert calls == [10_000 - 1000 * (i + 1) for i in range(len(calls))] and 8 <= len(calls) <= 10


def test_progress_is_told_and_may_end_it(large):
    heard = []

    def told(event):
        heard.append(event)
        raise Own

    def offers(problem, context):
        context.offer(lowtide.own_plan(problem.graph))
        waits(problem, context)

    name = registered(offers)
    with pytest.raises(Own):
        lowtide.plan(large, "50%", solver=name, time=100, progress=told)
    assert len(heard) == 1 and heard[0].solver == name


def test_auto_asks_for_traits(large):
    asked = []

    def note(trait):
        def solve(problem, context):
            asked.append(trait)

        return solve

    for trait in ("constructive", "tight", "anytime", "proving", "external"):
        registered(note(trait), (trait,))
    registered(note("none"))
    outcome = lowtide.plan(large, "50%", work=300_000)
    assert set(asked) == {"constructive", "tight", "anytime", "proving"}
    parts = {part.name: part for part in outcome.parts}
    assert parts[outcome.found_by].plans > 0 and parts["search"].work > 0
    assert sum(part.plans for part in outcome.parts) == len(outcome.history)
    lowtide.curve(large, points=2, work=300_000)  # on threads of its own


def test_solving_within_a_solver(large):
    def asks(problem, context):
        return lowtide.plan(problem, solver="evict", work=100_000).plan

    assert lowtide.plan(large, "60%", solver=registered(asks)).plan is not None


def test_ctrl_c_and_the_end_of_the_interpreter(tmp_path):
    text = """
import sys, lowtide
def waits(problem, context):
    context.offer(lowtide.own_plan(problem.graph))
    print("begun", flush=True)
    while not context.should_stop():
        pass
lowtide.register_solver("waits", waits, summary="waits")
graph = lowtide.generate("transformer", 1000)
def run():
    return lowtide.plan(graph, "50%", solver="waits", time=100)
if sys.argv[1] == "interrupt":
    print(run().stopped_by, flush=True)
else:
    import threading
    threading.Thread(target=run, daemon=True).start()
    import time
    time.sleep(1)
"""
    process = subprocess.Popen([sys.executable, "-c", text, "interrupt"], stdout=subprocess.PIPE, text=True,
                               cwd=Path(sys.executable).parent)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=600)[0] == "cancelled\n" and process.returncode == 0
    done = script(text, "end")
    assert done.returncode == 0 and done.stdout == "begun\n", done.stderr


def test_sequences_that_cannot_be_run(chain):
    for sequence, words in (([1], "B.*reads.*a.*nothing before"), ([0, 9], "none of index 9"), ([0, "x"], r"\[1\].*no index")):
        with pytest.raises(lowtide.Error, match=words):
            lowtide.Plan.from_sequence(chain, sequence)
    assert lowtide.Plan.from_sequence(chain, chain.order).steps == lowtide.own_plan(chain).steps
