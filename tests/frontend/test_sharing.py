"""One budget for several graphs: the arithmetic of who holds what beside whom, against brute force on chains."""

import itertools
import pickle
import random

import pytest
from fake_program import INPUT, OUTPUT, TANGENT, chain
from lowtide.frontend.errors import BudgetError
from lowtide.frontend.planning.constraints import Constraints, input_bytes
from lowtide.frontend.planning.sharing import Assignment, GraphToPlan, Pass, constraints_of, one_after_another, share_budget

import lowtide


def plans(program):
    """Every plan of a chain that keeps some activations and makes each other one again right before it is read, from
    the last one that is there."""
    count = program.barrier - 1
    graph = program.graph
    for kept in itertools.product((False, True), repeat=count):
        computes = [*range(count + 2)]
        for i in reversed(range(count)):
            last = max((k for k in range(i + 1) if kept[k]), default=-1)
            computes += [*range(last + 1, i + 1), program.barrier + count - i]
        steps, reads = [], [set(program.graph.op(op).inputs) for op in computes]
        for at, op in enumerate(computes):
            steps.append(("compute", op))
            for t in {*reads[at], *program.graph.op(op).outputs} - {0, *program.graph.outputs}:
                makes = next((k for k in range(at + 1, len(computes))
                              if t in program.graph.op(computes[k]).outputs), len(computes))
                if not any(t in read for read in reads[at + 1:makes]):
                    steps.append(("free", t))
        yield graph, lowtide.Plan(steps)


def held(program, graph, plan):
    """Bytes at the most in the forward, from the barrier on, and live at the barrier beside the inputs and what it
    makes."""
    memory, cut = lowtide.simulate(graph, plan).memory, plan.steps.index(("compute", program.barrier))
    return max(memory[:cut]), max(memory[cut:]), memory[cut] - INPUT - TANGENT


def keeps(problem, plan):
    try:
        return bool(lowtide.verify(problem, plan))
    except lowtide.PlanError:
        return False


SIZES = [(32,), (40, 24), (64, 8, 32), (16, 48, 16, 40)]


@pytest.mark.parametrize("sizes", SIZES)
def test_constraints_say_what_a_plan_may_hold(sizes):
    program = chain(*sizes)
    assert input_bytes(program) == INPUT
    limits = [limit - less for limit in range(OUTPUT, OUTPUT + sum(sizes) + 1, 8) for less in (0, 1)]
    for limit, (resident, gradients) in itertools.product(limits, ((0, 0), (100, 30))):
        for graph, plan in plans(program):
            early, late, saved = held(program, graph, plan)
            constraints = Constraints(resident, gradients, limit)
            graph = constraints.graph(program)
            loose = lowtide.simulate(graph, plan)
            assert loose.peak == resident + max(early, late + gradients)
            for budget in (loose.peak - 1, loose.peak, loose.peak + 64):
                problem = lowtide.Problem(graph, budget, live_limits=constraints.live_limits(program))
                assert keeps(problem, plan) == (loose.peak <= budget and saved <= limit)


@pytest.mark.parametrize("sizes", SIZES)
def test_saved_bytes_of_a_region_lie_between_its_outputs_and_those_without_a_plan(sizes):
    program = chain(*sizes)
    saved = [held(program, *pair)[2] for pair in plans(program)]
    assert GraphToPlan(program, 0, 0).saves == (min(saved), max(saved)) == (OUTPUT, OUTPUT + sum(sizes))


def test_memory_that_a_reserve_covers_is_not_counted_twice():
    captured = GraphToPlan(chain(8), 100, 0, covers=60)
    assert [captured.room(others) for others in (0, 60, 61, 200)] == [100, 100, 101, 240]


def test_regions_of_one_graph_are_one():
    one, same, other = (GraphToPlan(chain(*sizes, name=name), 0, 0)
                        for name, sizes in (("a", (8, 8)), ("b", (8, 8)), ("c", (8, 16))))
    assert one.key == same.key != other.key


def test_forwards_one_after_another_and_backwards_last_first():
    first, second = (GraphToPlan(chain(size), 0, made) for size, made in ((8, 3), (16, 5)))
    model = 100
    got = [(p.captured, p.backward, p.others, p.waiting) for p in one_after_another([first, second, first], model)]
    others = model - INPUT
    assert got == [(first, False, others, ()), (second, False, others, (first,)), (first, False, others, (first, second)),
                   (first, True, others, (first, second)), (second, True, others + 3, (first,)),
                   (first, True, others + 3 + 5, ())]
    assert all(p.others == 0 for p in one_after_another([first], INPUT - 1))


