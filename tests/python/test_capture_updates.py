"""Graphs that hold the optimizer's step: one update for each parameter, behind the last reader of it."""

import json
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from lowtide.frontend.planning.updates import joint_workspace
from lowtide.torch import CaptureError, capture
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.optimizer.rules import Rule, Watcher
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import lowtide

OPTIMIZERS = [
    ("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"amsgrad": True, "maximize": True}), ("AdamW", {}), ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("Adagrad", {}), ("NAdam", {}), ("RAdam", {}), ("Adadelta", {}), ("Adamax", {}), ("Rprop", {}), ("ASGD", {"t0": 0}),
    ("Adafactor", {}), ("Muon", {}),
]
FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
CASES = [(name, {**given, **how}) for name, given in OPTIMIZERS
         for how in ({}, {"foreach": True}, {"fused": True})
         if not ("foreach" in how and name == "Muon") and not ("fused" in how and name not in FUSED)]


def mlp(width=64, layers=4):
    return nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())))


def loss(model, x):
    return model(x).square().mean()


def updates_of(graph):
    return {op["name"].removeprefix("update "): op for op in json.loads(graph.to_json())["ops"]
            if op["kind"] == "lowtide.update"}


@pytest.mark.parametrize("name,given", CASES, ids=lambda v: v if isinstance(v, str) else ",".join(map(str, v)) or "plain")
def test_the_workspace_is_what_a_step_takes(name, given):
    """Measured on a real step, after one that made the state."""
    parameter = nn.Parameter(torch.rand(96, 64))
    optimizer = getattr(torch.optim, name)([parameter], **given)
    group = {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    before = set(optimizer.state)
    with FakeTensorMode() as mode:
        fake = torch.empty(96, 64)
    watched = Watcher(mode, on_gpu=False)(Rule(optimizer, group), fake)
    assert set(optimizer.state) == before
    for _ in range(10):  # some begin differently
        parameter.grad = torch.rand(96, 64)
        optimizer.step()
    state = {k: (tuple(v.shape), v.dtype) for k, v in optimizer.state[parameter].items() if isinstance(v, torch.Tensor)}
    assert {k: (tuple(v.shape), v.dtype) for k, v in watched.state.items()} == state
    peak = peak_rise(optimizer.step)
    size = parameter.numel() * 4
    if name == "Muon":  # products of half precision take more on a CPU, which their prices know
        assert 2 * size < watched.temporaries <= peak
    else:
        assert abs(watched.temporaries - peak) <= max(0.02 * size, 300), (watched.temporaries / size, peak / size)
    assert watched.implementation == next((word for word in ("fused", "foreach") if given.get(word)), "loop")
    assert watched.mutates_gradient == ("nesterov" in given and "foreach" in given)


@pytest.mark.parametrize("name,given", [case for case in CASES if case[0] != "Muon"], ids=lambda v: v if isinstance(v, str) else ",".join(map(str, v)) or "plain")
def test_one_call_for_several_parameters_takes_no_more_than_their_joint_workspace(name, given):
    parameters = [nn.Parameter(torch.rand(96, width)) for width in (64, 16, 80, 72)]
    optimizer = getattr(torch.optim, name)(parameters, **given)
    for _ in range(10):
        for p in parameters:
            p.grad = torch.rand_like(p)
        optimizer.step()
    with FakeTensorMode() as mode:
        watch = Watcher(mode, on_gpu=False)
    updates = []
    for p in parameters:
        watched = watch(Rule.of(optimizer, optimizer.param_groups[0]), p)
        attributes = {"implementation": watched.implementation, "temporaries": watched.temporaries}
        updates.append(SimpleNamespace(workspace=watched.temporaries, attributes=json.dumps(attributes)))
    assert peak_rise(optimizer.step) <= joint_workspace(updates) + 300


def test_gradients_end_where_parameters_are_updated():
    model = mlp()
    x = torch.rand(8, 64)
    plain = capture(model, (x,), loss)
    graph = capture(model, (x,), loss, update=torch.optim.AdamW(model.parameters(), fused=True))
    held = {t["name"] for i, t in enumerate(json.loads(graph.to_json())["tensors"])
            if i in json.loads(graph.to_json())["outputs"]}
    assert not any(name.endswith(".grad") for name in held)
    whole = json.loads(graph.to_json())
    assert len(whole["outputs"]) == len(json.loads(plain.to_json())["outputs"]) - 8
    ops = updates_of(graph)
    assert set(ops) == {name for name, _ in model.named_parameters()}
    barrier = next(i for i, op in enumerate(whole["ops"]) if op["kind"] == "lowtide.barrier")
    for name, op in ops.items():
        assert op.get("workspace", 0) == 0 and op["outputs"] == [] and op["after"] == [barrier] and op["time"] > 0
        assert [whole["tensors"][t]["name"] for t in op["mutates"]] == [
            name, f"{name}.step", f"{name}.exp_avg", f"{name}.exp_avg_sq"]
        assert op["attributes"] == {"optimizer": "AdamW", "implementation": "fused", "temporaries": 0}
    state = [t for t in whole["tensors"] if t.get("role") == "state"]
    weights = sum(p.numel() * 4 for p in model.parameters())
    assert sum(t["bytes"] for t in state) == 2 * weights + 8 * 4 and all(t["stays"] for t in state)
    outcome = lowtide.plan(graph, "100%", work=20_000)
    lowtide.verify(graph, outcome.plan)


def test_the_floor_falls_by_the_gradients():
    """8 x 512, in layers of parameters beside what is always there: gradients are held to the end, or one is there at a
    time, and what its update takes."""
    model = mlp(512, 8)
    x = torch.rand(16, 512)
    beside = sum(p.numel() * 4 for p in model.parameters())

    def layers(graph, states=0):
        fitting = lowtide.fit(graph, "0%", work=300_000, time=None).budget
        own, smallest = ((size - (1 + states) * beside) / (beside / 8) for size in (graph.own_peak, fitting))
        assert own < smallest + 0.2
        return smallest

    def updated(optimizer, states, **given):
        update = getattr(torch.optim, optimizer)(model.parameters(), **given)
        return layers(capture(model, (x,), loss, update=update, costs="cpu"), states)

    assert layers(capture(model, (x,), loss, costs="cpu")) > 8
    assert updated("AdamW", 2, fused=True) < 1.6
    assert 2 < updated("AdamW", 2, foreach=True) < 2.6
    assert 3 < updated("AdamW", 2) < 3.6
    assert updated("SGD", 1, momentum=0.9, fused=True) < 1.6


def test_an_update_stands_behind_every_reader():
    """A plan that recomputes reads weights again; none of that comes after their update."""
    model = mlp(32, 6)
    graph = capture(model, (torch.rand(4096, 32),), loss, update="sgd", costs="cpu")
    whole = json.loads(graph.to_json())
    outcome = lowtide.plan(graph, "60%", work=1_000_000)
    assert outcome.plan, (outcome.floor, graph.own_peak)
    lowtide.verify(graph, outcome.plan)
    gone = set()
    computed = [step[1] for step in outcome.plan.steps if step[0].startswith("compute")]
    assert len(computed) > len(whole["ops"])
    for j in computed:
        op = whole["ops"][j]
        assert not gone & set(op["inputs"])
        gone |= set(op.get("mutates", ()))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.head = nn.Linear(16, 50, bias=False)
        self.frozen = nn.Linear(16, 16)
        self.unused = nn.Linear(16, 16)
        self.head.weight = self.embedding.weight
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.head(self.frozen(self.embedding(x)))


def tied_loss(model, x):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())


