"""The package: what it takes and gives, against the command."""

import json
import math
import pickle
import re
import sys
import warnings
from pathlib import Path

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")

from package_support import CHAIN, ROOT, VIT, command, plan_file, script


@pytest.fixture
def chain():
    return lowtide.Graph.from_dict(CHAIN)


@pytest.fixture(scope="module")
def vit():
    return lowtide.Graph.load(VIT)


# ---- the package itself


def test_the_package_is_the_installed_wheel():
    assert ROOT / "python" not in Path(lowtide.__file__).resolve().parents
    assert command("--version").stdout == f"lowtide {lowtide.__version__}\n"


def test_importing_it_loads_nothing_but_itself_and_small_modules_of_python():
    """So that it takes no time worth the name: no numpy, no torch, nothing of the standard library that loads many."""
    run = script("import sys\nbefore = set(sys.modules)\nimport lowtide\nprint(*(set(sys.modules) - before))")
    loaded = set(run.stdout.split())
    assert {name for name in loaded if name.startswith("lowtide")} == {"lowtide", "lowtide._core", "lowtide._engines"}
    roots = {name.partition(".")[0] for name in loaded} - {"lowtide"}
    assert all(root.startswith("_sysconfigdata") for root in roots - sys.stdlib_module_names)
    assert not roots & {"asyncio", "ctypes", "email", "http", "inspect", "json", "logging", "subprocess", "typing", "urllib"}
    assert len(loaded) < 50


def test_names_are_those_of_the_package():
    for name in lowtide.__all__:
        thing = getattr(lowtide, name)
        if isinstance(thing, type):
            assert thing.__module__ == "lowtide" and thing.__doc__, name
        elif callable(thing):
            assert thing.__doc__, name
    # help(lowtide) looks at every name, and must do without torch.
    assert "torch" not in script("import lowtide; print(*dir(lowtide))").stdout.split()
    with pytest.raises(AttributeError, match="module 'lowtide' has no attribute 'numpyy'"):
        _ = lowtide.numpyy


# ---- graphs


def test_a_graph_and_its_parts(chain):
    assert (chain.name, chain.num_ops, chain.num_tensors, chain.tick) == ("chain", 4, 4, "us")
    assert (chain.duration, chain.own_peak, chain.resident_bytes, chain.input_bytes) == (10, 24, 0, 0)
    assert chain.hash.startswith("sha256:") and chain.outputs == [3] and chain.order == [0, 1, 2, 3]
    op = chain.op(3)
    assert (op.index, op.name, op.kind, op.time, op.workspace, op.recomputable) == (3, "C", "add", 3, 0, True)
    assert (op.inputs, op.outputs, op.after, op.mutates) == ([1, 2], [3], [], [])
    tensor = chain.tensor(1)
    assert (tensor.name, tensor.bytes, tensor.role, tensor.shape, tensor.dtype) == ("b", 6, "activation", [3, 2], "i8")
    assert (tensor.producer, tensor.consumers, tensor.is_output, tensor.releasable) == (1, [3], False, False)
    assert [op.name for op in chain.ops] == ["A", "B", "X", "C"]
    assert [tensor.bytes for tensor in chain.tensors] == [10, 6, 8, 1]
    assert chain.op(-1).name == "C"
    with pytest.raises(IndexError):
        chain.op(4)
    with pytest.raises(IndexError):
        chain.tensor(-5)


def test_graphs_go_out_and_come_in_again(chain, tmp_path):
    for path in (tmp_path / "chain.graph.json", str(tmp_path / "chain.graph.json.gz")):
        chain.save(path)
        assert lowtide.Graph.load(path).to_json() == chain.to_json()
    assert chain.to_dict()["tensors"][1]["shape"] == [3, 2]
    assert lowtide.Graph.from_json(chain.to_json().encode()).hash == chain.hash
    assert pickle.loads(pickle.dumps(chain)).to_json() == chain.to_json()
    command("convert", tmp_path / "chain.graph.json", tmp_path / "again.graph.json")
    assert (tmp_path / "again.graph.json").read_text() == chain.to_json()
    assert chain.to_dot().startswith("digraph")


