"""Hand-computed cases for verify.py: every refusal of docs/reference/cost.md, and exact peaks and durations."""

import gzip
import hashlib
import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import verify as oracle

STEP = {"c": "compute", "f": "free", "o": "offload", "p": "prefetch"}
# 20 bytes: 5 + 10 = 15 ticks out, 3 + 5 = 8 ticks in.
MACHINE = {
    "device_to_host": {"latency": 5, "bytes": 2, "ticks": 1},
    "host_to_device": {"latency": 3, "bytes": 4, "ticks": 1},
}


def op(inputs, outputs, time=1, **more):
    return {"inputs": inputs, "outputs": outputs, "time": time, **more}


def barrier(inputs, outputs, **more):
    return op(inputs, outputs, 0, kind="lowtide.barrier", recomputable=False, **more)


def graph(sizes, ops, outputs=(), releasable=(), **more):
    tensors = [{"bytes": size, "releasable": t in releasable} for t, size in enumerate(sizes)]
    return {"format": "lowtide-graph", "version": 1, "tensors": tensors, "ops": ops, "outputs": list(outputs), **more}


def plan(network, steps, **more):
    """Steps as 'c0 f1 o2 p2'."""
    return {
        "format": "lowtide-plan",
        "version": 1,
        "graph_hash": oracle.Graph(network).hash(),
        "budget": None,
        "order": "free",
        "machine": MACHINE,
        "steps": [[STEP[word[0]], int(word[1:])] for word in steps.split()],
        **more,
    }


def check(network, steps, **more):
    return oracle.verify(network, plan(network, steps, **more))


def accept(network, steps, peak=None, duration=None, host_peak=None, **more):
    result = check(network, steps, **more)
    assert (result.ok, result.error, result.step) == (True, None, None)
    for name, expected in (("peak", peak), ("duration", duration), ("host_peak", host_peak)):
        assert expected is None or getattr(result, name) == expected, name
    return result


def refuse(network, steps, error, step, **more):
    result = check(network, steps, **more)
    assert not result.ok and error in result.error, result
    assert result.step == step
    return result


# t0 (10, input) -> op 0 -> t1 (20) -> op 1 -> t2 (30) -> op 2, which reads t1 too -> t3 (5, output)
CHAIN = graph([10, 20, 30, 5], [op([0], [1], 10), op([1], [2], 100), op([1, 2], [3], 7)], [3])
# op 0 makes t1 and t2 (20 each); op 1 reads t1, op 2 reads t2 and op 1's t3 (5)
TWINS = graph([10, 20, 20, 5, 5], [op([0], [1, 2], 4), op([1], [3]), op([2, 3], [4])], [4])
# op 1 changes t1 in place; op 0 also makes t2, which the graph keeps
MUTATION = graph([10, 20, 4], [op([0], [1, 2], 3), op([1], [], 6, mutates=[1])], [2])
# op 0 changes the input t0 (20) in place; op 1 only passes time
STATE = graph([20, 1], [op([0], [], 10, mutates=[0]), op([], [1], 50)], [])
# t0 (20, input) is read first by op 0 and last by op 2; op 1 takes 100 ticks between
SWAP = graph([20, 1, 1, 1], [op([0], [1], 10), op([1], [2], 100), op([0, 2], [3], 7)], [3])


# Peak


def test_peak_is_in_use_plus_outputs():
    # 10; +20 = 30; +30 = 60; free nothing; +5 = 65
    accept(CHAIN, "c0 c1 c2", peak=65, duration=117)


def test_free_lowers_the_peak_only_from_the_next_step():
    # t2 is freed and made again: 60 stays the peak until op 2 adds 5
    accept(CHAIN, "c0 c1 f2 c1 c2 f2 f1", peak=65, duration=217)


def test_workspace_counts_only_while_the_op_runs():
    network = graph([10, 20, 5], [op([0], [1], workspace=100), op([1], [2], workspace=90)], [2])
    # op 0: 10 + 20 + 100 = 130; op 1: 30 + 5 + 90 = 125
    accept(network, "c0 c1", peak=130)


def test_resident_bytes_and_unused_inputs_always_count():
    network = graph([10, 40, 5], [op([0], [2])], [2], resident_bytes=1000)
    # t1 has no use, but is not releasable
    assert accept(network, "c0", peak=1055).own_peak == 1055


