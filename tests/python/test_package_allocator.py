"""The model of the caching allocator against a second one that shares no code with it, and from Python."""

import json
import random
import sys

import pytest
from package_support import ROOT

import lowtide

sys.path.insert(0, str(ROOT / "tests" / "oracles"))
from caching_allocator import MIB, Settings, replay

TRACES = 2500


def random_settings(rng):
    """A string, the same as the second model takes it, and the memory of the device."""
    parts, settings, memory = [], Settings(), None
    if rng.random() < .4:
        settings.expandable = True
        parts.append("expandable_segments:True")
    if rng.random() < .2:
        mib = rng.choice([11, 12, 16, 24, 40])
        settings.large_segment = mib * MIB
        parts.append(f"large_segment_size_mb:{mib}")
    least = settings.large_segment // MIB
    if rng.random() < .4:
        mib = least + rng.choice([0, 1, 5, 12, 30])
        settings.max_split = mib * MIB
        parts.append(f"max_split_size_mb:{mib}")
        if rng.random() < .5:
            mib = least + rng.choice([0, 4, 40])
            settings.max_rounding = mib * MIB
            parts.append(f"max_non_split_rounding_mb:{mib}")
    if rng.random() < .3:
        if rng.random() < .5:
            divisions = 1 << rng.randrange(6)
            settings.divisions = (divisions,) * 16
            parts.append(f"roundup_power2_divisions:{divisions}")
        else:
            chosen = [0] * 16
            first = rng.randrange(3)
            named = {first: 1 << rng.randrange(4), first + 2: 1 << rng.randrange(4), ">": 1 << rng.randrange(5)}
            for at in range(16):
                chosen[at] = (named[first] if at <= first else named[first + 2] if at == first + 2 else
                              named[">"] if at > first + 2 else 0)
            settings.divisions = tuple(chosen)
            parts.append("roundup_power2_divisions:[" + ",".join(
                f"{at if at == '>' else 1 << at}:{count}" for at, count in named.items()) + "]")
    if rng.random() < .6:
        memory = rng.randrange(20, 200) * MIB + rng.choice([0, 0, 12345])
        if rng.random() < .5:
            settings.fraction = rng.choice([.5, .75, .9, .99])
            parts.append(f"per_process_memory_fraction:{settings.fraction}")
    if rng.random() < .5:
        settings.collect_at = rng.choice([.1, .3, .6, .85])
        parts.append(f"garbage_collection_threshold:{settings.collect_at}")
    rng.shuffle(parts)
    return ",".join(parts), settings, memory


def random_size(rng, sizes):
    if sizes and rng.random() < .5:
        return rng.choice(sizes)
    size = {0: lambda: rng.randrange(1, 4096), 1: lambda: rng.randrange(1, MIB + 2), 2: lambda: MIB + rng.randrange(-600, 600),
            3: lambda: rng.randrange(MIB, 10 * MIB), 4: lambda: rng.randrange(9 * MIB, 30 * MIB),
            5: lambda: 512 * rng.randrange(1, 90000)}[rng.randrange(6)]()
    sizes.append(size)
    return size


def random_trace(rng):
    """Uniform events (kind, id, bytes, stream), of steps that are somewhat alike."""
    trace, held, sizes = [], [], []
    streams = rng.choice([1, 1, 2, 3])
    for index in range(rng.randrange(20, 90)):
        draw = rng.random()
        if draw < .5 or not held:
            trace.append(("allocate", index, random_size(rng, sizes), rng.randrange(streams)))
            held.append(index)
        elif draw < .86:
            trace.append(("free", held.pop(rng.randrange(len(held))), 0, 0))
        elif draw < .91:
            trace.append(("use_on", rng.choice(held), 0, rng.randrange(streams)))
        elif draw < .95:
            trace.append(("finish", 0, 0, rng.randrange(streams)))
        elif draw < .96:
            trace.append(("empty_cache", 0, 0, 0))
        elif draw < .98:
            trace.append(("end_step", 0, 0, 0))
        else:
            while held:
                trace.append(("free", held.pop(), 0, 0))
    return trace


def as_events(trace):
    fields = {"allocate": (1, 2, 3), "free": (1,), "use_on": (1, 3), "finish": (3,), "empty_cache": (), "end_step": ()}
    return [(event[0], *(event[at] for at in fields[event[0]])) for event in trace]


