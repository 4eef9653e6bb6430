"""Devices, links and prices in Python: the command's words, and the formula held against a second one."""

import json
import math
import pickle
import random

import pytest
from lowtide._core import _collective_ns, _kernel_ns

import lowtide

CHAIN = {
    "format": "lowtide-graph", "version": 1, "tick": "us",
    "tensors": [{"bytes": 10}, {"bytes": 6}, {"bytes": 8}, {"bytes": 1}],
    "ops": [{"inputs": [], "outputs": [0], "time": 4}, {"inputs": [0], "outputs": [1], "time": 1},
            {"inputs": [0], "outputs": [2], "time": 2}, {"inputs": [1, 2], "outputs": [3], "time": 3}],
    "outputs": [3],
}
LINK = {"latency": 10, "bytes": 25000, "ticks": 1}


@pytest.fixture
def graph():
    return lowtide.Graph.from_dict(CHAIN)


def named(name):
    return next(device for device in lowtide.devices() if device.name == name)


def test_devices():
    h100 = named("h100")
    assert h100.title == "NVIDIA H100 80GB" and h100.memory == 80 << 30 and h100.bytes_per_second == 3_350 * 10**9
    assert h100.operations_per_second["bf16"] == 989_400_000_000_000 and h100.host_link == (50 * 10**9, 10_000)
    assert named("cpu").memory is None and named("cpu").host_link is None
    assert repr(h100) == "<lowtide.Device: h100>"
    for device in lowtide.devices():
        assert lowtide.Device.from_json(device.to_json()) == device == pickle.loads(pickle.dumps(device))
    assert h100 != named("h200") and len(set(lowtide.devices())) == len(lowtide.devices())


def test_devices_from_files(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(json.loads(named("l4").to_json()) | {"name": "mine"}))
    assert lowtide.Device.load(path).name == "mine"
    path.write_text("{}")
    with pytest.raises(lowtide.Error, match=r'mine\.json: has no "format": this is not a device file'):
        lowtide.Device.load(path)


def test_the_roofline_is_the_formula():
    """Written a second time; equal to the ns."""
    draw = random.Random(0)
    for device in lowtide.devices():
        rates = device.operations_per_second
        for _ in range(2000):
            flops, moved = (int(2 ** draw.uniform(0, 50)) for _ in range(2))
            dtype = draw.choice(["f64", "f32", "tf32", "bf16", "f16", "i64", "bool", ""])
            seconds = max(flops / (0.6 * rates.get(dtype, rates["f32"])), moved / (0.8 * device.bytes_per_second))
            assert _kernel_ns(device, flops, dtype, moved) == device.launch_ns + math.ceil(seconds * 1e9)
            rate, call = device.peer_link
            assert _collective_ns(device, moved) == call + math.ceil(moved / rate * 1e9)


def test_device_and_link_make_the_machine(graph, tmp_path):
    def machine(**asked):
        return lowtide.Problem(graph, "100%", **asked).machine

    assert machine() is None
    assert machine(link="25GB/s,10us", derate="0%") == {"device_to_host": LINK, "host_to_device": LINK}
    derated = LINK | {"bytes": 22500}
    assert machine(link="25GB/s,10us") == {"device_to_host": derated, "host_to_device": derated}
    assert machine(link="25GB/s,10us", derate=0.1) == machine(link="25GB/s,10us", derate="10%") == machine(device="a100")
    problem = lowtide.Problem(graph, "100%", link="25GB/s,10us", host_budget="1KiB")
    assert problem.full_link == {"device_to_host": LINK, "host_to_device": LINK} and problem.host_budget == 1024
    assert lowtide.Problem(graph, "100%", link="25GB/s", derate=0).full_link is None
    path = tmp_path / "mine.json"
    path.write_text(named("a100").to_json())
    for a100 in ("a100", named("a100"), path):
        assert machine(device=a100) == machine(link="25GB/s,10us")
    assert machine(device="a100", link="12.5 GB/s", derate=0)["host_to_device"] == {"latency": 0, "bytes": 12500, "ticks": 1}


