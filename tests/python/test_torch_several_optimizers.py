"""Several optimizers, each with parameters of its own: in `step`, in backwards that update, and beside what none knows."""

import copy

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn
from torch_run import alone, twin
from torch_updates import assert_same


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.hidden = nn.Embedding(16, width), nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.head, self.unused = nn.Linear(width, 16), nn.Linear(width, width)

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for layer in self.hidden:
            x = x + torch.tanh(layer(x))
        return F.cross_entropy(self.head(x), targets)


def inputs(i=0):
    generator = torch.Generator().manual_seed(i)
    return tuple(torch.randint(16, (64,), generator=generator) for _ in range(2))


def matrices(model):
    return [layer.weight for layer in model.hidden]


def others(model):
    mine = {id(p) for p in matrices(model)}
    return [p for p in model.parameters() if id(p) not in mine]


def muon_and_adamw(model):
    return [torch.optim.Muon(matrices(model), lr=0.01), torch.optim.AdamW(others(model), lr=1e-3)]


def sgd_in_groups_and_adam(model):
    return [torch.optim.SGD([{"params": [layer.weight], "lr": 0.1 * (i + 1)} for i, layer in enumerate(model.hidden)],
                            lr=0.1, momentum=0.9), torch.optim.Adam(others(model), lr=1e-3, amsgrad=True)]


def one_for_each(model):
    makes = (lambda p: torch.optim.SGD(p, 0.1), torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.NAdam)
    return [makes[i % len(makes)]([p]) for i, p in enumerate(model.parameters())]


MAKES = [muon_and_adamw, sgd_in_groups_and_adam, one_for_each]
OPTIONS = {"costs": "flops", "work": 1000, "time": None}


def pair():
    torch.manual_seed(0)
    module = Net()
    return module, twin(module)