def test_random_traces_agree_with_the_second_model_at_every_event():
    seen: dict[str, int] = {}
    lost = 0
    for seed in range(TRACES):
        rng = random.Random(seed)
        text, settings, memory = random_settings(rng)
        trace = random_trace(rng)
        expected = replay(trace, settings, memory)
        found = lowtide.replay_allocations(as_events(trace), text, memory, every_event=True)
        case = f"seed {seed}: {text} of {memory}"
        assert [tuple(event) for event in found["events"]] == expected["events"], case
        assert found["steps"] == expected["steps"], case
        assert found["end"] == expected["end"], case
        assert found["counts"] == expected["counts"], case
        assert (found["out_of_memory"] or {"event": None})["event"] == expected["out_of_memory"], case
        for name, count in found["counts"].items():
            seen[name] = seen.get(name, 0) + (count > 0)
        lost += expected["out_of_memory"] is not None
    assert min(seen.values()) > TRACES // 100, seen  # every rule was at work, and often
    assert TRACES // 50 < lost < TRACES // 2


def test_a_dict_of_figures():
    found = lowtide.replay_allocations([("allocate", 7, 3 * MIB), ("end_step",), ("free", 7)])
    assert found["peaks"] == {"allocated": 3 * MIB, "active": 3 * MIB, "requested": 3 * MIB, "reserved": 20 * MIB,
                              "inactive_split": 17 * MIB}
    assert len(found["steps"]) == 2 and found["end"]["allocated"] == 0 and found["out_of_memory"] is None
    assert "events" not in found
    limited = lowtide.replay_allocations([("allocate", 1, 30 * MIB)], memory="20MiB")
    assert limited["out_of_memory"] == {"event": 0, "requested": 30 * MIB, "allocated": 0, "reserved": 0}


@pytest.mark.parametrize("events, place", [
    ([("allocate", 1, 5), ("free", 2)], "event 1"),
    ([("allocate", 1)], "event 0"),
    ([("allocate", 1, "5")], "event 0"),
    ([("allocate", 1, 5, -1)], "event 0"),
    ([("drop", 1)], "event 0"),
    ([(), ], "event 0"),
    ([3], "event 0"),
])
def test_events_that_make_no_sense_are_refused(events, place):
    with pytest.raises(lowtide.Error, match=place):
        lowtide.replay_allocations(events)


@pytest.mark.parametrize("text, part", [("max_split_size_mb:3", "at least 20"), ("backend:cudaMallocAsync", "not modelled"),
                                        ("per_process_memory_fraction:.5", "memory")])
def test_settings_that_are_refused(text, part):
    with pytest.raises(lowtide.Error, match=part):
        lowtide.replay_allocations([], text)


def test_memory_that_is_none():
    with pytest.raises(lowtide.Error, match="memory"):
        lowtide.replay_allocations([], memory="plenty")
    with pytest.raises(TypeError):
        lowtide.replay_allocations([], memory=2.5)


def test_long_traces_take_little():
    """A hundred thousand events, of blocks that stay, so that the pools are large."""
    rng = random.Random(1)
    events, held = [], []
    for index in range(50_000):
        events.append(("allocate", index, rng.randrange(512, 1 << 22)))
        held.append(index)
        if rng.random() < .9:
            events.append(("free", held.pop(rng.randrange(len(held)))))
    found = lowtide.replay_allocations(events, "expandable_segments:True")
    assert found["counts"]["allocations"] == 50_000


def test_the_footprint_of_a_plan():
    graph = lowtide.Graph.from_dict({
        "format": "lowtide-graph", "version": 1, "tick": "us", "tensors": [{"bytes": size * MIB} for size in (12, 14, 16, 18, 20)],
        "ops": [{"inputs": [at], "outputs": [at + 1], "time": 1} for at in range(4)], "outputs": [4]})
    found = lowtide.footprint(graph)
    assert (found.live, found.allocated, found.requested, found.active) == (50 * MIB,) * 4
    assert found.reserved == 80 * MIB and found.allocator == "" and found.out_of_memory is None
    assert found.better == [("expandable_segments:True", 60 * MIB)]
    assert len(found.steps) == 6 and found.steps[-1]["reserved"] == found.reserved and found.counts["retries"] == 0
    assert "reserved" in repr(found)
    planned = lowtide.footprint(graph, lowtide.own_plan(graph), allocator="expandable_segments:True", steps=1, memory="1GiB")
    assert planned.reserved == 60 * MIB and len(planned.steps) == 1
    assert lowtide.footprint(graph, memory=40 * MIB).out_of_memory["reserved"] <= 40 * MIB
    with pytest.raises(lowtide.Error, match="steps"):
        lowtide.footprint(graph, steps=0)
    with pytest.raises(lowtide.Error, match="max_split_size_mb"):
        lowtide.footprint(graph, allocator="max_split_size_mb:1")