def test_tied_weights_are_updated_once_and_what_has_no_gradient_never():
    model = Tied()
    graph = capture(model, (torch.randint(50, (4, 8)),), tied_loss, update="adam")
    assert set(updates_of(graph)) == {"embedding.weight"}


def test_groups_and_what_no_group_has():
    model = mlp(16, 3)
    groups = [{"params": [model[0].weight], "momentum": 0.9}, {"params": [model[2].weight]}]
    graph = capture(model, (torch.rand(4, 16),), loss, update=torch.optim.SGD(groups, lr=0.1))
    ops = updates_of(graph)
    assert set(ops) == {"0.weight", "2.weight"} and len(ops["0.weight"]["mutates"]) == 2
    assert len(ops["2.weight"]["mutates"]) == 1
    whole = json.loads(graph.to_json())
    held = [whole["tensors"][t]["name"] for t in whole["outputs"]]
    assert [n for n in held if n.endswith(".grad")] == ["4.weight.grad", "4.bias.grad", "2.bias.grad", "0.bias.grad"] \
        or {n for n in held if n.endswith(".grad")} == {"4.weight.grad", "4.bias.grad", "2.bias.grad", "0.bias.grad"}


def test_models_that_fit_nowhere():
    """Built while tensors are fake, for a GPU, where a loop is not what PyTorch would take."""
    def build():
        return mlp(16384, 8), (torch.empty(4, 16384),), loss

    graph = capture(build, update=lambda model: torch.optim.Adam(
        [{"params": [p for p in model.parameters() if p.dim() > 1]},
         {"params": [p for p in model.parameters() if p.dim() == 1], "lr": torch.tensor(1e-4)}]), costs="h200")
    ops = updates_of(graph)
    assert ops["0.weight"]["attributes"]["implementation"] == "foreach"
    assert ops["0.bias"]["attributes"]["implementation"] == "loop"  # by a tensor as learning rate
    assert ops["0.weight"]["workspace"] >= 16384**2 * 4
    assert graph.input_bytes > 3 * 8 * 16384**2 * 4
    lowtide.verify(graph, lowtide.plan(graph, "100%", work=1000).plan)


