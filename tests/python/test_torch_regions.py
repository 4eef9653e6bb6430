"""Several graphs of one model, and graphs of several sizes."""

import random

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn
from torch_run import Body, both, equal, fresh, gradients, optimized, planned, train, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def test_a_graph_break_makes_two_regions():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Body(), Body()

        def forward(self, x):
            y = self.a(x)
            if y.sum() > 1e9:
                y = y + 1
            return self.b(y).square().mean()

    x = torch.randn(256, 64)
    before = len(lowtide.torch.reports())
    got, expected = both(Broken, lambda module, step: train(module, (x,), step))
    assert equal(got, expected)
    assert len(lowtide.torch.reports()) - before == 2


class Halves(nn.Module):
    """Two bodies with a branch on a value between them, where the tracer breaks."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = Body(), nn.BatchNorm1d(64), Body(0.2)

    def forward(self, x):
        y = self.first(x)
        if y.sum() > 1e9:
            y = y + 1
        return self.second(self.norm(y)).square().mean()


class Queue(nn.Module):
    """Compares with a queue of what came before, and puts what comes at a place that Python reads: a break of the graph."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
        self.register_buffer("queue", torch.randn(16, 40))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x):
        keys = nn.functional.normalize(self.body(x))
        scores = keys @ self.queue.clone()
        at = int(self.place)
        self.queue[:, at:at + len(x)] = keys.detach().t()
        self.place[0] = (at + len(x)) % 40
        return nn.functional.cross_entropy(scores, torch.arange(len(x)))


def test_a_buffer_that_a_later_region_writes_to_is_read_by_no_backward():
    module, (x,) = fresh(lambda: (Queue(), (torch.randn(8, 16),)))
    plain = twin(module)
    expected = train(plain, (x,), plain)
    mine, step, _ = optimized(module, x, 1)
    assert equal(train(mine, (x,), step), expected)


class SkipsLayers(nn.Module):
    """Leaves out a layer now and then, by draws that the tracer leaves to Python."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        if numpy.random.rand() < 0.5:
            x = self.first(x)
        if random.random() < 0.5:
            x = self.first(x)
        return self.second(x).square().mean()


def test_planning_draws_nothing_between_regions():
    module, (x,) = fresh(lambda: (SkipsLayers(), (torch.randn(8, 8),)))
    random.seed(1)
    numpy.random.seed(1)
    mine = lowtide.torch.optimize(module, x, budget="100%", costs="cpu", work=10_000, time=None)
    drawn = numpy.random.rand(), random.random()
    random.seed(1)
    numpy.random.seed(1)
    assert drawn == (numpy.random.rand(), random.random())
    mine(x).backward()


def test_planning_moves_no_generator_that_the_code_has_by_a_name():
    ours, pythons, numpys = torch.Generator(), random.Random(3), numpy.random.default_rng(3)

    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            scale = pythons.random() + numpys.random()
            return self.inner(x + scale * torch.randn(8, 8, generator=ours)).square().mean()

    module, (x,) = fresh(lambda: (Noisy(), (torch.randn(8, 8),)))
    before = ours.get_state(), pythons.getstate(), numpys.bit_generator.state
    lowtide.torch.optimize(module, x, budget="100%", costs="cpu", work=10_000, time=None)
    assert torch.equal(before[0], ours.get_state()) and before[1:] == (pythons.getstate(), numpys.bit_generator.state)


def test_regions_share_the_budget():
    torch.manual_seed(0)
    module, inputs = Halves(), (torch.randn(512, 64),)
    plain = twin(module)
    expected = train(plain, inputs, plain)
    plain.zero_grad()
    held = lowtide.torch.device.meter.bytes_held(plain, inputs)
    rise = lowtide.torch.device.meter.peak_rise(lambda: plain(*inputs).backward())
    for share in (0.9, 0.6):
        budget = held + int(share * rise)
        torch._dynamo.reset()
        mine, before = twin(module), len(lowtide.torch.reports())
        state, rng = [t.clone() for t in mine.state_dict().values()], torch.get_rng_state()
        step = lowtide.torch.optimize(mine, inputs, budget=budget, costs="flops", fallback="error")
        assert equal(list(mine.state_dict().values()), state) and torch.equal(torch.get_rng_state(), rng)
        assert len(lowtide.torch.reports()) - before == 2
        assert equal(train(mine, inputs, step), expected)
        mine.zero_grad()
        assert held + lowtide.torch.device.meter.peak_rise(lambda step=step: step(*inputs).backward()) <= budget
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.BudgetError):
        lowtide.torch.optimize(twin(module), inputs, budget=held + rise // 20, costs="flops")


def test_a_region_is_planned_beside_what_the_one_before_has_saved():
    module, x = fresh(lambda: (Halves(), torch.randn(512, 64)))
    before = len(lowtide.torch.reports())
    step = planned(module, share="100MB")
    step(x).backward()
    first, second = lowtide.torch.reports()[before:]
    assert first.resident == 0 and 512 * 64 * 4 < second.resident < first.own_peak


def test_every_size_keeps_its_bits_and_sizes_share_a_plan():
    xs = [torch.randn(n, 64) for n in (256, 320, 384, 256, 512)]

    def run(module, step):
        out = []
        for x in xs:
            module.zero_grad()
            loss = step(x).square().mean()
            loss.backward()
            out += [loss.detach(), *gradients(module)]
        return out

    before = len(lowtide.torch.reports())
    got, expected = both(lambda: Body(0.2), run)
    assert equal(got, expected)
    assert len(lowtide.torch.reports()) - before <= 3  # of the first size, and of all later ones as far as the budget lets them