def test_peak_before_the_first_step():
    network = graph([50, 8], [op([], [1])], [1], releasable=[0])
    # 50 before; the input goes; then only 8
    accept(network, "f0 c0", peak=50)


def test_peak_of_no_steps():
    assert accept(graph([50], []), "", peak=50, duration=0).own_peak == 50


def test_repeated_input_counts_once():
    network = graph([10, 20], [op([0, 0], [1])], [1])
    accept(network, "c0", peak=30)


def test_prefetch_takes_its_bytes_at_its_step():
    # 20, 21, then t0 leaves: 1, 2 after op 1, 22 at the prefetch, 23 at op 2
    accept(SWAP, "o0 c0 f0 c1 p0 c2", peak=23)
    # the prefetch is the peak where the rest is freed before op 2: 2 + 20 = 22, less t1, + 1 = 22
    accept(SWAP, "o0 c0 f0 c1 p0 f1 c2", peak=22)


def test_recomputed_outputs_all_take_their_bytes_again():
    # 10; 50; op 1: 55; both freed: 15; op 0 again: 55; t1 freed: 35; op 2: 40
    accept(TWINS, "c0 c1 f1 f2 c0 f1 c2", peak=55, duration=10)


def test_zero_byte_tensors_cost_nothing():
    network = graph([0, 0], [op([0], [1])], [1])
    accept(network, "c0", peak=0, duration=1)


def test_budget_is_inclusive():
    accept(CHAIN, "c0 c1 c2", budget=65)
    result = refuse(CHAIN, "c0 c1 c2", "budget", 2, budget=64)
    assert result.peak == 65


def test_budget_holds_before_the_first_step():
    refuse(CHAIN, "c0 c1 c2", "budget", None, budget=9)


def test_budget_counts_the_workspace_and_the_prefetch():
    network = graph([10, 20], [op([0], [1], workspace=100)], [1])
    refuse(network, "c0", "budget", 0, budget=129)
    refuse(SWAP, "o0 c0 f0 c1 p0 f1 c2", "budget", 4, budget=21)


# The network lane


def sent(inputs, outputs, time, **more):
    return op(inputs, outputs, time, lane="network", **more)


# op 0 (40, network) gathers t0 into t1; op 1 waits for it; op 2 takes 100 and needs none of it; op 3 (7) reads all
GATHER = graph([10, 40, 0, 5, 1], [sent([0], [1], 40), op([0, 1], [2], 0), op([], [3], 100), op([1, 2, 3], [4], 7)], [4])


def test_a_network_op_runs_beside_the_computing():
    accept(GATHER, "c0 c1 c2 c3", duration=147)
    accept(GATHER, "c0 c2 c1 c3", duration=107, peak=56)
    accept(GATHER, "c0 c1 f1 f2 c0 c2 c1 c3", duration=147)  # gathered 0..40 and 40..80


def test_network_ops_run_one_after_another():
    network = graph([1, 1, 1], [sent([], [0], 40), sent([], [1], 30), op([1], [2], 5)], [2])
    accept(network, "c0 c1 c2", duration=75)
    accept(network, "c1 c0 c2", duration=70)


def test_frees_and_changes_wait_for_the_network():
    network = graph([10, 10, 1], [sent([0], [1], 40), op([], [2], 100)], [2], releasable=[0])
    accept(network, "c0 f0 c1", duration=140)
    accept(network, "c0 f1 c1", duration=140)
    changed = graph([10, 10], [sent([0], [1], 40), op([0], [], 10, mutates=[0])], [1])
    accept(changed, "c0 c1", duration=50)


def test_a_barrier_and_a_copy_wait_for_the_network():
    network = graph([20, 1, 1], [sent([], [0], 40), barrier([], [1]), op([1], [2], 10)], [2])
    accept(network, "c0 c1 c2", duration=50)
    accept(network, "c1 c0 o0 c2", duration=55)


def test_no_barrier_and_no_other_lane():
    for lane in ("network", "nvlink"):
        with pytest.raises(ValueError):
            oracle.Graph(graph([1, 1], [barrier([], [0], lane=lane)], [0]))