def test_a_graph_is_edited_into_another(chain):
    before = chain.to_json()
    assert chain.edited().to_json() == before
    many = lowtide.generate("transformer", 60, seed=3)
    assert many.edited().to_json() == many.to_json()
    found = chain.edited(name="other", resident_bytes=7, tensors={1: {"bytes": 5, "shape": None, "dtype": None}},
                         ops={0: {"time": 11, "workspace": 3, "recomputable": False}})
    assert (found.name, found.resident_bytes, found.tensor(1).bytes, found.tensor(1).shape) == ("other", 7, 5, [])
    assert (found.op(0).time, found.op(0).workspace, found.op(0).recomputable) == (11, 3, False)
    assert chain.to_json() == before, "the graph itself stays"
    more = chain.edited(more_tensors=[{"name": "beside", "bytes": 9, "role": "gradient"}],
                        ops={0: {"outputs": [*chain.op(0).outputs, chain.num_tensors]}},
                        outputs=[*chain.outputs, chain.num_tensors])
    assert more.tensor(chain.num_tensors).producer == 0 and more.outputs == [*chain.outputs, chain.num_tensors]


@pytest.mark.parametrize(("changes", "error", "said"), [
    ({"ops": {0: {"colour": 1}}}, ValueError, 'an op has no "colour" that can be edited'),
    ({"tensors": {0: {"role": "guest"}}}, ValueError, "unknown word"),
    ({"outputs": [99]}, lowtide.Error, "there is no tensor 99"),
    ({"tensors": {0: {"bytes": -1}}}, lowtide.Error, "negative"),
    ({"ops": {99: {"time": 1}}}, lowtide.Error, "there is no op 99"),
    ({"tensors": {-1: {"bytes": 1}}}, lowtide.Error, "there is no tensor -1"),
])
def test_a_graph_that_no_file_could_hold_is_not_edited_into_being(changes, error, said, chain):
    with pytest.raises(error, match=said):
        chain.edited(**changes)


def test_parts_outlive_their_graph():
    op, plan = lowtide.Graph.from_dict(CHAIN).op(1), lowtide.plan(lowtide.Graph.from_dict(CHAIN), "100%").plan
    assert op.name == "B" and len(plan) > 4


def test_a_dict_is_read_as_the_text_of_its_file():
    def op(**given):
        return CHAIN | {"ops": [CHAIN["ops"][0] | given, *CHAIN["ops"][1:]]}

    kept = op(attributes={"floats": [0.1, 1e300, -0.0, 1e-7], "deep": [[{"a": None, "b": (True, False)}]],
                          "large": 10**30, "text": "\u00e9\"\\\n\x00"})
    assert lowtide.Graph.from_dict(kept).to_json() == lowtide.Graph.from_json(json.dumps(kept)).to_json()
    for wrong in (CHAIN | {"version": 99}, op(time=1.5), op(time=-1), op(time=2**63), op(inputs=7), op(inputs=[99]),
                  op(name=None), {}, [], 7):
        with pytest.raises(lowtide.Error) as by_dict:
            lowtide.Graph.from_dict(wrong)
        with pytest.raises(lowtide.Error) as by_text:
            lowtide.Graph.from_json(json.dumps(wrong), name="<dict>")
        assert str(by_dict.value) == str(by_text.value)
    with pytest.warns(UserWarning, match="colour"):
        lowtide.Graph.from_dict(op(colour="red"))


@pytest.mark.parametrize("value, words", [
    (float("nan"), "no number NaN"), (float("-inf"), "no number Infinity"), ({1, 2}, "holds no set"),
    (b"text", "holds no bytes"), ({1: 2}, "keys are strings")])
def test_values_that_no_file_can_hold_are_refused_with_their_place(value, words):
    ops = [CHAIN["ops"][0] | {"attributes": {"here": value}}, *CHAIN["ops"][1:]]
    with pytest.raises(lowtide.Error, match=words) as refused:
        lowtide.Graph.from_dict(CHAIN | {"ops": ops})
    assert "<dict>" in str(refused.value) and "/ops/0/attributes/here" in str(refused.value)
    endless = {}
    endless["again"] = endless
    with pytest.raises(lowtide.Error, match="nested deeper"):
        lowtide.Graph.from_dict(endless)