def test_constraints_are_those_of_the_pass_with_the_most_beside_it():
    chance = random.Random(1)
    for _ in range(50):
        captured_graphs = [GraphToPlan(chain(8 * (i + 1)), chance.randrange(50), 0, chance.randrange(20)) for i in range(3)]
        passes = [Pass(captured, False, chance.randrange(100), ()) for captured in captured_graphs]
        passes += [Pass(chance.choice(captured_graphs), chance.random() < 0.5, chance.randrange(100),
                        tuple(chance.choices(captured_graphs, k=chance.randrange(3)))) for _ in range(6)]
        saved = {captured.key: chance.randrange(200) for captured in captured_graphs}
        got = constraints_of(passes, saved)
        for captured in captured_graphs:
            beside = {backward: [captured.room(p.others + sum(saved[w.key] for w in p.waiting)) for p in passes
                                 if p.captured is captured and p.backward == backward] for backward in (False, True)}
            found = got[captured.key]
            assert found.resident == max(beside[False]) and found.save_limit == saved[captured.key]
            assert found.resident + found.gradients == max(beside[False] + beside[True])
            assert found.saved_earlier == max(sum(saved[w.key] for w in p.waiting) for p in passes if p.captured is captured)


def peak_of(passes, choice):
    """Bytes at the peak of these passes by the plans of `choice`: graph -> what `held` says of its plan."""
    return max(captured.resident + others + sum(choice[w.key][2] for w in waiting) + choice[captured.key][backward]
               for captured, backward, others, waiting in ((p.captured, p.backward, p.others, p.waiting) for p in passes))


@pytest.mark.parametrize("first, second", [((40, 24), (64, 8, 32)), ((32,), (32,)), ((400, 300, 200), (8,))])
def test_a_shared_budget_is_kept_and_what_is_refused_is_hard(monkeypatch, first, second):
    plan = lowtide.plan
    monkeypatch.setattr(lowtide, "plan", lambda *given, time=None, work=20_000, **named: plan(
        *given, time=None, work=work, **named))  # so that a slow machine finds no fewer plans
    captured_graphs = [GraphToPlan(chain(*first), 10, 6), GraphToPlan(chain(*second), 0, 6)]
    passes = one_after_another(captured_graphs, 2 * INPUT)
    options = {captured.key: [held(captured.program, *pair) for pair in plans(captured.program)] for captured in captured_graphs}
    choices = [dict(zip(options, choice, strict=True)) for choice in itertools.product(*options.values())]
    least, most = (f(peak_of(passes, choice) for choice in choices) for f in (min, max))
    kept = 0
    for budget in (least - 8, least, *range(least + 8, most + 8, 24), most):
        try:
            got = share_budget(passes, budget, "given", 2 * INPUT)
        except BudgetError as error:
            assert error.floor <= least and error.budget == budget and not kept, "a larger budget was refused"
            share_budget(passes, error.smallest, "given", 2 * INPUT)
            continue
        kept += 1
        assert {assignment.budget for assignment in got.values()} == {budget}
        chosen = {captured.key: held(captured.program, captured.program.graph,
                                   _without_gradients(captured.program, got[captured.key].start)) for captured in captured_graphs}
        assert peak_of(passes, chosen) <= budget
    assert kept >= 2
    assert all(assignment.start.steps.count(("compute", 0)) == 1
               for assignment in share_budget(passes, most + 100, "given", 2 * INPUT).values()), "nothing is made twice"


def _without_gradients(program, plan):
    """The plan of a constrained graph as one of the graph's own, which has no tensor for what others hold."""
    return lowtide.Plan([step for step in plan.steps if step != ("free", program.graph.num_tensors)])


def test_assignments_can_be_sent():
    """From rank to rank, with their plans."""
    one = Assignment(Constraints(1, 2, 3), 400, lowtide.plan(chain(40, 24).graph, "100%", work=100).plan, keeps=False)
    sent = pickle.loads(pickle.dumps(one))
    assert (sent.constraints, sent.budget, sent.keeps, sent.start.steps) == (one.constraints, one.budget, one.keeps, one.start.steps)
    assert pickle.loads(pickle.dumps(Assignment(Constraints(), 5, None))) == Assignment(Constraints(), 5, None)