def test_the_lane_is_hashed_where_it_is_the_network():
    plain, spelled = (graph([1], [op([], [0], 40, **more)], [0]) for more in ({}, {"lane": "compute"}))
    assert oracle.Graph(plain).hash() == oracle.Graph(spelled).hash()
    assert oracle.Graph(plain).hash() != oracle.Graph(graph([1], [sent([], [0], 40)], [0])).hash()


# Own peak


def test_own_peak_frees_after_the_last_use():
    # op 0: 30; op 1: 60; op 2: 65
    assert accept(CHAIN, "c0 c1 c2").own_peak == 65
    network = graph([10, 20, 30, 5], [op([0], [1]), op([1], [2]), op([2], [3])], [3], releasable=[0])
    # op 0: 30; t0 goes; op 1: 50; t1 goes; op 2: 35
    assert accept(network, "c0 c1 c2", peak=65).own_peak == 50


def test_own_peak_frees_a_sink_and_an_unused_input_at_once():
    network = graph([50, 7, 9], [op([], [1]), op([], [2])], releasable=[0])
    # 50 at the start is the peak: then 7, then 9
    assert accept(network, "c0 c1").own_peak == 50
    keeps = graph([50, 7, 9], [op([], [1]), op([], [2])])
    # t0 stays; t1 is gone when t2 comes
    assert accept(keeps, "c0 c1", peak=66).own_peak == 59


def test_own_peak_keeps_outputs():
    network = graph([50, 7, 9], [op([], [1]), op([], [2])], [0, 1], releasable=[0])
    assert accept(network, "c0 c1").own_peak == 66


def test_own_peak_follows_the_order_and_counts_workspace():
    ops = [op([0], [1], workspace=4), op([0], [2]), op([1, 2], [3])]
    listing = graph([10, 20, 100, 5], ops, [3])
    assert accept(listing, "c0 c1 c2").own_peak == 135  # op 2: 10 + 120 + 5
    sinks = [op([0], [1], workspace=4), op([0], [2])]
    kept_first = graph([10, 20, 100], sinks, [2], order=[1, 0])
    assert accept(kept_first, "c0 c1").own_peak == 134  # op 0 last: 110 + 20 + 4
    kept_last = graph([10, 20, 100], sinks, [2])
    assert accept(kept_last, "c0 c1").own_peak == 110


# Compute


def test_input_must_be_live():
    refuse(CHAIN, "c1", "input that is not live", 0)
    refuse(CHAIN, "c0 c1 f1 c2", "input that is not live", 3)


def test_zero_byte_input_must_be_live():
    network = graph([0, 0, 0], [op([0], [1]), op([1], [2])], [2])
    refuse(network, "c0 f1 c1", "input that is not live", 2)
    refuse(network, "c0 c0 c1", "still live", 1)


def test_output_must_not_be_live():
    refuse(CHAIN, "c0 c0 c1 c2", "still live", 1)


def test_recompute_while_one_of_several_outputs_is_held():
    refuse(TWINS, "c0 c1 f1 c0 c2", "still live", 3)


def test_not_recomputable():
    network = graph([10, 20, 5], [op([0], [1], recomputable=False), op([1], [2])], [2])
    accept(network, "c0 c1 f1", duration=2)
    refuse(network, "c0 f1 c0 c1", "again", 2)


def test_op_without_outputs_runs_once():
    network = graph([10], [op([0], [], recomputable=True)])
    accept(network, "c0", duration=1)
    refuse(network, "c0 c0", "again", 1)


def test_barrier_runs_once_whatever_it_says():
    network = graph([1], [op([], [0], 0, kind="lowtide.barrier", recomputable=True)])
    accept(network, "c0 f0")
    refuse(network, "c0 f0 c0", "again", 2)


def test_after_holds_for_first_computations():
    network = graph([10, 20, 5], [op([0], [1]), op([0], [2], after=[0])], [1, 2])
    refuse(network, "c1 c0", "must come after", 0)
    accept(network, "c0 f1 c1 c0")


def test_after_needs_the_op_not_its_tensor():
    network = graph([10, 20, 5], [op([0], [1]), op([0], [2], after=[0, 0])], [2])
    accept(network, "c0 f1 c1", peak=30)