def test_generated_graphs_are_the_commands(tmp_path):
    path = tmp_path / "made.graph.json"
    command("generate", "unet", "--ops", 300, "--seed", 7, "-o", path)
    assert lowtide.generate("unet", 300, seed=7).to_json() == path.read_text()
    command("generate", "layered", "--ops", 90, "--width", 0.5, "-o", path)
    assert lowtide.generate("layered", 90, width=0.5).to_json() == path.read_text()


def test_warnings_are_pythons(chain):
    strange = json.dumps({**CHAIN, "colour": "red"})
    with pytest.warns(UserWarning, match="<text>.*colour"):
        lowtide.Graph.from_json(strange)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            lowtide.Graph.from_json(strange)


# ---- plans and what they cost


STEPS = [("compute", 0), ("compute", 1), ("compute", 2), ("free", 0), ("compute", 3), ("free", 1), ("free", 2)]


def test_a_plan_of_steps(chain, tmp_path):
    plan = lowtide.Plan(STEPS)
    assert plan.steps == STEPS and len(plan) == 7 and plan.sequence == [0, 1, 2, 3]
    assert (plan.graph_hash, plan.budget, plan.order, plan.claimed_peak) == (None, None, "free", None)
    cost = lowtide.verify(chain, plan, budget=24)
    assert (cost.duration, cost.peak, cost.host_peak) == (10, 24, 0)
    with pytest.raises(lowtide.Error, match="does not know its graph"):
        plan.save(tmp_path / "x.plan.json")
    plan.save(tmp_path / "x.plan.json", chain)
    again = lowtide.Plan.load(tmp_path / "x.plan.json")
    assert (again.steps, again.graph_hash, again.claimed_duration) == (STEPS, chain.hash, 10)
    chain.save(tmp_path / "chain.graph.json")
    assert command("verify", tmp_path / "chain.graph.json", tmp_path / "x.plan.json").returncode == 0
    for copy in (pickle.loads(pickle.dumps(again)), lowtide.Plan.from_json(again.to_json())):
        assert copy.to_json() == again.to_json()
    assert pickle.loads(pickle.dumps(plan)).steps == STEPS


def test_a_timeline_is_read_where_it_is(chain):
    timeline = lowtide.simulate(chain, lowtide.Plan(STEPS))
    assert (timeline.peak, timeline.duration, timeline.start, timeline.peak_step, len(timeline)) == (24, 10, 0, 2, 7)
    assert timeline.memory.tolist() == [10, 16, 24, 24, 15, 15, 9]
    assert timeline.end.tolist() == [4, 5, 7, 7, 10, 10, 10]
    view = memoryview(timeline)
    assert (view.itemsize, view.ndim, view.readonly, view.shape) == (8, 1, True, (7,))
    np = pytest.importorskip("numpy")
    one, other = np.asarray(timeline), np.asarray(timeline.memory)
    assert one.dtype == np.int64 and not one.flags.owndata and not one.flags.writeable
    assert one.__array_interface__["data"] == other.__array_interface__["data"]
    del timeline, view
    assert one.sum() == 113  # the arrays keep it alive


def test_a_plan_that_breaks_a_rule(chain):
    broken = lowtide.Plan(STEPS[:3] + [("free", 1)] + STEPS[4:])
    timeline = lowtide.simulate(chain, broken)
    assert timeline.violation[0] == 4 and "tensor 1" in timeline.violation[1]
    with pytest.raises(lowtide.PlanError, match="tensor 1") as refused:
        lowtide.verify(chain, broken)
    assert refused.value.step == 4
    with pytest.raises(lowtide.PlanError, match="the peak is 24 bytes, the budget 23"):
        lowtide.verify(chain, lowtide.Plan(STEPS), budget=23)
    reordered = [STEPS[0], STEPS[2], STEPS[1], *STEPS[3:]]
    lowtide.verify(chain, lowtide.Plan(reordered))
    with pytest.raises(lowtide.PlanError, match="in the given order"):
        lowtide.verify(chain, lowtide.Plan(reordered), order="given")


