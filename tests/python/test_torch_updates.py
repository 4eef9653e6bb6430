"""Parameters updated in the backward: the same bits as a step after it, in less memory."""

import copy
import gc
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device.meter import bytes_held, peak_rise
from lowtide.torch.optimizer import graph_updates
from lowtide.torch.optimizer.updater import Updater
from torch import nn
from torch.optim import lr_scheduler
from torch_run import deterministic
from torch_updates import Broken, Cnn, Gpt, Mlp, assert_same, cnn_inputs, compiled, gpt_inputs, mlp_inputs, steps


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def smallest(model, inputs, optimizer):
    """The smallest budget that is kept."""
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        compiled(model, inputs, optimizer, budget=1)
    return refused.value.smallest


def check(build, inputs, optimizer, schedule=None, count=3, *, tight=False):
    torch.manual_seed(0)
    plain = build()
    mine = copy.deepcopy(plain)
    by, by_mine = optimizer(plain), optimizer(mine)
    run = compiled(mine, inputs(), by_mine, budget=smallest(mine, inputs(), by_mine) if tight else "100%")
    assert lowtide.torch.reports()[-1].updated == len(list(mine.parameters()))
    (losses, state), (losses_mine, state_mine) = (
        steps(module, o, inputs, count, schedule and schedule(o)) for module, o in ((plain, by), (run, by_mine)))
    assert losses == losses_mine
    assert torch.equal(state, state_mine)
    assert all(p.grad is None for p in mine.parameters())
    assert_same((plain, by), (mine, by_mine))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=True),
    "fused SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, maximize=True),
    "foreach AdamW": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
    "fused AdamW": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "foreach Adam": lambda p: torch.optim.Adam(p, amsgrad=True, maximize=True, foreach=True, weight_decay=0.1),
    "AdamW with a tensor": lambda p: torch.optim.AdamW(p, torch.tensor(0.01)),
    "RMSprop": lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
    "fused Adagrad": lambda p: torch.optim.Adagrad(p, 0.1, fused=True),
    "NAdam": lambda p: torch.optim.NAdam(p),
    "RAdam": lambda p: torch.optim.RAdam(p),
    "Adadelta": lambda p: torch.optim.Adadelta(p, maximize=True),
    "Adamax": lambda p: torch.optim.Adamax(p),
    "Rprop": lambda p: torch.optim.Rprop(p),
    "ASGD": lambda p: torch.optim.ASGD(p),
    "Adafactor": lambda p: torch.optim.Adafactor(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_bits_are_those_of_a_step_after_the_backward(name):
    check(lambda: Mlp(layers=2), mlp_inputs, lambda m: OPTIMIZERS[name](m.parameters()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here")
@pytest.mark.parametrize("name", ["momentum", "AdamW", "foreach AdamW", "fused AdamW"])
def test_on_a_gpu(name, monkeypatch):
    with deterministic(monkeypatch):
        check(lambda: Mlp(dropout=0.0).cuda(), lambda i=0: (mlp_inputs(i)[0].cuda(),), lambda m: OPTIMIZERS[name](m.parameters()))


def in_groups(model):
    parameters = list(model.parameters())
    return torch.optim.AdamW([{"params": parameters[::2], "lr": 0.01}, {"params": parameters[1::2], "betas": (0.5, 0.9)}])


def test_groups_of_parameters_of_which_one_is_read_twice():
    check(Gpt, gpt_inputs, in_groups)


def test_the_smallest_budget():
    check(Cnn, cnn_inputs, lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9), tight=True)


@pytest.mark.parametrize("schedule", [
    lambda o: lr_scheduler.StepLR(o, 2), lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=5),
    lambda o: lr_scheduler.LambdaLR(o, lambda i: 0.5**i)])
def test_schedulers(schedule):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        check(Mlp, mlp_inputs, lambda m: torch.optim.AdamW(m.parameters(), 0.01), schedule, 4)


class Twice(nn.Module):
    """A parameter that is read twice, one whose gradient is one number all over, one that is frozen, one that is unused."""

    def __init__(self):
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.randn(32, 32)), nn.Parameter(torch.randn(32))
        self.frozen, self.unused = nn.Parameter(torch.randn(32), requires_grad=False), nn.Parameter(torch.randn(3))

    def forward(self, x):
        return (torch.tanh(x @ self.weight * self.frozen) @ self.weight.T + self.shift).sum()


def test_parameters_of_all_kinds():
    plain = Twice()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, mlp_inputs(), by_mine)
    assert lowtide.torch.reports()[-1].updated == 2
    assert steps(plain, by, mlp_inputs)[0] == steps(run, by_mine, mlp_inputs)[0]
    assert_same((plain, by), (mine, by_mine))