def test_given_order():
    network = graph([10, 20, 5], [op([0], [1]), op([0], [2])], [1, 2])
    accept(network, "c1 c0")
    accept(network, "c0 f1 c1 c0", order="given")
    refuse(network, "c1 c0", "given order", 0, order="given")
    reordered = network | {"order": [1, 0]}
    accept(reordered, "c1 c0", order="given")
    refuse(reordered, "c0 c1", "given order", 0, order="given")


def test_no_reader_after_a_mutation():
    network = graph([10, 5, 6], [op([0], [1], mutates=[0]), op([0], [2])], [1, 2])
    accept(network, "c1 c0")
    refuse(network, "c0 c1", "mutated", 1)
    # nor once more before the end
    refuse(network, "c1 c0 f2 c1", "mutated", 3)


def test_mutating_op_cannot_run_again():
    network = graph([10, 5], [op([0], [1], mutates=[0])], [1])
    refuse(network, "c0 f1 c0", "mutated", 2)


def test_fresh_value_of_a_mutated_tensor_still_has_no_reader():
    network = graph([10, 20, 5], [op([0], [1]), op([1], [], mutates=[1]), op([1], [2])], [2])
    refuse(network, "c0 c1 f1 c0 c2", "mutated", 4)
    accept(network, "c0 c2 c1")


def test_recompute_must_not_undo_the_mutation_of_an_output():
    kept = MUTATION | {"outputs": [1, 2]}
    refuse(kept, "c0 c1 f1 f2 c0", "undo the mutation", 4)
    accept(kept, "c0 f1 f2 c0 c1", duration=12)
    # t1 is not kept: its maker may run again for t2
    accept(MUTATION, "c0 c1 f1 f2 c0", duration=12)


# Free, offload, prefetch


def test_free_needs_a_live_tensor():
    refuse(CHAIN, "f1 c0 c1 c2", "not live", 0)
    refuse(CHAIN, "c0 c1 c2 f2 f2", "not live", 4)


def test_free_of_an_input():
    refuse(CHAIN, "c0 f0 c1 c2", "could not come back", 1)
    accept(CHAIN | {"tensors": [{"bytes": 10, "releasable": True}, *CHAIN["tensors"][1:]]}, "c0 f0 c1 c2", peak=55)


def test_input_with_host_copy_may_go_but_must_return():
    accept(SWAP, "o0 c0 f0 c1 p0 c2", host_peak=20)
    late = graph([20, 1], [op([0], [1])], [1])
    refuse(late, "o0 c0 f0", "not live at the end", None)
    accept(late, "o0 c0 f0 p0")


def test_releasable_input_need_not_return():
    network = graph([20, 1], [op([0], [1])], [1], releasable=[0])
    accept(network, "c0 f0", duration=1)
    accept(network, "o0 c0 f0")
    accept(network, "o0 f0 p0 c0")
    refuse(network, "f0 p0 c0", "host copy", 1)
    refuse(network, "f0 c0", "input that is not live", 1)


def test_releasable_input_that_is_an_output_must_be_live():
    network = graph([20, 1], [op([0], [1])], [0, 1], releasable=[0])
    refuse(network, "c0 f0", "graph output", None)


def test_offload_needs_a_live_tensor():
    refuse(CHAIN, "o1 c0 c1 c2", "not live", 0)
    refuse(CHAIN, "c0 c1 c2 f2 o2", "not live", 4)


def test_prefetch_needs_a_host_copy_and_a_freed_tensor():
    refuse(CHAIN, "c0 f1 p1 c1 c2", "host copy", 2)
    refuse(CHAIN, "c0 o1 p1 c1 c2", "live already", 2)


def test_zero_byte_tensors_move_by_the_same_rules():
    network = graph([0, 0], [op([0], [1], 2)], [1])
    refuse(network, "c0 f0", "could not come back", 1)
    refuse(network, "o0 p0 c0", "live already", 1)
    # out 0..5, in 5..8, op 8..10: latency is paid
    accept(network, "o0 f0 p0 c0", peak=0, duration=10, host_peak=0)


def test_host_copies_stay():
    # one offload serves two prefetches: out 0..15; op 0 0..10; freed at 15; in 15..23; freed at 23; in 23..31
    accept(SWAP, "o0 c0 f0 p0 f0 p0 c1 c2", duration=15 + 8 + 100 + 7, host_peak=20)


def test_host_peak_counts_each_tensor_once():
    accept(CHAIN, "o0 c0 o1 c1 o1 c2 f1", host_peak=30)