def test_a_plan_for_another_graph(chain, vit):
    plan = lowtide.plan(chain, "100%").plan
    with pytest.raises(lowtide.WrongGraphError, match="the plan is for another graph"):
        lowtide.verify(vit, plan)
    with pytest.raises(lowtide.WrongGraphError):
        plan.save("/dev/null", vit)
    assert issubclass(lowtide.WrongGraphError, lowtide.PlanError)
    assert issubclass(lowtide.PlanError, lowtide.Error) and issubclass(lowtide.Error, ValueError)


def test_the_graphs_own_plan(vit):
    assert lowtide.verify(vit, lowtide.own_plan(vit), order="given").peak == vit.own_peak


# ---- planning


def test_the_same_plan_as_the_command(vit, tmp_path):
    ours, its = tmp_path / "ours.plan.json", tmp_path / "its.plan.json"
    command("plan", VIT, "--budget", "60%", "--work", 300000, "--seed", 3, "-o", its)
    outcome = lowtide.plan(vit, "60%", work=300000, seed=3, threads=1)
    outcome.save(ours)
    assert plan_file(ours) == plan_file(its)
    outcome.plan.save(tmp_path / "plan.plan.json")
    assert (tmp_path / "plan.plan.json").read_text() == ours.read_text()
    assert lowtide.verify(vit, outcome.plan).peak == outcome.peak <= outcome.budget


def test_an_outcome_says_what_the_command_says(vit):
    its = json.loads(command("plan", VIT, "--budget", "50%", "--work", 200000, "--json").stdout)
    ours = lowtide.plan(vit, "50%", work=200000)
    for name in ("status", "stopped_by", "peak", "duration", "bound", "smallest_peak", "floor", "budget", "order",
                 "found_by"):
        assert getattr(ours, name) == its[name], name
    assert math.isclose(100 * ours.overhead, its["overhead_percent"])
    assert math.isclose(100 * ours.gap, its["gap_percent"])
    assert [(part.name, part.work, part.plans, part.won, part.bound) for part in ours.parts] == [
        (part["name"], part["work"], part["plans"], part["won"], part["bound"]) for part in its["parts"]]
    assert [(i.duration, i.peak) for i in ours.history] == [(i["duration"], i["peak"]) for i in its["history"]]


def test_budgets_are_bytes_and_shares(chain):
    for budget, its in ((24, 24), ("24", 24), ("24 B", 24), ("100%", 24), ("act:50%", 12), (True, None), (1.5, None)):
        if its is None:
            with pytest.raises(TypeError, match="budget must be an int"):
                lowtide.Problem(chain, budget)
        else:
            assert lowtide.Problem(chain, budget).budget == its


def test_an_infeasible_budget_gives_an_outcome_and_no_exception(chain, tmp_path):
    none = lowtide.plan(chain, 14)
    assert (none.status, none.plan, none.duration, none.peak, none.overhead, none.gap, none.bound) == (
        "infeasible", None, None, None, None, None, None)
    assert none.floor > 14
    none.save(tmp_path / "none.plan.json")
    with pytest.raises(lowtide.PlanError, match="the file has no plan; its status is: infeasible"):
        lowtide.verify(chain, lowtide.Plan.load(tmp_path / "none.plan.json"))
    unsupported = lowtide.plan(chain, objective="memory", solver="greedy")
    assert unsupported.status == "unsupported" and "cannot minimise memory" in unsupported.note


def test_problems(chain):
    problem = lowtide.Problem(chain, "100%", order="given")
    assert (problem.budget, problem.order, problem.objective, problem.time_limit) == (24, "given", "time", None)
    assert lowtide.plan(problem).status == "optimal"
    with pytest.raises(TypeError, match="a Problem has budget"):
        lowtide.plan(problem, 24)
    least = lowtide.Problem(chain, objective="memory", time_limit="10%")
    assert (least.budget, least.time_limit) == (None, 11)
    outcome = lowtide.plan(least, solver="order")
    assert outcome.peak == 24 and lowtide.verify(chain, outcome.plan).peak == 24


