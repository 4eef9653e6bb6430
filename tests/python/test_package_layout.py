"""Layouts of a plan's allocations in one block, by the model of the caching allocator: what code would ask of it, prime block and
plugs included."""

import random

import pytest
from lowtide.frontend.planning import layout, taken
from lowtide.frontend.planning.best_fit import BestFit, Request
from lowtide.frontend.planning.own_events import own_events

import lowtide

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"


def plans():
    """Graphs with plans that overwrite, compute again and copy."""
    for kind, budget, options in (("resnet", "75%", {}), ("unet", "50%", {}), ("transformer", "50%", {}), ("chain", "40%", {}),
                                  ("unet", "60%", {"techniques": ["recompute", "in_place", "offload"], "link": "25GB/s,10us"})):
        graph = lowtide.generate(kind, 150, seed=1)
        yield graph, lowtide.plan(graph, budget, work=60_000, **options).plan


def test_events_are_those_of_the_core():
    copied = 0
    for graph, plan in plans():
        fetched = [tensor for kind, tensor, *_ in plan.steps if kind == "prefetch"]
        if any(graph.tensor(tensor).producer is None for tensor in fetched):
            continue  # no code copies what it is given
        copied += len(fetched)
        core = [event for event in lowtide.plan_allocations(graph.edited(resident_bytes=0), lowtide.Plan(plan.steps, machine=plan.machine),
                                                            steps=1) if event != ("end_step",)]
        inputs = [t for t in graph.tensors if t.producer is None and t.bytes]
        own = own_events(graph, plan, None)
        sizes = {event[1]: event[2] for event in core if event[0] == "allocate"}
        others = set(range(len(inputs)))  # the first that are allocated
        of_own = [event for event in core if event[1] not in others]
        assert [(event[0], sizes[event[1]]) for event in of_own if event[0] == "allocate"] == \
            [("allocate", event.bytes) for event in own if event.bytes]
        assert [event[1] - len(others) for event in of_own] == [event.buffer for event in own]


@pytest.mark.parametrize("seed", range(40))
def test_requests_land_in_a_block_where_the_allocators_model_puts_them(seed):
    rng = random.Random(seed)
    size = rng.randrange(20, 200) * 2 * MIB
    block, events, held, expected = BestFit(size), [("allocate", 0, size), ("free", 0)], {}, []
    for number in range(1, 120):
        if held and rng.random() < .45:
            freed = rng.choice(list(held))
            events.append(("free", freed))
            block.give(held.pop(freed))
            continue
        wanted = 512 * rng.randrange(2049, rng.choice([4000, 20_000, 60_000]))
        offset = block.take(wanted)
        if offset is not None:
            events.append(("allocate", number, wanted))
            expected.append((len(events) - 1, offset))
            held[number] = offset
    found = lowtide.replay_allocations(events, every_event=True)
    assert found["peaks"]["reserved"] == size
    base = found["events"][0][0]
    assert [found["events"][at][0] - base for at, _ in expected] == [offset for _, offset in expected] and len(expected) > 20


@pytest.mark.parametrize("seed", range(40))
def test_plugs_let_requests_land_at_any_offset_that_can_be_reached(seed):
    rng = random.Random(seed)
    block, held = BestFit(400 * MIB), []
    for _ in range(60):
        offset = block.take(rng.randrange(2, 12) * MIB)
        if offset is not None:
            held.append(offset)
    for offset in rng.sample(held, len(held) // 2):
        block.give(offset)
    parts = dict(block._begins)
    before = sorted(parts.items())
    for offset, size in before:
        for at in {offset, offset + 2 * MIB, offset + size - 2 * MIB}:
            if not offset <= at <= offset + size - 2 * MIB or 0 < at - offset <= MIB:
                continue
            plugs = block.plugs([Request(2 * MIB, at, 2 * MIB)])
            holding = block.hold(plugs)
            assert block.take(2 * MIB) == at
            for place in (at, *holding):
                block.give(place)
            assert sorted(block._begins.items()) == before, "plugs leave no trace"


def test_with_plugs_reserved_comes_down_to_the_planned_arena():
    missed = planned = 0
    for graph, plan in plans():
        found = layout.arrangement(graph, plan, None)
        events = taken.arranged_events(graph, plan, None, found)
        replayed = lowtide.replay_allocations(events, every_event=True)
        assert replayed["out_of_memory"] is None
        # what others hold and small blocks come from segments of their own; the plan's large ones from one block
        others = [size for kind, id_, size, pool in (event for event in events if event[0] == "allocate") if pool == 0]
        block = next(at for at, event in enumerate(events) if event[0] == "allocate" and event[1] < 0)
        base = replayed["events"][block][0]
        live = lowtide.simulate(graph, plan).peak
        assert replayed["peaks"]["reserved"] <= found.block + sum(others) + (32 + 2 * len(others)) * MIB
        assert replayed["peaks"]["reserved"] < lowtide.footprint(graph, plan).reserved
        assert found.block + sum(others) <= 1.05 * live
        count = 1 + max(event.buffer for event in own_events(graph, plan, None))
        for at, event in enumerate(events):
            if event[0] == "allocate" and event[1] >= len(others):
                buffer = (event[1] - len(others)) % count
                if buffer in found.offsets:
                    assert replayed["events"][at][0] == base + found.offsets[buffer]
        missed, planned = missed + found.missed, planned + len(found.offsets)
        assert sum(map(len, found.plugs)) < 12 * len(found.offsets)
    assert missed < planned / 50


def test_a_block_taken_beforehand_takes_the_place_of_many_segments():
    graph = lowtide.generate("resnet", 150, seed=1)
    plan = lowtide.plan(graph, "75%", work=60_000).plan
    plain, primed = (taken.taken(graph, plan, "", how, None) for how in (None, "prime"))
    assert primed.reserved < .9 * plain.reserved and not primed.better
    assert plain.better == lowtide.footprint(graph, plan).better
    assert taken.taken(graph, plan, EXPANDABLE, "prime", None).reserved == taken.taken(graph, plan, EXPANDABLE, None, None).reserved


@pytest.mark.parametrize(("allocator", "cuts"), [
    ("", True), ("garbage_collection_threshold:0.8", True), ("large_segment_size_mb:64", True), (EXPANDABLE, False),
    ("max_split_size_mb:64", False), ("roundup_power2_divisions:4", False), ("roundup_power2_divisions:[>:8]", False)])
def test_which_settings_cut_one_block(allocator, cuts):
    assert taken.cuts_one_block(allocator) == cuts


def test_small_plans_and_plans_without_large_tensors():
    graph = lowtide.Graph.from_dict({
        "format": "lowtide-graph", "version": 1, "tick": "us", "tensors": [{"bytes": size} for size in (600, MIB, 40)],
        "ops": [{"inputs": [at], "outputs": [at + 1], "time": 1} for at in range(2)], "outputs": [2]})
    found = layout.arrangement(graph, lowtide.own_plan(graph), None)
    assert found.block == 10 * MIB and not found.offsets and found.plugs == ((), ())
    assert layout.block_size(graph, lowtide.own_plan(graph), None) == 10 * MIB
