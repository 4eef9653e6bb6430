"""Buffers that a step changes are written in a few calls, and hold what eager execution leaves in them."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.emission import write_back
from torch import nn
from torch_run import equal, twin


class Norms(nn.Module):
    """Norms that run twice, and a buffer that is read before and after it is written."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Tanh())))
        self.register_buffer("seen", torch.zeros(8, dtype=torch.float64))
        self.register_buffer("last", torch.ones(8))

    def forward(self, x):
        before = self.seen * 2
        self.seen += x.detach().mean(0)
        y = self.layers(self.layers(x)) * self.last.clone()
        self.last.copy_(y.detach()[0])
        return (y * before.float()).square().mean() + self.seen.sum()


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def test_a_forward_writes_its_buffers_back_in_one_call_for_each_type(monkeypatch):
    calls = []
    copy = write_back.copy_all
    monkeypatch.setattr(write_back, "copy_all", lambda into, new: calls.append(len(into)) or copy(into, new))
    module, x = Norms(), torch.randn(32, 8)
    plain = twin(module)
    step = lowtide.torch.optimize(module, x, budget="act:60%", costs="flops", fallback="error")
    for _ in range(2):
        module.zero_grad()
        plain.zero_grad()
        calls.clear()
        losses = [run(x) for run in (step, plain)]
        assert sorted(calls) == [1, 3, 7]  # seen; how many batches each norm has seen; means, variances and last
        for loss in losses:
            loss.backward()
        assert equal([losses[0], *module.buffers()], [losses[1], *plain.buffers()])
        assert equal([p.grad for p in module.parameters()], [p.grad for p in plain.parameters()])
    with torch.no_grad():
        assert equal([step(x), *module.buffers()], [plain(x), *plain.buffers()])
    module.zero_grad()
    plain.zero_grad()
    a, b = step(x), step(x)  # the second forward writes before the first backward
    (a + b).backward()
    (plain(x) + plain(x)).backward()
    for p, q in zip(module.parameters(), plain.parameters(), strict=True):  # eager execution adds four terms up in another order
        torch.testing.assert_close(p.grad, q.grad)
    assert equal(list(module.buffers()), list(plain.buffers()))


@pytest.mark.parametrize("affine", [True, False])
def test_a_norm_updates_its_statistics_where_they_lie(monkeypatch, affine):
    """... unless somebody else reads them: those of the second norm are read by the loss."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (nn.BatchNorm1d(8, affine=affine) for _ in range(2))
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            y = self.second(torch.relu(self.linear(self.first(torch.relu(self.linear(x))))))
            return y.square().mean() + self.second.running_mean.sum()

    calls = []
    copy = write_back.copy_all
    monkeypatch.setattr(write_back, "copy_all", lambda into, new: calls.append(len(into)) or copy(into, new))
    module, x = Model(), torch.randn(32, 8)
    plain = twin(module)
    step = lowtide.torch.optimize(module, x, budget="90%", costs="flops", fallback="error")
    for _ in range(3):
        calls.clear()
        losses = [run(x) for run in (step, plain)]
        assert sorted(calls) == [2, 2]  # how many batches each norm has seen; mean and variance of the second
        for loss in losses:
            loss.backward()
        assert equal([losses[0], *module.buffers()], [losses[1], *plain.buffers()])
        assert equal([p.grad for p in module.parameters()], [p.grad for p in plain.parameters()])