def test_stale_host_copy_of_a_mutated_tensor():
    refuse(STATE, "o0 c0 f0 c1 p0", "could not come back", 2)
    accept(STATE, "o0 c0 o0 f0 c1 p0", host_peak=20)
    produced = graph([20, 6], [op([], [0]), op([0], [], mutates=[0]), op([], [1])], [0, 1])
    refuse(produced, "c0 o0 c1 f0 c2 p0", "host copy", 5)
    accept(produced, "c0 c1 o0 f0 c2 p0")


def test_releasable_mutated_input_may_go_without_a_copy():
    network = STATE | {"tensors": [{"bytes": 20, "releasable": True}, {"bytes": 1}]}
    accept(network, "o0 c0 f0 c1")
    refuse(network, "o0 c0 f0 p0 c1", "host copy", 3)


def test_unmutated_inputs_keep_their_copy():
    network = graph([20, 8, 1], [op([0, 1], [2], mutates=[1])], [2])
    accept(network, "o0 c0 f0 p0")


def test_unknown_ops_and_tensors_are_refused():
    refuse(CHAIN, "c3", "there is no", 0)
    refuse(CHAIN, "c0 f4", "there is no", 1)


# End


def test_every_op_is_computed():
    refuse(CHAIN, "c0 c1", "never computed", None)
    refuse(graph([10], [op([0], [])]), "", "never computed", None)


def test_outputs_are_live_at_the_end():
    refuse(CHAIN, "c0 c1 c2 f3", "graph output", None)
    refuse(CHAIN | {"outputs": [3, 1, 3]}, "c0 c1 c2 f1", "graph output", None)


def test_a_sink_that_is_no_output_may_go():
    accept(CHAIN | {"outputs": []}, "c0 c1 c2 f3 f2 f1", peak=65)


# Lanes. Out: 5 + bytes / 2; in: 3 + bytes / 4.


def test_the_duration_over_the_full_link_is_checked():
    # As below with a link of twice the speed: the copy out of t3 (5 bytes) ends at 117 + 5 + ceil(5 / 4).
    full = {way: {"latency": 5, "bytes": 4, "ticks": 1} for way in ("device_to_host", "host_to_device")}
    accept(CHAIN, "c0 c1 c2 o3", duration=125, full_link=full, claims={"duration_full_link": 124})
    refuse(CHAIN, "c0 c1 c2 o3", "over the full link", None, full_link=full, claims={"duration_full_link": 125})


def test_offload_overlaps_computing():
    # t1 exists at 10, copy 10..25 while op 1 runs 10..110, op 2 ends at 117
    accept(CHAIN, "c0 o1 c1 c2", duration=117)


def test_offload_starts_when_the_tensor_exists_not_at_its_step():
    # t1 exists at 10 though the step comes at 117: copy 10..25
    accept(CHAIN, "c0 c1 c2 o1", duration=117)
    # t3 exists at 117: 5 + ceil(5 / 2) = 8
    accept(CHAIN, "c0 c1 c2 o3", duration=125)


def test_offload_lane_is_first_in_first_out():
    # t3 117..125, then t0 (10 bytes) 125..135 though it existed from 0
    accept(CHAIN, "c0 c1 c2 o3 o0", duration=135)


def test_the_end_waits_for_an_offload():
    network = graph([1000, 1], [op([0], [1])], [1])
    accept(network, "o0 c0", duration=505)


def test_free_waits_for_the_copy_out():
    # op 0 0..10, copy 0..15, free at 15, op 1 15..115, in 115..123, op 2 123..130
    accept(SWAP, "o0 c0 f0 c1 p0 c2", duration=130)
    # freed after op 1: no wait; op 1 10..110, in 110..118, op 2 118..125
    accept(SWAP, "o0 c0 c1 f0 p0 c2", duration=125)


def test_prefetch_overlaps_computing():
    # free at 15, in 15..23, op 1 15..115, op 2 115..122
    accept(SWAP, "o0 c0 f0 p0 c1 c2", duration=122)


def test_only_the_reader_waits_for_the_prefetch():
    slow = MACHINE | {"host_to_device": {"latency": 300, "bytes": 4, "ticks": 1}}
    # free at 15, in 15..320, op 1 15..115, op 2 320..327
    accept(SWAP, "o0 c0 f0 p0 c1 c2", duration=327, machine=slow)