def test_two_optimizers():
    """One updates in the backward; what is not its own keeps its gradient, for the other's step."""
    plain = Mlp()
    mine = copy.deepcopy(plain)
    pairs = []
    for module in (plain, mine):
        weights, others = ([p for p in module.parameters() if (p.dim() == 2) == two] for two in (True, False))
        pairs.append((module, torch.optim.Muon(weights, 0.1), torch.optim.SGD([*others, torch.zeros(2)], 0.1, momentum=0.9)))
    run = compiled(mine, mlp_inputs(), pairs[1][1])
    for (_, first, second), module in zip(pairs, (plain, run), strict=True):
        torch.manual_seed(0)
        for i in range(3):
            module(*mlp_inputs(i)).backward()
            first.step()
            second.step()
            first.zero_grad()
            second.zero_grad()
    for k in (1, 2):
        assert_same((plain, pairs[0][k]), (mine, pairs[1][k]))


def test_the_rate_is_that_of_the_moment():
    """A rate that is set between steps, as a number and in a tensor, and a group that is added."""
    plain = Mlp()
    mine = copy.deepcopy(plain)
    pairs = [(module, torch.optim.SGD(module.layers[:2].parameters(), torch.tensor(0.1), momentum=0.9))
             for module in (plain, mine)]
    pairs[1] = (compiled(mine, mlp_inputs(), pairs[1][1]), pairs[1][1])
    for module, optimizer in pairs:
        steps(module, optimizer, mlp_inputs, 2)
        optimizer.param_groups[0]["lr"].fill_(0.05)
        steps(module, optimizer, mlp_inputs, 1)
        optimizer.param_groups[0]["lr"] = 0.02
        optimizer.add_param_group({"params": module.layers[2].parameters(), "lr": 0.3})
        steps(module, optimizer, mlp_inputs, 2)
    assert_same(pairs[0], (mine, pairs[1][1]))


def test_several_regions_with_a_step_after_them():
    plain = Broken()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, mlp_inputs(), by_mine, update="step")
    assert sum(report.updated for report in lowtide.torch.reports()[-3:]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", lowtide.torch.LowtideWarning)
        assert steps(plain, by, mlp_inputs)[0] == steps(run, by_mine, mlp_inputs)[0]
    assert_same((plain, by), (mine, by_mine))


def test_loops_of_other_orders():
    """zero_grad before the backward, to zeros; a closure; a gradient that stands; a step that finds nothing."""
    def zeros(module, optimizer, x):
        loss = module(x)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()

    def closure(module, optimizer, x):
        def closed():
            optimizer.zero_grad()
            loss = module(x)
            loss.backward()
            return loss
        optimizer.step(closed)

    def standing(module, optimizer, x):
        optimizer.zero_grad()
        for p in module.parameters():
            p.grad = torch.full_like(p, 0.01)
        module(x).backward()
        optimizer.step()
        optimizer.zero_grad()
        optimizer.step()

    plain = Mlp()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, mlp_inputs(), by_mine)
    for module, optimizer in ((plain, by), (run, by_mine)):
        torch.manual_seed(5)
        for loop in (zeros, closure, zeros, standing, closure, closure, zeros):
            loop(module, optimizer, *mlp_inputs())
    assert_same((plain, by), (mine, by_mine))
    mine(mlp_inputs()[0][:4])
    by_mine.zero_grad()
    assert all(p.grad is None for p in mine.parameters())


class Words(nn.Module):
    """Its peak is that of its head."""

    def __init__(self, words=1024, width=32):
        super().__init__()
        self.embed, self.middle, self.head = nn.Embedding(words, width), nn.Linear(width, width), nn.Linear(width, words)

    def forward(self, tokens):
        x = self.head(torch.tanh(self.middle(self.embed(tokens))))
        return F.cross_entropy(x.flatten(0, 1), tokens.roll(1, 1).flatten())


def test_a_head_in_parts():
    """In double precision parts give what the whole gives but for the last digits; nothing is hoisted."""
    plain, tokens = Words().double(), torch.randint(1024, (8, 32))
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (plain, mine))
    run = lowtide.torch.optimize(mine, tokens, budget="60%", optimizer=by_mine, update="backward", techniques="all",
                                 costs="cpu", work=20_000, time=None, fallback="error")
    report = lowtide.torch.reports()[-1]
    assert report.updated == 5
    assert {technique.name for technique in report.techniques} & {"split", "hoist"} == {"split"}
    held = bytes_held(mine, tokens)
    peaks = [peak_rise(lambda: steps(run, by_mine, lambda i: (tokens,), 1)) for _ in range(2)]
    assert held + max(peaks) <= report.peak
    steps(plain, by, lambda i: (tokens,), 1)
    steps(plain, by, lambda i: (tokens,), 1)
    for p, q in zip(plain.parameters(), mine.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-10, atol=1e-12)