@pytest.mark.parametrize("asked, said", [
    ({"link": "25"}, r'link "25": does not say the unit of "25"; write bytes a second .*25GB/s,10us'),
    ({"link": ""}, 'link "": does not say bytes a second'),
    ({"link": "-1GB/s"}, "negative"),
    ({"derate": "10%"}, 'derate "10%": there is no link to derate'),
    ({"host_budget": 5}, 'host_budget "5": nothing is copied to the host'),
    ({"link": "25GB/s", "derate": "100%"}, "leaves nothing of the link"),
    ({"link": "25GB/s", "derate": -0.1}, "derate -0.1: is no fraction of 0 or more"),
    ({"link": "25GB/s", "host_budget": "60%"}, 'host_budget "60%": is no number of bytes'),
    ({"device": "cpu"}, 'device "cpu": has no link to the host'),
    ({"device": "h1000"}, 'device "h1000": there is none of that name; there are: a10, a100'),
])
def test_wrong_devices_links_and_techniques_are_refused(graph, asked, said):
    for call in (lambda **more: lowtide.plan(graph, "100%", **more), lambda **more: lowtide.curve(graph, **more),
                 lambda **more: lowtide.fit(graph, "5%", **more),
                 lambda **more: lowtide.Problem(graph, "100%", **more)):
        with pytest.raises(lowtide.Error, match=said):
            call(**asked)


def test_a_link_needs_a_tick_of_time():
    graph = lowtide.Graph.from_dict(CHAIN | {"tick": "flop"})
    with pytest.raises(lowtide.Error, match='device "a100": a link takes time, and the graph\'s tick is "flop"'):
        lowtide.plan(graph, "100%", device="a100")


def test_solvers_take_a_link(graph):
    outcome = lowtide.plan(graph, "100%", link="25GB/s,10us", time=0.3)
    assert outcome.plan.machine is None and (outcome.status, outcome.duration) == ("optimal", 10)
    problem = lowtide.Problem(graph, "100%", device="a100")
    assert lowtide.plan(problem, solver="search", time=0.2).status in ("feasible", "optimal")
    assert lowtide.plan(problem, solver="bounds", time=0.2).link_price == outcome.link_price == 0
    assert lowtide.plan(graph, "100%", time=0.2).link_price is None
    with pytest.raises(TypeError, match="host_budget, live_limits, transforms and costs itself"):
        lowtide.plan(problem, link="25GB/s")
    assert lowtide.curve(graph, points=2, time=0.3, device="a100").points[-1].plan
    assert lowtide.fit(graph, "5%", time=0.3, link="25GB/s").budget


def test_plans_that_transfer_keep_their_machine(graph):
    document = {"format": "lowtide-plan", "version": 1, "graph_hash": graph.hash,
                "machine": {"device_to_host": LINK, "host_to_device": LINK},
                "steps": [["compute", 0], ["compute", 1], ["offload", 1], ["free", 1], ["compute", 2], ["free", 0],
                          ["prefetch", 1], ["compute", 3], ["free", 1], ["free", 2]]}
    plan = lowtide.Plan.from_json(json.dumps(document))
    assert plan.machine == document["machine"] and plan.sequence == [0, 1, 2, 3]
    assert lowtide.verify(graph, plan).duration == 32
    assert json.loads(plan.to_json())["machine"] == document["machine"]
    assert plan.techniques is None and plan.host_budget is None and plan.full_link is None
    twice = {way: LINK | {"bytes": 2 * LINK["bytes"]} for way in document["machine"]}
    document |= {"full_link": twice, "claims": {"duration_full_link": 31}, "host_budget": 6, "techniques": ["offload"]}
    plan = lowtide.Plan.from_json(json.dumps(document))
    assert plan.full_link == twice and plan.host_budget == 6 and plan.techniques == ["offload"]
    with pytest.raises(lowtide.PlanError, match="over the full link is 31, found is 32"):
        lowtide.verify(graph, plan)
    made = lowtide.Plan([tuple(step) for step in document["steps"]], machine=plan.machine)
    assert made.machine == plan.machine and lowtide.verify(graph, made).duration == 32
    assert lowtide.Plan([("compute", 0)], machine=plan.machine).machine is None
    # It is a start over that link, and none without it.
    taken = lowtide.plan(graph, "100%", link="25GB/s,10us", time=0.2, solver="search", start=plan)
    assert taken.plan and taken.duration == 10
    assert lowtide.plan(graph, "100%", time=0.2, start=plan).duration == 10