def test_prefetch_waits_for_the_compute_lane():
    # the lane to the device is idle from 0, but the step is reached at 115
    accept(SWAP, "o0 c0 f0 c1 p0 c2", duration=115 + 8 + 7)


def test_prefetch_lane_is_first_in_first_out():
    network = graph([20, 40, 1, 1], [op([], [2], 10), op([0, 1, 2], [3], 7)], [3])
    # out: t0 0..15, t1 15..40; freed at 15 and 40; in: t0 40..48, t1 48..61; op 0 40..50; op 1 61..68
    accept(network, "o0 o1 f0 f1 p0 p1 c0 c1", duration=68, peak=62)


def test_prefetch_may_start_while_the_other_lane_is_busy():
    network = graph([20, 1000, 1], [op([0], [2], 7)], [2])
    # out: t0 0..15, t1 15..520; t0 freed at 15, in 15..23, op 23..30; the end waits for t1
    accept(network, "o0 o1 f0 p0 c0", duration=520)
    # a free of t1 holds everything behind it: t0 in 520..528, op 528..535, t1 in 528..781
    accept(network, "o0 o1 f0 f1 p0 p1 c0", duration=781)


def test_free_waits_for_the_copy_in():
    network = graph([20, 1, 1], [op([0], [1], 10), op([], [2], 50)], [1, 2], releasable=[0])
    # out 0..15, freed at 15, in 15..23, freed at 23, op 1 23..73
    accept(network, "o0 c0 f0 p0 f0 c1", duration=73)
    # left live: op 1 15..65
    accept(network, "o0 c0 f0 p0 c1", duration=65)


def test_offload_of_a_prefetched_tensor_waits_for_its_arrival():
    # out 0..15, in 15..23, out 23..38, freed at 38, in 38..46; op 1 38..138, op 2 138..145
    accept(SWAP, "o0 c0 f0 p0 o0 f0 p0 c1 c2", duration=145)


def test_free_waits_for_the_last_of_several_copies():
    # copies of t1: 10..25, 25..40; freed at 40, op 0 again 40..50, op 1 50..150, op 2 150..157
    accept(CHAIN, "c0 o1 o1 f1 c0 c1 c2", duration=157)


def test_free_of_a_tensor_without_copies_does_not_wait():
    # t0's copy 0..10 is over; t2 (30 bytes, 5 + 15 = 20) leaves 110..130; t1 is freed at 117 without a wait
    accept(CHAIN, "c0 o0 c1 o2 c2 f1", duration=130)


def test_recomputed_tensor_exists_anew():
    # t1 made 0..10 and 10..20; copy 20..35; op 1 20..120; op 2 120..127
    accept(CHAIN, "c0 f1 c0 o1 c1 c2", duration=127)
    # freed at 35: op 0 again 35..45, op 1 45..145, op 2 145..152
    accept(CHAIN, "c0 f1 c0 o1 f1 c0 c1 c2", duration=152)


def test_offload_after_a_mutation_waits_for_it():
    # op 0 0..10 changes t0; copy 10..25; freed at 25; op 1 25..75; in 75..83
    accept(STATE, "c0 o0 f0 c1 p0", duration=83)


def test_stale_copy_still_holds_its_lane_and_its_free():
    # stale copy 0..15, op 0 0..10, copy 15..30, freed at 30, in 30..38, op 1 30..80
    accept(STATE, "o0 c0 o0 f0 p0 c1", duration=80)


def test_barrier_waits_for_transfers_before_it():
    network = graph([1000, 1, 1], [barrier([], [1]), op([1], [2], 7)], [2])
    # copy 0..505, barrier at 505, op 1 505..512
    accept(network, "o0 c0 c1", duration=512)
    plain = graph([1000, 1, 1], [op([], [1], 0, recomputable=False), op([1], [2], 7)], [2])
    accept(plain, "o0 c0 c1", duration=505)


def test_barrier_waits_for_a_prefetch_that_it_does_not_read():
    network = graph([20, 1, 1], [barrier([], [1]), op([1], [2], 7)], [2])
    # out 0..15, in 15..23, barrier at 23, op 1 23..30
    accept(network, "o0 f0 p0 c0 c1", duration=30)