def loop(model, optimizers, count=3):
    losses = []
    for i in range(count):
        loss = model(*inputs(i))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        for optimizer in optimizers:
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def assert_same_as(mine, ours, plain, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert_same((mine, a), (plain, b))


@pytest.mark.parametrize("make", MAKES)
def test_a_step_with_several_optimizers_is_that_of_the_loop(make):
    mine, plain = pair()
    ours, theirs = make(mine), make(plain)
    step = lowtide.torch.step(mine, ours, inputs(), budget="90%", **OPTIONS)
    assert [step(*inputs(i)).item() for i in range(3)] == loop(plain, theirs)
    assert_same_as(mine, ours, plain, theirs)
    assert step.report.updated == 1 + 2 * 3 + 2


@pytest.mark.parametrize("make", MAKES)
def test_backwards_update_by_several_optimizers(make):
    mine, plain = pair()
    ours, theirs = make(mine), make(plain)
    planned = lowtide.torch.optimize(mine, inputs(), budget="90%", optimizer=ours, update="backward", fallback="error", **OPTIONS)
    assert loop(planned, ours) == loop(plain, theirs)
    assert_same_as(mine, ours, plain, theirs)


def test_states_of_several_optimizers_are_at_home_on_the_host():
    mine, plain = pair()
    ours, theirs = muon_and_adamw(mine), muon_and_adamw(plain)
    step = lowtide.torch.step(mine, ours, inputs(), budget="100%", state_home="host", link="1GB/s,1us", costs="cpu", work=1000,
                              time=None)
    assert [step(*inputs(i)).item() for i in range(3)] == loop(plain, theirs)
    assert_same_as(mine, ours, plain, theirs)


def test_a_parameter_that_no_optimizer_knows_is_named():
    mine, _ = pair()
    muon, adamw = muon_and_adamw(mine)
    with pytest.raises(ValueError, match=r"no optimizer knows embed\.weight, hidden\.0\.bias, .*head\.weight"):
        lowtide.torch.step(mine, muon, inputs(), budget="8GiB", **OPTIONS)
    with pytest.raises(ValueError, match=r"know none of the parameters .*hidden\.0\.weight"):
        lowtide.torch.step(mine, torch.optim.SGD(mine.unused.parameters(), 0.1), inputs(), budget="8GiB", **OPTIONS)
    adamw.param_groups[0]["params"] = [p for p in adamw.param_groups[0]["params"] if p is not mine.head.bias]
    with pytest.raises(ValueError, match=r"no optimizer knows head\.bias\."):
        lowtide.torch.step(mine, [muon, adamw], inputs(), budget="8GiB", **OPTIONS)
    mine.head.bias.requires_grad_(False)
    step = lowtide.torch.step(mine, [muon, adamw], inputs(), budget="8GiB", **OPTIONS)
    before = mine.head.bias.clone()
    step(*inputs())
    assert torch.equal(mine.head.bias, before)


def test_parameters_of_an_optimizer_may_be_frozen():
    mine, plain = pair()
    for model in (mine, plain):
        model.embed.requires_grad_(False)
        model.hidden[0].weight.requires_grad_(False)
    ours, theirs = muon_and_adamw(mine), muon_and_adamw(plain)
    step = lowtide.torch.step(mine, ours, inputs(), budget="100%", **OPTIONS)
    assert [step(*inputs(i)).item() for i in range(3)] == loop(plain, theirs)
    assert_same_as(mine, ours, plain, theirs)


def test_gradients_that_no_update_takes_are_handed_out():
    """With update="backward" one optimizer may step after the backward, as ever."""
    mine, plain = pair()
    ours, theirs = muon_and_adamw(mine), muon_and_adamw(plain)
    planned = lowtide.torch.optimize(mine, inputs(), budget="100%", optimizer=ours[0], update="backward", fallback="error",
                                     **OPTIONS)
    assert loop(planned, ours) == loop(plain, theirs)
    assert_same_as(mine, ours, plain, theirs)


def test_one_of_several_that_does_not_step_is_found():
    mine, _ = pair()
    first, second = muon_and_adamw(mine)
    planned = lowtide.torch.optimize(mine, inputs(), budget="100%", optimizer=[first, second], update="backward",
                                     fallback="error", **OPTIONS)
    planned(*inputs()).backward()
    first.step()
    first.zero_grad()
    with pytest.raises(lowtide.torch.UpdateError, match=r"a forward before optimizer\.step\(\)"):
        planned(*inputs())


@pytest.mark.parametrize("update", ["step", "backward"])
def test_a_parameter_of_two_optimizers_is_refused(update):
    mine, _ = pair()
    both = [torch.optim.SGD(mine.parameters(), 0.1), torch.optim.Adam(mine.head.parameters())]
    with pytest.raises(ValueError, match=r"parameter 0 of group 0 of optimizer 1 \(Adam\), of shape \[16, 32\], is one of "
                                         r"optimizer 0 \(SGD\) as well"):
        lowtide.torch.optimize(mine, inputs(), budget="8GiB", optimizer=both, update=update)
    with pytest.raises(ValueError, match="give every parameter to one optimizer"):
        lowtide.torch.step(mine, both, inputs(), budget="8GiB")


def test_a_list_takes_optimizers_alone():
    mine, _ = pair()
    for wrong in ("adamw", torch.optim.AdamW, None):
        with pytest.raises(TypeError, match="a list takes optimizers"):
            lowtide.torch.optimize(mine, inputs(), budget="8GiB", optimizer=[torch.optim.SGD(mine.parameters(), 0.1), wrong])
    with pytest.raises(TypeError, match="step takes the torch.optim.Optimizer"):
        lowtide.torch.step(mine, ["adamw"], inputs(), budget="8GiB")
    with pytest.raises(ValueError, match="LBFGS"):
        lowtide.torch.step(mine, [torch.optim.LBFGS(mine.parameters())], inputs(), budget="8GiB")


def test_states_of_several_are_counted_each_by_its_rule():
    mine, _ = pair()
    graphs = [lowtide.torch.capture(mine, inputs(), optimizer=o, costs="flops") for o in (muon_and_adamw(mine), None)]
    expected = sum(p.numel() for p in matrices(mine)) * 4 + sum(p.numel() for p in others(mine)) * 8
    assert graphs[0].resident_bytes - graphs[1].resident_bytes == expected


def test_updates_by_several_are_in_a_captured_graph():
    mine, _ = pair()
    graph = lowtide.torch.capture(mine, inputs(), update=muon_and_adamw(mine), costs="flops")
    names = {op["attributes"]["optimizer"] for op in graph.to_dict()["ops"] if op["kind"] == "lowtide.update"}
    assert names == {"Muon", "AdamW"}
    with pytest.raises(lowtide.torch.CaptureError, match=r"head\.weight is one of two optimizers' parameters"):
        lowtide.torch.capture(mine, inputs(), costs="flops", update=[
            lambda m: torch.optim.SGD(m.parameters(), 0.1), lambda m: torch.optim.Adam(m.head.parameters())])


def test_state_dicts_go_on_in_an_ordinary_loop():
    mine, plain = pair()
    ours, theirs = muon_and_adamw(mine), muon_and_adamw(plain)
    step = lowtide.torch.step(mine, ours, inputs(), budget="100%", **OPTIONS)
    step(*inputs())
    loop(plain, theirs, 1)
    for optimizer, other in zip(ours, theirs, strict=True):
        other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert loop(plain, theirs) == [step(*inputs(i)).item() for i in range(3)]
