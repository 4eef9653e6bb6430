"""`lowtide.torch.step`: forward, backward and updates in one planned call, against the loop that everybody writes."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.device.meter import peak_rise
from torch import nn
from torch.nn import functional as F
from torch_run import alone, equal, fresh, twin
from torch_zoo import ZOO

SLACK = 64
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9, nesterov=True),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3),
    "fused": lambda p: torch.optim.AdamW(p, 1e-3, fused=True),
    "foreach": lambda p: torch.optim.Adam(p, 1e-3, foreach=True, amsgrad=True),
}


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers, self.head = nn.ModuleList(nn.Linear(width, width) for _ in range(4)), nn.Linear(width, 10)

    def forward(self, x, y=None):
        for layer in self.layers:
            x = F.dropout(F.gelu(layer(x)), 0.2, self.training)
        x = self.head(x)
        return x if y is None else F.cross_entropy(x, y)


def net():
    torch.manual_seed(0)
    return Net(), (torch.randn(96, 64), torch.randint(10, (96,)))


def stepping(model, optimizer, inputs, loss=None, budget="100%", **options):
    return lowtide.torch.step(model, optimizer, inputs, loss, budget=budget,
                              **{"costs": "cpu", "work": 60_000, "time": None} | options)


def eager(model, optimizer, run=None):
    def step(*inputs):
        optimizer.zero_grad()
        loss = (run or model)(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def trained(step, inputs, steps=3):
    torch.manual_seed(1)
    return [*(step(*inputs) for _ in range(steps)), torch.get_rng_state()]


def same(model, optimizer, other, theirs):
    """Are parameters, buffers and the optimizers' states equal?"""
    def state(optimizer):
        return [t for _, entry in sorted(optimizer.state_dict()["state"].items()) for _, t in sorted(entry.items())
                if isinstance(t, torch.Tensor)]

    return equal(list(model.state_dict().values()), list(other.state_dict().values())) \
        and equal(state(optimizer), state(theirs))


@pytest.mark.parametrize("make", ["fused", "foreach"])
def test_a_step_is_that_of_the_loop(make):
    module, inputs = fresh(ZOO["gpt_dropout"])
    mine, plain = twin(module), twin(module)
    ours, theirs = OPTIMIZERS[make](mine.parameters()), OPTIMIZERS[make](plain.parameters())
    step = stepping(mine, ours, inputs, budget="85%")
    before = copy.deepcopy(mine.state_dict())
    assert equal(list(before.values()), list(module.state_dict().values())), "nothing has run"
    assert equal(trained(step, inputs), trained(eager(plain, theirs), inputs))
    assert same(mine, ours, plain, theirs) and all(p.grad is None for p in mine.parameters())
    assert step.report.updated == len(list(mine.parameters()))
    measured = peak_rise(lambda: step(*inputs)) + step.report.inputs + step.report.resident
    assert measured <= step.report.budget + SLACK
    if make != "foreach":  # its own copies: a list of one takes less of them than is counted
        assert abs(measured - step.report.peak) <= SLACK


def test_gradients_die_in_their_updates():
    torch.manual_seed(0)
    module, inputs = Net(256), (torch.randn(16, 256), torch.randint(10, (16,)))
    plain = twin(module)
    make = OPTIMIZERS["fused"]
    loop = eager(plain, make(plain.parameters()))
    loop(*inputs)
    step = stepping(module, make(module.parameters()), inputs)
    step(*inputs)
    assert peak_rise(lambda: step(*inputs)) < 0.5 * peak_rise(lambda: loop(*inputs))


def test_a_loss_function_and_what_else_it_returns():
    module, (x, y) = net()
    plain = twin(module)
    ours, theirs = (torch.optim.SGD(m.parameters(), 0.1) for m in (module, plain))

    def loss(model, x, y):
        scores = model(x)
        return F.cross_entropy(scores, y), scores.argmax(1)

    step = stepping(module, ours, (x, y), loss)
    torch.manual_seed(1)
    got, chosen = step(x, y)
    torch.manual_seed(1)
    expected = eager(plain, theirs, lambda x, y: loss(plain, x, y)[0])(x, y)
    assert torch.equal(got, expected) and chosen.shape == (96,) and not got.requires_grad
    assert same(module, ours, plain, theirs)
    torch._dynamo.reset()
    step = stepping(module, ours, {"x": x, "y": y})
    torch.manual_seed(1)
    got = step(x=x, y=y)
    torch.manual_seed(1)
    assert torch.equal(got, eager(plain, theirs)(x, y)) and same(module, ours, plain, theirs)