def test_transfer_after_a_barrier_starts_after_it():
    network = graph([1000, 1, 1], [op([], [1], 100), barrier([1], [2])], [2])
    # barrier at 100, copy 100..605
    accept(network, "c0 c1 o0", duration=605)
    accept(network, "c0 o0 c1", duration=505)


def test_transfers_after_a_barrier_wait_for_its_own_time():
    network = graph([20, 1], [op([], [1], 30, kind="lowtide.barrier", recomputable=False)], [1])
    # barrier 0..30, out 30..45, freed at 45, in 45..53
    accept(network, "c0 o0 f0 p0", duration=53)


def test_transfer_time_is_rounded_up():
    odd = {"latency": 7, "bytes": 3, "ticks": 2}
    network = graph([10, 1], [op([], [1], 0)], [1])
    # 7 + ceil(20 / 3) = 14 each way
    accept(network, "c0 o0", duration=14, machine={"device_to_host": odd, "host_to_device": odd})
    accept(network, "c0 o0 f0 p0", duration=28, machine={"device_to_host": odd, "host_to_device": odd})


def test_transfer_without_a_machine():
    network = graph([10, 1], [op([0], [1])], [1])
    document = plan(network, "o0 c0")
    del document["machine"]
    result = oracle.verify(network, document)
    assert not result.ok and "machine" in result.error and result.step == 0


# Claims and heads


def test_claims_that_hold():
    for claims in (
        {},
        {"status": "feasible", "peak": 65, "duration": 117, "bound": 110},
        {"status": "optimal", "peak": 65, "duration": 117, "bound": 117},
        {"status": "feasible", "peak": None, "duration": None, "bound": None},
    ):
        accept(CHAIN, "c0 c1 c2", claims=claims)


@pytest.mark.parametrize(
    "claims, error",
    [
        ({"peak": 64}, "claimed peak"),
        ({"peak": 66}, "claimed peak"),
        ({"duration": 116}, "claimed duration"),
        ({"duration": 118}, "claimed duration"),
        ({"status": "feasible", "bound": 118}, "claimed bound"),
        ({"status": "optimal", "bound": 116}, "claimed optimal"),
    ],
)
def test_claims_that_do_not_hold(claims, error):
    refuse(CHAIN, "c0 c1 c2", error, None, claims=claims)


def test_plan_for_another_graph():
    other = plan(TWINS, "c0 c1 c2")["graph_hash"]
    refuse(CHAIN, "c0 c1 c2", "another graph", None, graph_hash=other)


def test_transforms_are_unknown():
    refuse(CHAIN, "c0 c1 c2", "unknown transform", None, transforms=[{"kind": "split"}])
    accept(CHAIN, "c0 c1 c2", transforms=[])


def test_the_largest_numbers():
    accept(CHAIN | {"resident_bytes": 2**63 - 66}, "c0 c1 c2", peak=2**63 - 1)


def test_duration_that_overflows():
    big = {"latency": 2**62, "bytes": 1, "ticks": 1}
    network = graph([10, 1], [op([], [1])], [1])
    machine = {"device_to_host": big, "host_to_device": big}
    accept(network, "o0 c0", duration=2**62 + 10, machine=machine)
    refuse(network, "o0 o0 c0", "overflow", 1, machine=machine)


def test_hash_layout():
    network = graph(
        [10, 20, 30],
        [
            op([0, 0], [1], 5, workspace=6, recomputable=False, kind="lowtide.barrier"),
            op([1, 0, 1], [2], 7, after=[0, 0], mutates=[1, 1]),
        ],
        [2, 1, 2],
        releasable=[0],
        resident_bytes=99,
        name="names do not count",
    )
    numbers = [1, 3, 2, 99]
    numbers += [10, 1, 20, 0, 30, 0]
    numbers += [5, 6, 2, 1, 0, 1, 1, 0, 0]
    numbers += [7, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 1]
    numbers += [2, 2, 1]
    numbers += [0, 1]
    expected = "sha256:" + hashlib.sha256(b"".join(struct.pack("<q", number) for number in numbers)).hexdigest()
    assert oracle.Graph(network).hash() == expected
    assert oracle.Graph(network | {"order": [0, 1], "tick": "ns"}).hash() == expected


# Documents that cannot be read


