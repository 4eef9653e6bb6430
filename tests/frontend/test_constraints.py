"""What others hold beside a plan, as its graph and its limits say it.  How plans keep them: test_sharing.py."""

from fake_program import GRADIENT, INPUT, OUTPUT, TANGENT, chain, changed
from lowtide.frontend.planning.constraints import Constraints, given_bytes, input_bytes, small_fixed_bytes


def test_nothing_beside_changes_nothing():
    program = chain(400, 300)
    assert Constraints().alone and Constraints(resident=5).alone
    assert Constraints().graph(program).hash == program.graph.hash
    assert Constraints().live_limits(program) == {} and not Constraints(save_limit=0).alone and not Constraints(gradients=1).alone


def test_memory_beside_a_plan_exists_from_the_start_or_from_the_barrier_on():
    program = chain(400, 300)
    before = program.graph.hash
    graph = Constraints(resident=50, gradients=20).graph(program)
    assert graph.resident_bytes == 50 and graph.tensors[-1].bytes == 20 and graph.tensors[-1].is_output
    assert graph.tensors[-1].producer == program.barrier and program.graph.hash == before
    assert Constraints(50, 20, 100).live_limits(program) == {program.barrier: 50 + INPUT + TANGENT + 20 + 100}


def test_small_tensors_that_cannot_be_copied_count_as_kept():
    program = chain(512, 513, 100, can_move=frozenset({3}))
    assert small_fixed_bytes(program) == 512 + OUTPUT + TANGENT + 2 * TANGENT + GRADIENT
    assert Constraints(7, 5, 3, 2).for_copies(program) == Constraints(7 + small_fixed_bytes(program), 5, 3, 2)


def test_a_state_at_home_on_the_host_is_no_input():
    program = chain(8)
    assert input_bytes(program) == given_bytes(program) == INPUT
    moment, other = program.graph.num_tensors, program.graph.num_tensors + 1

    def with_states(entries):
        entries["tensors"] += [{"name": name, "bytes": size, "role": "state"} for name, size in (("moment", 64), ("other", 32))]
        update = entries["ops"][-1]
        update["inputs"] += [0, moment, other]
        named = ("param", 0), ("moment", moment), ("other", other)
        update |= {"kind": "lowtide.update", "operands": [
            {"argument": name, "tensor": tensor, "shape": [], "strides": [], "dtype": "f32"} for name, tensor in named]}

    program.graph = changed(program.graph, with_states)
    assert (input_bytes(program), given_bytes(program)) == (INPUT + 64 + 32, INPUT)
    program.at_home = (moment,)
    assert (input_bytes(program), given_bytes(program)) == (INPUT + 32, INPUT)
