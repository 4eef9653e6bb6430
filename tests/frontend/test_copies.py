"""Copies and frees as code has them: which are left out, and where each free waits."""

import pytest
from fake_program import FakeProgram, bare
from lowtide.frontend.planning.copies import with_copies


def copying(steps, movable):
    """What becomes of these steps of o0: x -> a, o1: a -> b, the barrier, o3: b -> c, o4: a, c -> d."""
    graph = bare(([0], [1]), ([1], [2]), ([], []), ([2], [3]), ([1, 3], [4]))
    program = FakeProgram(graph, barrier=2, can_move=movable)
    kinds = {"o": "offload", "p": "prefetch", "f": "free"}
    steps = [("compute", step) if isinstance(step, int) else (kinds[step[0]], int(step[2:])) for step in steps]
    made = with_copies(program, steps, [what for kind, what in steps if kind == "compute"], set())
    return [what if kind == "compute" else f"{kind[0]} {what}" for kind, what in made]


@pytest.mark.parametrize(("steps", "movable", "expected"), [
    # what waits for no copy goes right after its last use
    ([0, "o 1", 1, "f 1", 2, 3, "p 1", 4, "f 2", "f 1", "f 3"], {1}, [0, "o 1", 1, "f 1", 2, 3, "f 2", "p 1", 4, "f 1", "f 3"]),
    # what waits for one that began before the barrier waits there at the latest
    ([0, "o 1", 1, 2, "f 1", 3, "f 2", "p 1", 4, "f 1", "f 3"], {1}, [0, "o 1", 1, "f 1", 2, 3, "f 2", "p 1", 4, "f 1", "f 3"]),
    ([0, 1, "o 2", 2, 3, "f 2", "p 2", 4, "f 1", "f 2", "f 3"], {2}, [0, 1, "o 2", 2, 3, "f 2", "p 2", "f 2", 4, "f 1", "f 3"]),
    # a copy that nobody fetches is none
    ([0, "o 1", 1, 2, 3, "f 2", 4, "f 1", "f 3"], {1}, [0, 1, 2, 3, "f 2", 4, "f 1", "f 3"]),
    # what cannot move stays meanwhile
    ([0, "o 1", 1, "f 1", 2, 3, "f 2", "p 1", 4, "f 1", "f 3"], set(), [0, 1, 2, 3, "f 2", 4, "f 1", "f 3"]),
])
def test_copies_are_waited_for_where_code_does(steps, movable, expected):
    assert copying(steps, movable) == expected


def test_an_op_that_runs_within_its_successor_comes_right_before_it():
    """However early the plan has it; code makes it there."""
    class Pairs(FakeProgram):
        def is_made_by_next(self, op):
            return op == 0

    program = Pairs(bare(([0], [1]), ([0], [2]), ([], []), ([1, 2], [3])), barrier=2)
    steps = [("compute", 0), ("compute", 1), ("compute", 2), ("compute", 3), ("free", 1), ("free", 2)]
    made = with_copies(program, steps, [1, 2, 0, 3], set())
    assert made == [("compute", 1), ("compute", 2), ("compute", 0), ("compute", 3), ("free", 1), ("free", 2)]


@pytest.mark.parametrize("freed", [2, 3], ids=["what it reads", "what it makes"])
def test_an_op_that_runs_within_its_successor_keeps_its_operands_until_then(freed):
    """Though the plan frees one between the two, or copies what the first has made."""
    class Pairs(FakeProgram):
        def is_made_by_next(self, op):
            return op == 1

    graph = bare(([0], [2]), ([2], [3]), ([0], [4]), ([], []), ([3, 4], [5]))
    program = Pairs(graph, barrier=3, can_move=frozenset({3}))
    between = [("free", 2)] if freed == 2 else [("offload", 3), ("free", 2)]
    back = [("free", 3), ("prefetch", 3)] if freed == 3 else []
    steps = [("compute", 0), ("compute", 1), *between, ("compute", 2), ("compute", 3), *back, ("compute", 4), ("free", 3),
             ("free", 4)]
    made = with_copies(program, steps, [0, 1, 2, 3, 4], set())
    assert [step for step in made if step[0] != "free"] == [
        ("compute", 0), ("compute", 1), ("compute", 2), *([("offload", 3)] if freed == 3 else []), ("compute", 3),
        *([("prefetch", 3)] if freed == 3 else []), ("compute", 4)]
    assert made.index(("free", 2)) > made.index(("compute", 1))


def test_a_tensor_goes_home_at_last():
    """Nobody copies it back, and it is not on the device when the step ends."""
    program = FakeProgram(bare(([0], [1]), ([], [])), barrier=1, at_home=(0,))
    steps = [("prefetch", 0), ("compute", 0), ("offload", 0), ("free", 0), ("compute", 1)]
    assert with_copies(program, steps, [0, 1], set()) == steps
    program.at_home = ()
    program.can_move = frozenset({0})
    assert ("offload", 0) not in with_copies(program, steps, [0, 1], set())


def test_the_result_of_an_elided_op_is_not_copied():
    program = FakeProgram(bare(([0], [1]), ([], []), ([1], [2])), barrier=1, can_move=frozenset({1}))
    steps = [("compute", 0), ("offload", 1), ("free", 1), ("compute", 1), ("prefetch", 1), ("compute", 2), ("free", 1)]
    assert with_copies(program, steps, [0, 1, 2], set()) == steps
    assert with_copies(program, steps, [0, 1, 2], {0}) == [*((("compute", op)) for op in (0, 1, 2)), ("free", 1)]
