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


class Asks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        y = self.layer(x)
        return (y * 3 if torch.compiler.is_compiling() else y + y + y).square().mean()


class Breaks(nn.Module):
    """A layer that is used three times, twice in one graph."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        x = self.layer(torch.tanh(self.layer(x)))
        torch._dynamo.graph_break()
        return self.layer(torch.tanh(x)).square().mean()


def reported(module, inputs):
    planned(module, inputs)
    return lowtide.torch.reports()[-1].exactness


def test_a_report_says_against_what_it_is_equal():
    torch.manual_seed(0)
    x = (torch.randn(4, 8),)
    plain = reported(Dropped(0.1), (torch.randn(16, 32),))
    assert plain.as_eager and str(plain) == "bit-identical"
    asks = reported(Asks(), x)
    assert asks.equal and not asks.as_eager
    assert str(asks) == ("bit-identical to the traced step; eager execution may differ: its code asks whether it is "
                         "traced (forward in test_torch_as_eager.py)")
    torch._dynamo.reset()
    before = len(lowtide.torch.reports())
    lowtide.torch.optimize(Breaks(), x, budget="100%", costs="cpu", work=1000, time=None)
    found = [r.exactness for r in lowtide.torch.reports()[before:]]
    assert len(found) == 2 and any("graph by graph" in str(e) for e in found)


def test_a_report_says_so_with_a_number_that_changes():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(16, 16)

        def forward(self, x, factor):
            y = self.layer(x) * factor
            return (y * 3 if torch.compiler.is_compiling() else y + y + y).square().mean()

    run = torch.compile(Scaled(), backend="lowtide", dynamic=True, options={"budget": "8GiB", "costs": "flops", "work": 100, "time": None})
    run(torch.randn(8, 16), 0.5).backward()
    assert "its code asks whether it is traced" in str(lowtide.torch.reports()[-1].exactness)



def test_recurrent_layers_are_traced_cell_by_cell():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(8, 8)

        def forward(self, x):
            return self.layer(x)[0].square().mean()

    with torch._dynamo.config.patch(allow_rnn=True):
        found = reported(Recurrent(), (torch.randn(3, 2, 8),))
    assert not found.as_eager and "traces gru cell by cell" in str(found)
