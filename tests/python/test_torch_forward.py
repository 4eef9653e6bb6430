"""A forward without a backward is planned like anything else: exact, and within the budget or refused."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device.meter import bytes_held, peak_rise
from torch import nn
from torch_run import equal, fresh, planned, twin

OPTIONS = {"fallback": "error", "work": 50_000, "time": None}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


class Fans(nn.Module):
    """Wide parts whose sums are small: an order that makes them one by one takes much less."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(32, 512) for _ in range(6))

    def forward(self, x):
        wide = [part(x).relu() for part in self.parts]
        return torch.stack([w.sum(1) for w in wide]).sum(0)


class Everything(nn.Module):
    """Batch norm, dropout, a counter, an input changed in place; results that are inputs, views and one another."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(64, 256), nn.BatchNorm1d(256), nn.Linear(256, 64)
        self.register_buffer("seen", torch.zeros(64))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x, scratch):
        y = F.dropout(F.gelu(self.norm(self.up(x))), 0.3, self.training)
        z = F.dropout2d(self.down(y).view(8, -1, 4, 16), 0.2, self.training).view(x.shape)
        self.seen.lerp_(z.mean(0), 0.1)
        self.count += 1
        scratch.mul_(2).add_(z[0])
        return z, z.T, z[3:5], x, x.view(-1)[:7], scratch, self.seen, z + self.count


class no_wrapper:  # stands beside torch.no_grad
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode, no_wrapper])
@pytest.mark.parametrize("training", [True, False])
def test_a_planned_forward_is_exact(without, training):
    module = fresh(Everything).train(training).requires_grad_(without is not no_wrapper)
    plain, mine, x = twin(module), twin(module), torch.randn(64, 64)
    results = []
    for step, owner in ((plain, plain), (planned(mine, "100%"), mine)):
        torch.manual_seed(3)
        seen = []
        for _ in range(3):
            scratch = torch.ones(64)
            with without():
                out = step(x, scratch)
            assert out[3] is x and out[5] is scratch and out[4].data_ptr() == x.data_ptr()
            assert out[6].data_ptr() == owner.seen.data_ptr() and out[1].data_ptr() == out[0].data_ptr()
            seen += [t.clone() for t in (*out, scratch)]
        results.append([*seen, *(t.clone() for t in owner.state_dict().values()), torch.get_rng_state()])
    assert equal(*results)


@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_the_budget_is_kept(without):
    module, x = fresh(lambda: (Fans(), torch.randn(512, 32)))
    held = bytes_held(module, x)
    with without():
        expected = module(x)
        eager = held + peak_rise(module, x)
        budget = held + (eager - held) // 2
        step = torch.compile(module, backend="lowtide", options={"budget": budget, **OPTIONS})
        assert torch.equal(step(x), expected)
        assert held + peak_rise(step, x) <= budget < eager
    report = lowtide.torch.reports()[-1]
    assert report.budget == budget and report.peak <= budget < report.own_peak


def test_a_budget_that_cannot_be_kept_is_refused():
    module, x = fresh(lambda: (Fans(), torch.randn(512, 32)))
    with torch.no_grad(), pytest.raises(lowtide.torch.BudgetError) as caught:
        lowtide.torch.optimize(module, x, budget=bytes_held(module, x) + 600_000, **OPTIONS)
    torch._dynamo.reset()
    with torch.no_grad():
        step = lowtide.torch.optimize(module, x, budget=caught.value.smallest, **OPTIONS)
        assert torch.equal(step(x), module(x))
        assert bytes_held(module, x) + peak_rise(step, x) <= caught.value.smallest


def test_evaluation_between_training_steps_has_the_same_budget():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = Fans(), nn.Linear(32, 1)

        def forward(self, x):
            return (self.body(x) * self.head(x)[:, 0]).square().mean()

    module, x = fresh(lambda: (Net(), torch.randn(512, 32)))
    plain, mine = twin(module), twin(module)
    before = len(lowtide.torch.reports())
    step = torch.compile(mine, backend="lowtide", options={"budget": "act:90%", "optimizer": "adam", **OPTIONS})

    def run(model, call):
        seen = []
        for _ in range(2):
            with torch.no_grad():
                seen.append(call(x))
            call(x).backward()
            with torch.no_grad():
                seen.append(call(x))
            seen += [p.grad.clone() for p in model.parameters()]
            model.zero_grad()
        return seen

    assert equal(run(mine, step), run(plain, plain))
    alone, training = lowtide.torch.reports()[before:]
    assert alone.budget == training.budget and alone.ops < training.ops
    assert alone.resident >= 2 * sum(p.numel() * 4 for p in mine.parameters())


def test_gradients_that_stand_count_in_an_evaluation():
    module, x = fresh(lambda: (Fans(), torch.randn(64, 32)))
    module(x).sum().backward()
    with torch.no_grad():
        planned(module, "1GiB")(x)
    assert lowtide.torch.reports()[-1].resident == sum(p.numel() * 4 for p in module.parameters())


def test_a_share_of_frozen_parameters_is_one_of_the_forwards_own_peak():
    module, x = fresh(lambda: (Fans().requires_grad_(False), torch.randn(512, 32)))
    step = planned(module, "act:50%")
    assert torch.equal(step(x), module(x))
    report = lowtide.torch.reports()[-1]
    assert report.budget == report.inputs + (report.own_peak - report.inputs) // 2 >= report.peak