def test_torch_compile():
    plain = Mlp()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    options = {"budget": "100%", "optimizer": by_mine, "update": "backward", "costs": "flops", "fallback": "error"}
    run = torch.compile(mine, backend="lowtide", options=options)
    assert steps(plain, by, mlp_inputs)[0] == steps(run, by_mine, mlp_inputs)[0]
    assert_same((plain, by), (mine, by_mine))
    for module, optimizer in ((plain, by), (run, by_mine)):  # a batch of another size is another graph
        torch.manual_seed(1)
        module(mlp_inputs()[0][:3]).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert_same((plain, by), (mine, by_mine))


def micro(module, optimizer, outside):
    torch.manual_seed(3)
    for step in range(2):
        for i in range(3):
            with lowtide.torch.accumulate(module if i < outside else nn.Module()):
                (module(*gpt_inputs(3 * step + i)) / 3).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=step > 0)


@pytest.mark.parametrize("outside", [2, 3])
def test_micro_batches(outside):
    """The last of them outside of the block, or all of them within: then the step is an ordinary one."""
    plain = Gpt()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, gpt_inputs(), by_mine, reserve="1MB")
    micro(plain, by, outside)
    micro(run, by_mine, outside)
    assert_same((plain, by), (mine, by_mine))


def test_accumulate_is_nested_and_ends_with_an_exception():
    plain = Mlp()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, mlp_inputs(), by_mine, reserve="1MB")
    for module, optimizer in ((plain, by), (run, by_mine)):
        torch.manual_seed(3)
        with pytest.raises(ZeroDivisionError), lowtide.torch.accumulate(module), lowtide.torch.accumulate(mine):
            kept = module(*mlp_inputs(0))
            kept.backward(retain_graph=True)
            kept.backward()
            raise ZeroDivisionError
        with lowtide.torch.accumulate(module):
            with lowtide.torch.accumulate(module):
                first, second = module(*mlp_inputs(1)), module(*mlp_inputs(2))
                second.backward()
            first.backward()
        module(*mlp_inputs(3)).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert_same((plain, by), (mine, by_mine))


class Shared(nn.Module):
    """Parameters whose gradients are those of activations as well, which ops further on write over."""

    def __init__(self):
        super().__init__()
        self.weight, *shifts = (nn.Parameter(torch.randn(n, 32)) for n in (32, 64, 64))
        self.shifts = nn.ParameterList(shifts)

    def forward(self, x):
        x = x @ self.weight
        for shift in self.shifts:
            x = 1.5 * x + shift
        return torch.tanh(x).square().sum()


def test_gradients_that_add_up_are_nobody_elses():
    plain, x = Shared(), torch.randn(64, 32)
    mine = copy.deepcopy(plain)
    optimizer = torch.optim.SGD(mine.parameters(), 0.1)
    run = compiled(mine, x, optimizer, budget=smallest(mine, x, optimizer))
    with lowtide.torch.accumulate(mine), warnings.catch_warnings():
        warnings.simplefilter("ignore", lowtide.torch.OverBudgetWarning)
        for module in (plain, run):
            module(x).backward()
            module(x + 1).backward()
    assert all(torch.equal(p.grad, q.grad) for p, q in zip(plain.parameters(), mine.parameters(), strict=True))


def test_accumulate_says_what_stands():
    model = Mlp(256)
    x = torch.randn(8, 256)
    run = compiled(model, x, torch.optim.AdamW(model.parameters(), fused=True))
    with lowtide.torch.accumulate(model), pytest.warns(lowtide.torch.OverBudgetWarning, match="reserve=789504 counts them"):
        run(x).backward()
    with pytest.raises(TypeError, match="accumulate takes the torch.nn.Module"), lowtide.torch.accumulate(3):
        pass


def test_the_state_goes_on_in_an_ordinary_loop():
    plain = Mlp()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, mlp_inputs(), by_mine)
    steps(plain, by, mlp_inputs)
    steps(run, by_mine, mlp_inputs)
    other = copy.deepcopy(mine)
    by_other = torch.optim.AdamW(other.parameters())
    by_other.load_state_dict(by_mine.state_dict())
    by_mine.load_state_dict(copy.deepcopy(by.state_dict()))
    for module, optimizer in ((plain, by), (other, by_other), (run, by_mine)):
        steps(module, optimizer, mlp_inputs, 1)
    assert_same((plain, by), (other, by_other))
    assert_same((plain, by), (mine, by_mine))


