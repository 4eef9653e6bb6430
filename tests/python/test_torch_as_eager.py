"""Where tracing alone would change bits and the tracer leaves a choice, the step has those of eager execution: casts of
autocast, dropout on a CPU, sums with gradients of results that nobody computes from."""

import lowtide.torch
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from torch import nn
from torch_run import alone as alone_
from torch_run import equal, train, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    with alone_(monkeypatch):
        yield


class Shared(nn.Module):
    """One layer, used often within two stretches of autocast, with dropout; and once with a cast of its own."""

    def __init__(self, p):
        super().__init__()
        self.layer, self.other, self.p = nn.Linear(32, 32), nn.Linear(32, 32), p

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            for _ in range(3):
                x = F.dropout(torch.tanh(self.layer(x)), self.p)
            x = self.other(x)
        with torch.autocast("cpu", torch.bfloat16):
            x = self.layer(x) + F.linear(x, self.layer.weight.to(torch.bfloat16))
        return x.float().square().mean()


class Dropped(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.layers, self.p = nn.ModuleList(nn.Linear(32, 32) for _ in range(3)), p

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(layer(x), self.p)
        return x.float().square().mean()


class Segmenter(nn.Module):
    """Hands out its logits beside its loss."""

    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 5, 1)

    def forward(self, x, y):
        logits = self.head(self.stem(x).relu())
        return F.cross_entropy(F.interpolate(logits, size=y.shape[-2:], mode="bilinear"), y), logits


def planned(module, inputs, budget="100%"):
    torch._dynamo.reset()
    mine = twin(module)
    return mine, lowtide.torch.optimize(mine, inputs, budget=budget, costs="cpu", work=20_000, time=None, fallback="error")


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5])
def test_autocast_casts_a_weight_once(p):
    torch.manual_seed(0)
    module, inputs = Shared(p), (torch.randn(16, 32),)
    mine, step = planned(module, inputs)
    plain = twin(module)
    assert equal(train(mine, inputs, step), train(plain, inputs, plain))


def test_autocast_that_keeps_no_casts_is_traced_so():
    class Uncached(Shared):
        def forward(self, x):
            with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
                return self.layer(torch.tanh(self.layer(torch.tanh(self.layer(x))))).float().square().mean()

    torch.manual_seed(0)
    module, inputs = Uncached(0.0), (torch.randn(16, 32),)
    mine, step = planned(module, inputs)
    plain = twin(module)
    assert equal(train(mine, inputs, step), train(plain, inputs, plain))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("p", [0.1, 0.15, 0.35])
def test_dropout_on_a_cpu(p, dtype):
    torch.manual_seed(0)
    module, inputs = Dropped(p).to(dtype), (torch.randn(16, 32).to(dtype),)
    mine, step = planned(module, inputs)
    plain = twin(module)
    assert equal(train(mine, inputs, step), train(plain, inputs, plain))


def test_a_gradient_lies_as_without_results_beside_the_loss():
    torch.manual_seed(0)
    module = Segmenter().to(memory_format=torch.channels_last)
    inputs = torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last), torch.randint(5, (2, 64, 64))
    mine, step = planned(module, inputs)
    plain = twin(module)
    assert equal(train(mine, inputs, lambda *given: step(*given)[0]), train(plain, inputs, lambda *given: plain(*given)[0]))
