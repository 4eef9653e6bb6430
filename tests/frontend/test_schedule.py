"""The schedule that code runs: every free as early as it can be."""

import pytest
from fake_program import FakeProgram
from lowtide.frontend.planning.schedule import schedule

import lowtide


def program_of(graph):
    return FakeProgram(graph)


@pytest.mark.parametrize("kind, share", [("chain", "70%"), ("resnet", "70%"), ("unet", "70%")])
def test_a_plan_whose_frees_come_late_takes_no_more_than_one_whose_frees_come_early(kind, share):
    graph = lowtide.generate(kind, 60, seed=3)
    program = program_of(graph)
    early = schedule(program, lowtide.own_plan(graph).steps)
    assert lowtide.simulate(graph, lowtide.Plan(early.steps)).peak == graph.own_peak
    late = schedule(program, [("compute", op) for op in graph.order])
    assert late.steps == early.steps and late.ops == list(graph.order)
    outcome = lowtide.plan(graph, share, time=None, work=20_000)
    again = schedule(program, outcome.plan.steps)
    assert lowtide.verify(graph, lowtide.Plan(again.steps)).peak <= outcome.peak
    assert [index for step, index in again.steps if step == "compute"] == again.ops
    assert len(again.ops) > graph.num_ops, "the plan makes something twice"


def test_an_operand_at_its_last_use_is_overwritten():
    """However the plan says it: a result takes the storage of an operand that is not read again."""
    tensors = [{"name": name, "bytes": 8} for name in "xabcd"]
    ops = [{"name": name, "inputs": inputs, "outputs": [i + 1], "time": 1} for i, (name, inputs) in
           enumerate([("a", [0]), ("b", [1]), ("c", [1]), ("d", [2, 3])])]
    for i, pairs in ((1, [[1, 2]]), (2, [[1, 3]]), (3, [[2, 4], [3, 4]])):
        ops[i]["in_place"] = pairs
    graph = lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "tensors": tensors, "ops": ops,
                                     "outputs": [4]})
    plain = [("compute", 0), ("compute", 1), ("compute", 2), ("free", 1), ("compute", 3), ("free", 2), ("free", 3)]
    written = schedule(program_of(graph), plain)
    assert written.computes[:3] == [(0, ()), (1, ()), (2, (1,))] and written.computes[3][1] in ((2,), (3,))
    assert written.ops == [0, 1, 2, 3] and schedule(program_of(graph), written.steps).steps == written.steps
    again = schedule(program_of(graph), [("compute", op) for op in (0, 1, 0, 2, 3)])
    assert again.computes[:4] == [(0, ()), (1, (1,)), (0, ()), (2, (1,))]  # what is made again is another storage