def test_memory_is_what_the_plan_says_and_a_fifth():
    model = Mlp(512, 8, 0.0)
    x = torch.randn(16, 512)
    plain = copy.deepcopy(model)
    by, by_mine = (torch.optim.AdamW(m.parameters(), fused=True) for m in (plain, model))
    run = compiled(model, x, by_mine)
    report = lowtide.torch.reports()[-1]

    def step(module, optimizer):
        module(x).backward()
        optimizer.step()
        optimizer.zero_grad()

    held = bytes_held(model, x)
    assert held + peak_rise(lambda: step(run, by_mine)) <= report.peak  # the first, which makes the state
    step(plain, by)
    peaks = []
    for module, optimizer in ((plain, by), (run, by_mine)):
        loss = module(x)
        peaks.append(peak_rise(lambda loss=loss, optimizer=optimizer: (loss.backward(), optimizer.step())))
        optimizer.zero_grad()
    assert peaks[1] <= 0.2 * peaks[0]


def test_a_hundred_steps_leave_nothing():
    model = Mlp(layers=2)
    optimizer = torch.optim.AdamW(model.parameters())
    run = compiled(model, mlp_inputs(), optimizer)
    steps(run, optimizer, mlp_inputs, 2)
    gc.collect()
    before = sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects())
    steps(run, optimizer, mlp_inputs, 100)
    gc.collect()
    assert sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects()) <= before + 2


@pytest.mark.parametrize("whole", [False, True])
def test_the_optimizer_is_called_once_for_several_parameters_where_the_peak_leaves_room(monkeypatch, whole):
    calls = []
    update = Updater.update
    monkeypatch.setattr(Updater, "update", lambda self, batch, *given: calls.append(len(batch.parameters)) or update(self, batch, *given))
    torch.manual_seed(0)
    plain = Gpt()
    model, inputs = copy.deepcopy(plain), gpt_inputs()
    by, by_mine = (torch.optim.AdamW(of.parameters(), fused=True) for of in (plain, model))
    torch.manual_seed(1)
    plain(*inputs).backward()
    by.step()
    if whole:
        run = lowtide.torch.step(model, by_mine, inputs, budget="100%", costs="flops", work=1000, time=None)
    else:
        run = compiled(model, inputs, by_mine)
    torch.manual_seed(1)
    loss = run(*inputs)
    if not whole:
        loss.backward()
    count = len(list(model.parameters()))
    assert sum(calls) == count and 3 * len(calls) <= count, calls
    assert all(map(torch.equal, model.parameters(), plain.parameters()))


class Product(nn.Module):
    """Its largest memory is that of its updates: each gradient reads the other parameter, so both are there before either update."""

    def __init__(self, width=256):
        super().__init__()
        self.first, self.second = (nn.Parameter(torch.randn(width, width)) for _ in range(2))

    def forward(self, x):
        return (self.first * self.second @ x).square().mean()


@pytest.mark.parametrize(("given", "expected"), [({"foreach": True}, [1, 1]), ({"foreach": False}, [1, 1]), ({"fused": True}, [2])])
def test_updates_that_follow_one_another_are_one_call_only_where_the_peak_leaves_room_for_it(monkeypatch, given, expected):
    calls = []
    update = Updater.update
    monkeypatch.setattr(Updater, "update", lambda self, batch, *given: calls.append(len(batch.parameters)) or update(self, batch, *given))
    model, x = Product(), torch.randn(256, 1)
    optimizer = torch.optim.AdamW(model.parameters(), **given)
    run = compiled(model, x, optimizer)
    report = lowtide.torch.reports()[-1]
    for _ in range(2):  # the first makes the state
        calls.clear()
        rise = peak_rise(lambda: steps(run, optimizer, lambda i: (x,), 1))
        assert calls == expected
    assert bytes_held(model, x, optimizer) + rise <= report.peak


def test_each_backward_with_updates_and_no_whole_step_has_its_caller_wait(monkeypatch):
    """Within a whole step no engine runs that could call anything at its end, and all is in one stream."""
    waits = []
    monkeypatch.setattr(graph_updates, "wait_when_backward_ends", waits.append)
    model = Mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    run = compiled(model, mlp_inputs(), optimizer, budget="1GiB")
    steps(run, optimizer, mlp_inputs, 2)
    assert waits == [torch.device("cpu")] * 2
    whole = lowtide.torch.step(model, optimizer, mlp_inputs(), budget="1GiB")
    whole(*mlp_inputs())
    assert len(waits) == 2