def test_schedules_and_the_loop_that_goes_on():
    module, inputs = net()
    plain = twin(module)
    ours, theirs = (OPTIMIZERS["adamw"](m.parameters()) for m in (module, plain))
    schedules = [torch.optim.lr_scheduler.OneCycleLR(o, 0.01, total_steps=8) for o in (ours, theirs)]
    step, loop = stepping(module, ours, inputs), eager(plain, theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no "lr_scheduler.step() before optimizer.step()"
        for run, schedule in ((step, schedules[0]), (loop, schedules[1])):
            torch.manual_seed(2)
            for _ in range(4):
                run(*inputs)
                schedule.step()
    assert same(module, ours, plain, theirs)
    # An ordinary optimizer takes the state and goes on.
    other = OPTIMIZERS["adamw"](module.parameters())
    other.load_state_dict(ours.state_dict())
    for run in (eager(module, other), eager(plain, theirs)):
        torch.manual_seed(3)
        run(*inputs)
    assert same(module, other, plain, theirs)


def test_other_sizes_and_frozen_parameters():
    module, (x, y) = net()
    module.layers[0].requires_grad_(False)
    plain = twin(module)
    ours, theirs = (OPTIMIZERS["sgd"](m.parameters()) for m in (module, plain))
    step, loop = stepping(module, ours, (x, y)), eager(plain, theirs)
    for size in (96, 40):
        given = x[:size], y[:size]
        torch.manual_seed(1)
        got = step(*given)
        torch.manual_seed(1)
        assert torch.equal(got, loop(*given))
    assert same(module, ours, plain, theirs)


def test_wrong_arguments_of_step_are_refused():
    module, inputs = net()
    optimizer = OPTIMIZERS["sgd"](module.parameters())
    for given, error, words in (
        ((module, "adam", inputs), TypeError, "torch.optim.Optimizer"),
        ((F.gelu, optimizer, inputs), TypeError, "torch.nn.Module"),
    ):
        with pytest.raises(error, match=words):
            stepping(*given)
    with pytest.raises(ValueError, match="takes no GradScaler"):
        stepping(module, optimizer, inputs, scaler=torch.amp.GradScaler("cpu"))
    with pytest.raises(TypeError, match="says 'update' by itself"):
        stepping(module, optimizer, inputs, update="step")
    with pytest.raises(ValueError, match="no option 'whole'"):
        stepping(module, optimizer, inputs, whole=True)
    with pytest.raises(lowtide.torch.BudgetError):
        stepping(module, optimizer, inputs, budget="1kB")
    with pytest.raises(lowtide.torch.CaptureError, match="one result that can be differentiated"):
        stepping(module, optimizer, inputs, lambda model, x, y: Two(model)(x, y))


class Two:
    """A loss that is not alone: the scores come out by another way."""

    def __init__(self, model):
        self.model = model

    def __call__(self, x, y):
        scores = self.model(x)
        x.kept = scores
        return F.cross_entropy(scores, y)


def test_calls_with_wrong_arguments_are_refused():
    module, inputs = net()
    optimizer = OPTIMIZERS["sgd"](module.parameters())
    step = stepping(module, optimizer, inputs)
    before = [p.clone() for p in module.parameters()]
    with torch.no_grad(), pytest.raises(RuntimeError, match="would train nothing"):
        step(*inputs)
    module.head.weight.grad = torch.ones_like(module.head.weight)
    with pytest.raises(lowtide.torch.UpdateError, match="some exist already"):
        step(*inputs)
    module.head.weight.grad = None
    hook = module.head.weight.register_hook(lambda g: g)
    with pytest.raises(lowtide.torch.UpdateError, match="hooks on its gradient"):
        step(*inputs)
    hook.remove()
    with lowtide.torch.accumulate(module), pytest.raises(lowtide.torch.UpdateError, match="add up over microbatches"):
        step(*inputs)
    assert equal(before, list(module.parameters())), "nothing was updated"
    step(*inputs)
    assert not equal(before, list(module.parameters()))


def test_a_plan_that_was_found_for_another_model_updates_this_one(monkeypatch):
    """Of the smallest peak, where no search finds one again: the model is another one of the same graph."""
    module, inputs = net()
    other, plain = twin(module), twin(module)
    theirs, by_other, by_plain = (OPTIMIZERS["fused"](m.parameters()) for m in (module, other, plain))
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        stepping(module, theirs, inputs, budget=1, work=2000)
    plan = lowtide.plan
    monkeypatch.setattr(lowtide, "plan", lambda problem, **options: plan(problem, work=0))
    torch._dynamo.reset()
    step = stepping(other, by_other, inputs, budget=refused.value.smallest, work=2000)
    assert equal(trained(step, inputs), trained(eager(plain, by_plain), inputs))
    assert same(other, by_other, plain, by_plain)


def test_a_graph_break_is_refused():
    class Broken(Net):
        def forward(self, x, y):
            x = self.layers[0](x)
            torch._dynamo.graph_break()
            return F.cross_entropy(self.head(self.layers[1](x)), y)

    torch.manual_seed(0)
    module, inputs = Broken(), net()[1]
    with pytest.raises(lowtide.torch.CaptureError, match="TORCH_LOGS=graph_breaks"):
        stepping(module, OPTIMIZERS["sgd"](module.parameters()), inputs)