# Tensor 1, which takes five ticks to make, waits for the last op while ops 1 and 2 run.
WAITING = {"format": "lowtide-graph", "version": 1, "tick": "none", "outputs": [4],
           "tensors": [{"bytes": size} for size in (1, 8, 1, 9, 1)],
           "ops": [{"inputs": [0], "outputs": [1], "time": 5}, {"inputs": [0], "outputs": [2], "time": 1},
                   {"inputs": [2], "outputs": [3], "time": 1}, {"inputs": [1, 3], "outputs": [4], "time": 1}]}


def test_limits_of_what_is_live_during_an_op():
    graph = lowtide.Graph.from_dict(WAITING)
    free = lowtide.plan(graph, 20, order="given", work=5000)
    assert (free.status, free.duration) == ("optimal", 8)
    problem = lowtide.Problem(graph, 20, order="given", live_limits={1: 9, 2: "1KiB"})
    assert problem.live_limits == {1: 9, 2: 1024} and lowtide.Problem(graph, 20).live_limits == {}
    tight = lowtide.plan(problem, work=5000)
    assert (tight.duration, tight.graph.hash) == (13, graph.hash)
    assert lowtide.verify(problem, tight.plan).peak == tight.peak == max(lowtide.simulate(graph, tight.plan).memory)
    assert lowtide.plan(graph, 20, order="given", work=5000, live_limits={1: 9}).plan.steps == tight.plan.steps
    with pytest.raises(lowtide.PlanError, match="10 bytes are live, its limit is 9"):
        lowtide.verify(problem, free.plan)
    assert lowtide.verify(graph, free.plan).duration == 8
    plain = problem.without_limits()
    assert (plain.live_limits, plain.budget, plain.graph.op(1).workspace) == ({}, 20, 11)
    assert lowtide.plan(plain, work=5000).duration == 13
    none = lowtide.plan(graph, 20, work=5000, live_limits={1: 1})
    assert none.status == "infeasible" and none.floor <= 20 and "limits" in none.note


@pytest.mark.parametrize("limits, said", [({4: 1}, "no such op"), ({-1: 1}, "no such op"), ({0: -1}, "live_limits"),
                                          ({0: "much"}, "live_limits")])
def test_limits_that_cannot_be_meant(limits, said):
    graph = lowtide.Graph.from_dict(WAITING)
    with pytest.raises(lowtide.Error, match=said):
        lowtide.plan(graph, 20, live_limits=limits)
    with pytest.raises(lowtide.Error, match=said):
        lowtide.Problem(graph, 20, live_limits=limits)


def test_limits_of_the_wrong_kind():
    graph = lowtide.Graph.from_dict(WAITING)
    with pytest.raises(TypeError, match="indices of ops"):
        lowtide.plan(graph, 20, live_limits={"op": 1})
    with pytest.raises(lowtide.Error, match="least time"):
        lowtide.Problem(graph, objective="memory", live_limits={0: 1})
    with pytest.raises(TypeError, match="a Problem has budget"):
        lowtide.plan(lowtide.Problem(graph, 20), live_limits={0: 1})
    with pytest.raises(TypeError, match="a Problem has budget"):
        lowtide.verify(lowtide.Problem(graph, 20), lowtide.plan(graph, 20).plan, 20)


def test_starts_and_options(vit):
    start = lowtide.plan(vit, "60%", solver="greedy", options={"choice": "bytes", "repeats": 3})
    assert start.plan is not None
    said = []
    worked = lowtide.plan(vit, "60%", solver="search", work=1000, start=start.plan, progress=said.append)
    assert repr(said[-1]).startswith("<lowtide.Progress: search") and "0x" not in repr(worked.history)
    assert worked.duration <= start.duration
    assert lowtide.plan(vit, "60%", solver="search", work=1000, start=[start.plan], options={"push": False}).plan