def test_half_precision_has_half_the_state():
    model = mlp(32, 2)
    bytes_of = {dtype: sum(t["bytes"] for t in json.loads(capture(
        model, (torch.rand(4, 32),), loss, update="adamw", dtype=dtype).to_json())["tensors"]
        if t.get("role") == "state" and len(t["shape"]) > 0) for dtype in ("f32", "bf16")}
    assert bytes_of["f32"] == 2 * bytes_of["bf16"]


def test_state_on_the_host():
    model = mlp(16, 2)
    graph = capture(model, (torch.rand(4, 16),), loss, update="adam", state_home="host")
    homes = {t["name"]: t.get("home") for t in json.loads(graph.to_json())["tensors"] if t.get("role") == "state"}
    assert homes["0.weight.exp_avg"] == "host" and homes["0.weight.step"] is None
    assert set(homes.values()) == {"host", None}


def test_state_on_the_host_is_fetched_and_brought_back():
    model, inputs = mlp(256, 4), (torch.rand(64, 256),)
    here, there = (capture(model, inputs, loss, update="adam", costs="a100", state_home=home) for home in ("device", "host"))
    state = sum(t.bytes for t in there.tensors if t.home == "host")
    assert state > 1.9 * sum(p.nbytes for p in model.parameters())
    with pytest.raises(lowtide.Error, match="host"):
        lowtide.plan(there, "100%", work=10_000)
    least = {}
    for name, graph in (("here", here), ("there", there)):
        fit = lowtide.fit(graph, "1000%", link="25GB/s,10us", work=300_000, threads=1)
        cost = lowtide.verify(graph, fit.outcome.plan)
        least[name] = cost.peak
        if name == "there":
            # All of it comes in, and goes out again as the step has left it.
            assert cost.host_peak >= state
            moved = [step for step in fit.outcome.plan.steps if step[0] in ("prefetch", "offload")]
            assert len(moved) >= 2 * sum(t.home == "host" for t in graph.tensors)
    assert least["there"] < least["here"] - state // 4


def test_the_users_optimizer_stays_as_it_is():
    model = mlp(16, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
    before = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    parameters = [p.detach().clone() for p in model.parameters()]
    capture(model, (torch.rand(4, 16),), loss, update=optimizer)
    assert not optimizer.state and [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups] == before
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(parameters, model.parameters()))


class Own(torch.optim.SGD):
    pass


def test_refusals():
    def refused(error, words, update, model=None, **more):
        with pytest.raises(error, match=words):
            capture(model or mlp(16, 1), (torch.rand(4, 16),), loss, update=update, **more)

    refused(ValueError, "LBFGS reads all gradients at once", torch.optim.LBFGS)
    refused(ValueError, "LBFGS reads all gradients at once", "lbfgs")
    refused(ValueError, "SparseAdam takes sparse gradients", "SparseAdam")
    refused(ValueError, "no optimizer 'shampoo'; known are .*adamw", "shampoo")
    refused(CaptureError, "Own is none of torch.optim", lambda m: Own(m.parameters(), 0.1))
    refused(TypeError, "update must be an optimizer", 3)
    refused(TypeError, "update must be an optimizer", nn.Module)
    refused(CaptureError, "the function must return an optimizer, not NoneType", lambda m: None)
    refused(ValueError, "state_home must be 'device' or 'host'", "sgd", state_home="disk")
    refused(ValueError, "optimizer or update, not both", "sgd", optimizer="sgd")
    other = mlp(16, 1)
    refused(CaptureError, r"parameter 0 of group 0, of shape \[16, 16\], is not one of the model's",
            torch.optim.SGD(other.parameters(), 0.1))
    hooked = mlp(16, 1)
    hooked[0].weight.register_hook(lambda g: g)
    refused(CaptureError, "0.weight has hooks on its gradient", "sgd", hooked)
    late = mlp(16, 1)
    late[0].bias.register_post_accumulate_grad_hook(lambda p: None)
    refused(CaptureError, "0.bias has hooks on its gradient", "sgd", late)
    model = mlp(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    optimizer.register_step_pre_hook(lambda *a: None)
    refused(CaptureError, "hooks on its step", optimizer, model)


def test_sparse_gradients_are_refused():
    model = nn.Embedding(10, 4, sparse=True)
    with pytest.raises(CaptureError, match="sparse|layout"):
        capture(model, (torch.tensor([1, 2]),), lambda m, x: m(x).sum(), update="sgd")