@pytest.mark.parametrize("machine, said", [
    (7, "no dict"),
    ({}, "\"device_to_host\" is missing"),
    ({"device_to_host": LINK}, "\"host_to_device\" is missing"),
    ({"device_to_host": LINK, "host_to_device": LINK | {"bytes": 0}}, "\"host_to_device\" is no integer from 1"),
    ({"device_to_host": LINK, "host_to_device": LINK | {"ticks": 0.5}}, "\"host_to_device\" is no integer from 0"),
])
def test_machines_that_are_none(machine, said):
    with pytest.raises(lowtide.Error, match="machine.*" + said):
        lowtide.Plan([("offload", 0)], machine=machine)


def test_graphs_are_priced_anew(graph):
    text = json.dumps(CHAIN | {"ops": [op | {"attributes": {"flops": 10**12}} for op in CHAIN["ops"]]})
    priced = lowtide.priced_on(lowtide.Graph.from_json(text), "a100")
    ns = 2000 + math.ceil(10**12 / (0.6 * 19.5e12) * 1e9)
    assert priced.tick == "us" and {op.time for op in priced.ops} == {-(-ns // 1000)}
    with pytest.raises(lowtide.Error, match='op 0: has no "kind".*"flops"'):
        lowtide.priced_on(graph, named("a100"))
    with pytest.raises(TypeError):
        lowtide.priced_on(graph, None)


def test_a_table_of_measured_calls_goes_before_the_roofline(tmp_path):
    shape = {"shape": [64, 64], "strides": [64, 1], "dtype": "f32"}

    def graph_of(time, name):
        return lowtide.Graph.from_dict({
            "format": "lowtide-graph", "version": 1, "tick": "us",
            "tensors": [{"bytes": 16384, "shape": [64, 64], "dtype": "f32"}] * 3,
            "ops": [{"kind": "aten.mul", "inputs": [0, 1], "outputs": [2], "time": time, "workspace": 7 * time,
                     "operands": [{"argument": "self", "tensor": 0} | shape, {"argument": name, "tensor": 1} | shape],
                     "results": [{"argument": "", "tensor": 2} | shape], "arguments": {"alpha": 1.5}}], "outputs": [2]})

    path = tmp_path / "costs.json"
    path.write_text(lowtide.costs_of(graph_of(3, "other"), "a machine"))
    table = json.loads(path.read_text())
    assert table["device"] == "a machine" and table["costs"][0]["time_ns"] == 3000
    priced, unknown = (lowtide.priced_on(graph_of(9, name), "cpu", costs=path).ops[0] for name in ("other", "another"))
    assert (priced.time, priced.workspace) == (3, 21)
    assert (unknown.time, unknown.workspace) == (lowtide.priced_on(graph_of(9, "another"), "cpu").ops[0].time, 63)
    path.write_text(json.dumps(table | {"costs": [{}]}))
    with pytest.raises(lowtide.Error, match=r'costs\.json: /costs/0: has no "kind"'):
        lowtide.priced_on(graph_of(9, "other"), "cpu", costs=path)
    with pytest.raises(lowtide.Error, match='its tick is "none", which is no time'):
        lowtide.costs_of(lowtide.Graph.from_dict(CHAIN | {"tick": "none"}))