def test_the_model_of_a_narrower_solver(chain):
    assert lowtide.plan(chain, "100%", solver="given").model is None
    listed = {each["name"]: each for each in json.loads(command("solvers", "--json").stdout)}
    if not listed["moccasin"]["available"]:
        pytest.skip(listed["moccasin"]["needs"])
    # 36 bytes at once; 31 if A is computed again for E.
    graph = lowtide.Graph.from_dict(CHAIN | {
        "tensors": [{"bytes": size} for size in (10, 6, 20, 1)],
        "ops": [{"name": name, "inputs": inputs, "outputs": [i], "time": 1}
                for i, (name, inputs) in enumerate({"A": [], "B": [0], "D": [1], "E": [0, 2]}.items())]})

    def planned(intervals):
        return lowtide.plan(graph, 31, solver="moccasin", work=2_000_000, options={"intervals": intervals})

    once = planned({"*": 1})
    assert (once.status, once.model.status, once.model.bound) == ("unknown", "infeasible", None)
    for some in ({"*": 1, "A": 3}, {"?": 1, 0: 3}):
        twice = planned(some)
        assert twice.duration == 5 and twice.model.bound == 5 and twice.model.status == "optimal"
        assert "at most 1 to 3 computations" in repr(twice.model)
    with pytest.raises(lowtide.Error, match='no op of the graph is "F"'):
        planned({"F": 3})


@pytest.mark.parametrize("arguments, flags", [
    (dict(budget="8Gx"), ["--budget", "8Gx"]),
    (dict(budget="-1"), ["--budget=-1"]),
    (dict(budget="act:3"), ["--budget", "act:3"]),
    (dict(budget="50%", options={"x": 1}), ["--budget", "50%", "--option", "x=1"]),
    (dict(budget="50%", solver="greedy", options={"repeats": 0}),
     ["--budget", "50%", "--solver", "greedy", "--option", "repeats=0"]),
])
def test_bad_arguments_in_the_commands_words(arguments, flags, vit):
    with pytest.raises(lowtide.Error) as refused:
        lowtide.plan(vit, **arguments)
    assert command("plan", VIT, *flags).stderr == f"lowtide: {refused.value}\n"


@pytest.mark.parametrize("arguments, said", [
    (dict(), "budget: is missing"),
    (dict(budget="50%", solver="none"), "there is none of that name; there are: given"),
    (dict(budget="50%", order="mine"), "is neither free nor given"),
    (dict(budget="50%", objective="fun"), "is neither time nor memory"),
    (dict(budget="50%", time=math.nan), "is not a number of seconds"),
    (dict(budget="50%", time=-1), "is not a number of seconds"),
    (dict(budget="50%", work=-1), "is not a whole number"),
    (dict(budget="50%", threads=5000), "is not in range"),
    (dict(budget="50%", time_limit=-1), "is no number of ticks"),
])
def test_other_bad_arguments(arguments, said, chain):
    with pytest.raises(lowtide.Error, match=said):
        lowtide.plan(chain, **arguments)


@pytest.mark.parametrize("path", sorted((ROOT / "tests/io/malformed/graph").iterdir()), ids=lambda path: path.name)
def test_malformed_graphs_in_the_commands_words(path):
    run = command("convert", path, "/dev/null", "--format", "lowtide")
    assert run.returncode == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(lowtide.Error) as refused:
            lowtide.Graph.load(path)
    assert run.stderr.splitlines()[-1] == f"lowtide: {refused.value}"


@pytest.mark.parametrize("path", sorted((ROOT / "tests/io/malformed/plan").iterdir()), ids=lambda path: path.name)
def test_malformed_plans_in_the_commands_words(path):
    run = command("show", VIT, path)
    assert run.returncode == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(lowtide.Error) as refused:
            lowtide.Plan.load(path)
    assert run.stderr.splitlines()[-1] == f"lowtide: {refused.value}"


