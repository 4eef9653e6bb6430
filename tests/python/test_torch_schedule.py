"""The schedule that code runs: every free as early as it can be, and no step that code has nothing for."""

import pytest

torch = pytest.importorskip("torch")

import lowtide
from lowtide.torch.errors import CaptureError
from lowtide.torch.lowerings.call import CALL
from lowtide.torch.planning.schedule import schedule
from lowtide.torch.program import Program, Run


def program_of(graph):
    return Program(None, graph.to_dict(), [Run(CALL) for _ in range(graph.num_ops)], 0, [], [], [], [])


@pytest.mark.parametrize("kind, share", [("chain", "70%"), ("resnet", "70%"), ("unet", "70%")])
def test_a_plan_whose_frees_come_late_takes_no_more_than_one_whose_frees_come_early(kind, share):
    graph = lowtide.generate(kind, 60, seed=3)
    program = program_of(graph)
    early = schedule(program, lowtide.own_plan(graph).steps)
    assert lowtide.simulate(graph, lowtide.Plan(early.steps)).peak == graph.own_peak
    late = schedule(program, [("compute", op) for op in graph.order])
    assert late.steps == early.steps and late.computes == list(graph.order)
    outcome = lowtide.plan(graph, share, time=None, work=20_000)
    again = schedule(program, outcome.plan.steps)
    assert lowtide.verify(graph, lowtide.Plan(again.steps)).peak <= outcome.peak
    assert [index for step, index in again.steps if step == "compute"] == again.computes
    assert len(again.computes) > graph.num_ops, "the plan makes something twice"


@pytest.mark.parametrize("kind", ["offload", "prefetch", "compute_in_place"])
def test_steps_that_code_cannot_take_are_refused(kind):
    """They were dropped in silence once, and the plan that ran was another."""
    with pytest.raises(CaptureError, match=f"step 1 of the plan is {kind} 0: PyTorch runs plans that recompute"):
        schedule(None, [("compute", 0), (kind, 0), ("free", 0)])