def test_budgets_of_what_is_taken(tmp_path):
    graph = lowtide.generate("resnet", 120, seed=3)
    budget = graph.own_peak * 7 // 10
    for footprint, allocator in (("arena", ""), ("reserved", ""), ("reserved", "expandable_segments:True")):
        found = lowtide.plan(graph, budget, footprint=footprint, allocator=allocator, work=300_000)
        taken = found.arena if footprint == "arena" else found.reserved
        assert found.footprint == footprint and found.peak <= taken <= budget
        if footprint == "reserved":
            assert lowtide.footprint(graph, found.plan, allocator=allocator).reserved == taken
        found.save(tmp_path / "found.plan.json")
        loaded = lowtide.Plan.load(tmp_path / "found.plan.json")
        assert lowtide.verify(graph, loaded).peak == found.peak
        written = json.loads((tmp_path / "found.plan.json").read_text())
        assert written["footprint"] == footprint and written["claims"][footprint] == taken
        if footprint == "reserved":
            written["claims"]["reserved"] += 1
            with pytest.raises(lowtide.PlanError, match="reserved"):
                lowtide.verify(graph, lowtide.Plan.from_json(json.dumps(written)))
    live = lowtide.plan(graph, budget, work=100_000)
    assert live.footprint == "live" and live.arena is None and live.reserved is None


@pytest.mark.parametrize("arguments, part", [
    ({"footprint": "most"}, "live, arena, reserved"), ({"allocator": "expandable_segments:True"}, "reserved"),
    ({"footprint": "reserved", "allocator": "max_split_size_mb:1"}, "at least 20"),
    ({"footprint": "reserved", "objective": "memory", "time_limit": "5%"}, "least time")])
def test_footprints_that_are_refused(arguments, part):
    graph = lowtide.generate("chain", 20)
    with pytest.raises(lowtide.Error, match=part):
        lowtide.plan(graph, None if "objective" in arguments else "80%", work=1000, **arguments)


def test_the_allocations_of_a_plan_are_what_its_footprint_replays():
    graph = lowtide.generate("unet", 80)
    for plan in (None, lowtide.plan(graph, "70%", work=100_000).plan):
        events = lowtide.plan_allocations(graph, plan, steps=3)
        assert events.count(("end_step",)) == 3
        for allocator in ("", "expandable_segments:True"):
            replayed = lowtide.replay_allocations(events, allocator)
            assert replayed["steps"] == lowtide.footprint(graph, plan, allocator=allocator, steps=3).steps
    with pytest.raises(lowtide.Error, match="steps"):
        lowtide.plan_allocations(graph, steps=0)


@pytest.mark.parametrize("footprint, allocator", [("arena", ""), ("reserved", "expandable_segments:True")])
def test_curves_and_fits_of_footprints(footprint, allocator):
    graph = lowtide.generate("resnet", 120, seed=3)
    curve = lowtide.curve(graph, "60%", "100%", 3, footprint=footprint, allocator=allocator, work=400_000)
    outcomes = [outcome for outcome in [*curve.points, curve.smallest] if outcome.plan is not None]
    fit = lowtide.fit(graph, "10%", footprint=footprint, allocator=allocator, work=300_000)
    for outcome in [*outcomes, fit.outcome]:
        taken = getattr(outcome, footprint)
        assert outcome.footprint == footprint and outcome.peak <= taken <= outcome.budget
        if footprint == "reserved":
            assert lowtide.footprint(graph, outcome.plan, allocator=allocator).reserved == taken
    assert fit.budget == getattr(fit.outcome, footprint) and curve.smallest.budget == getattr(curve.smallest, footprint)
    with pytest.raises(lowtide.Error, match="footprint"):
        lowtide.curve(graph, footprint="most")
    with pytest.raises(lowtide.Error, match="allocator"):
        lowtide.fit(graph, "5%", allocator="expandable_segments:True")