def test_text_that_is_none():
    with pytest.raises(UnicodeEncodeError):
        lowtide.Graph.from_json("\ud800")
    with pytest.raises(UnicodeEncodeError):
        lowtide.plan(lowtide.generate("chain", 10), "\ud800")
    for read in (lowtide.Graph.from_json, lowtide.Plan.from_json):
        with pytest.raises(TypeError, match="text must be a str or bytes"):
            read(7)
    with pytest.raises(TypeError):
        lowtide.plan(lowtide.generate("chain", 10), "50%", options={1: 2})
    with pytest.raises(lowtide.Error, match="^<bytes>: line 1"):
        lowtide.Plan.from_json(b"\xff", name="<bytes>")


def test_malformed_steps():
    for steps in (["compute"], [("compute",)], [("compute", -1)], [("burn", 1)], [(1, "compute")], [("offload", 1)]):
        with pytest.raises(lowtide.Error, match="step 1"):
            lowtide.Plan([("compute", 0), *steps])


# ---- curves, fits, reports


def test_a_curve_is_the_commands(vit, tmp_path):
    arguments = ["curve", VIT, "--from", "40%", "--points", 4, "--work", 400000, "--seed", 5, "--json"]
    its = json.loads(command(*arguments).stdout)
    heard = []
    curve = lowtide.curve(vit, "40%", points=4, work=400000, seed=5, progress=heard.append)
    ours = json.loads(curve.to_json())
    for one in (its, ours):
        del one["time_s"]
    assert ours == its
    assert [point.budget for point in curve.points] == sorted(point["budget"] for point in its["points"])
    assert all(lowtide.verify(vit, point.plan).peak <= point.budget for point in curve.points)
    assert curve.smallest.peak == curve.smallest.budget and curve.floor <= curve.smallest.peak
    assert (len(curve), curve.own_peak, curve.stopped_by) == (4, vit.own_peak, its["stopped_by"])
    assert curve.to_csv().count("\n") == 6 and "budget" in str(curve)
    curve.save_html(tmp_path / "curve.html")
    assert (tmp_path / "curve.html").read_text() == curve.to_html()
    assert heard[-1].points == 4 and heard[-1].planned <= 4
    curve.points[0].save(tmp_path / "point.plan.json")
    assert command("verify", VIT, tmp_path / "point.plan.json").returncode == 0


def test_a_curve_from_more_to_less(chain):
    with pytest.raises(lowtide.Error, match="from_ 90%: is more than to 50%"):
        lowtide.curve(chain, "90%", "50%")
    with pytest.raises(lowtide.Error, match='from_ "x": is not a number'):
        lowtide.curve(chain, "x")


def test_a_fit_is_the_commands(vit):
    its = json.loads(command("fit", VIT, "--overhead", "7%", "--work", 200000, "--json").stdout)
    for overhead in ("7%", "7", 0.07):
        fit = lowtide.fit(vit, overhead, work=200000)
        assert fit.time_limit == its["time_limit"] and fit.budget == its["budget"] and fit.floor == its["floor"]
    assert fit.outcome.peak == fit.budget and "overhead" in str(fit)
    for bad in (-0.1, math.nan, math.inf, "x%"):
        with pytest.raises(lowtide.Error, match="overhead"):
            lowtide.fit(vit, bad)


def test_reports(chain):
    plan = lowtide.plan(chain, "100%").plan
    assert "chain" in lowtide.report_text(chain, plan, width=60)
    assert lowtide.report_html(chain).startswith("<!doctype html>")
    assert lowtide.report_html(chain, plan).count("</html>") == 1


def test_solvers_are_the_commands():
    its = json.loads(command("solvers", "--json").stdout)
    ours = [solver for solver in lowtide.solvers() if "guest" not in solver[2]]
    assert ours == [(solver["name"], solver["summary"], tuple(solver["traits"])) for solver in its]


def test_the_how_to_runs(tmp_path, monkeypatch):
    """docs/how-to/use-from-python.md, block after block, in less time."""
    pytest.importorskip("numpy")
    text = (ROOT / "docs/how-to/use-from-python.md").read_text().replace('"examples/', f'"{ROOT}/examples/')
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(re.sub(r"time=\d+", "time=1", block), names)
    assert {path.name for path in tmp_path.iterdir()} == {"resnet50.plan.json", "curve.html"}