@pytest.mark.parametrize(
    "change",
    [
        {"format": "lowtide-plan"},
        {"version": 2},
        {"version": 1.0},
        {"resident_bytes": -1},
        {"resident_bytes": 1.0},
        {"resident_bytes": 2**63},
        {"resident_bytes": 2**63 - 65},
        {"ops": [op([0], [1], workspace=2**63 - 65), op([1], [2]), op([1, 2], [3])]},
        {"outputs": [4]},
        {"order": [0, 2, 1]},
        {"order": [0, 1]},
        {"order": [0, 1, 2, 2]},
        {"ops": [op([0], [1]), op([1], [2]), op([1, 2], [2, 3])]},
        {"ops": [op([0], [1]), op([1], [2]), op([1, 2], [3, 3])]},
        {"ops": [op([0], [1]), op([1], [2]), op([1, 3], [3])]},
        {"ops": [op([2], [1]), op([1], [2]), op([1, 2], [3])]},
        {"ops": [op([0], [1], after=[1]), op([1], [2]), op([1, 2], [3])]},
        {"ops": [op([0], [1], time=2**63 - 1), op([1], [2]), op([1, 2], [3])]},
        {"ops": [op([0], [1], recomputable=1), op([1], [2]), op([1, 2], [3])]},
        {"ops": [op([0], [1], mutates=[1]), op([1], [2]), op([1, 2], [3])]},
    ],
)
def test_wrong_graphs(change):
    document = plan(CHAIN, "c0 c1 c2")
    with pytest.raises(oracle.UNREADABLE):
        oracle.verify(CHAIN | change, document)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "lowtide-graph"},
        {"version": 2},
        {"steps": [["copy", 0]]},
        {"steps": [["use", 0]]},
        {"steps": [["compute", -1]]},
        {"steps": [["compute", 0, 0]]},
        {"order": "any"},
        {"budget": -1},
        {"claims": {"peak": 65.0}},
        {"machine": {"device_to_host": MACHINE["device_to_host"]}},
        {"machine": MACHINE | {"host_to_device": {"latency": 0, "bytes": 0, "ticks": 1}}},
    ],
)
def test_wrong_plans(change):
    with pytest.raises(oracle.UNREADABLE):
        oracle.verify(CHAIN, plan(CHAIN, "c0 c1 c2") | change)


# Command line


def run(*arguments):
    return subprocess.run([sys.executable, HERE / "verify.py", *arguments], capture_output=True, text=True)


def test_command_line(tmp_path):
    good, bad, zipped = tmp_path / "good", tmp_path / "bad", tmp_path / "graph"
    good.write_text(json.dumps(plan(CHAIN, "c0 c1 c2")))
    bad.write_text(json.dumps(plan(CHAIN, "c0 c0")))
    zipped.write_bytes(gzip.compress(json.dumps(CHAIN).encode()))
    answer = run(zipped, good)
    assert answer.returncode == 0
    numbers = {"peak": 65, "duration": 117, "host_peak": 0, "own_peak": 65}
    assert json.loads(answer.stdout) == {"ok": True, "error": None, "step": None} | numbers
    answer = run(zipped, bad)
    assert answer.returncode == 3
    assert json.loads(answer.stdout)["step"] == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"\x1f\x8b", gzip.compress(b"{}")[:-3], b'{"format": "lowtide-graph", "version": NaN}'],
)
def test_unreadable_files(tmp_path, content, capsys):
    graph_path, plan_path = tmp_path / "graph", tmp_path / "plan"
    graph_path.write_bytes(content)
    plan_path.write_text(json.dumps(plan(CHAIN, "c0 c1 c2")))
    assert oracle.main([graph_path, plan_path]) == 2
    assert oracle.main([tmp_path / "absent", plan_path]) == 2
    assert oracle.main([]) == 2
    assert capsys.readouterr().out == ""


def test_repeated_key_is_unreadable(tmp_path, capsys):
    graph_path, plan_path = tmp_path / "graph", tmp_path / "plan"
    graph_path.write_text(json.dumps(CHAIN)[:-1] + ', "version": 1}')
    plan_path.write_text(json.dumps(plan(CHAIN, "c0 c1 c2")))
    assert oracle.main([graph_path, plan_path]) == 2
    assert "twice" in capsys.readouterr().err
