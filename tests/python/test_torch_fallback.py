"""What no plan can run is said, and runs as without one."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn
from torch_run import Body, planned, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def test_a_graph_that_no_plan_can_run_falls_back_with_a_warning():
    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 4, sparse=True)

        def forward(self, i):
            return self.table(i).square().mean()

    i = torch.randint(10, (8,))
    plain = Sparse()
    mine = twin(plain)
    plain(i).backward()
    with pytest.warns(lowtide.torch.LowtideWarning, match="runs without a plan"):
        planned(mine, fallback="warn")(i).backward()
    assert torch.equal(mine.table.weight.grad.to_dense(), plain.table.weight.grad.to_dense())


def test_a_model_that_the_tracer_leaves_alone_is_said():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(8, 16, batch_first=True)

        def forward(self, x):
            return self.cells(x)[0].square().mean()

    x = torch.randn(2, 4, 8)
    with pytest.warns(lowtide.torch.LowtideWarning, match="compiled nothing of it; nn.LSTM"):
        step = lowtide.torch.optimize(Recurrent(), x, budget="50%")
    assert step(x).requires_grad
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.CaptureError, match="compiled nothing"):
        lowtide.torch.optimize(Recurrent(), x, budget="50%", fallback="error")


def test_a_subclass_of_tensor_is_refused_or_falls_back():
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(torch.randn(4, 64), torch.randn(4, 64))
    module = Body()
    with pytest.warns(lowtide.torch.LowtideWarning, match="TwoTensor"):
        out = planned(module, fallback="warn")(x)
    assert torch.equal(out.a, module(x.a))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="TwoTensor, a subclass of Tensor"):
        planned(module)(x)


def test_a_module_that_no_plan_fits_is_let_go():
    def refused():
        model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
        optimizer = torch.optim.AdamW(model.parameters())
        with pytest.raises(lowtide.torch.BudgetError):
            lowtide.torch.step(model, optimizer, (torch.randn(512, 64),), lambda m, x: m(x).square().mean(), budget="5%", costs="cpu")
        return weakref.ref(model), weakref.ref(optimizer)

    model, optimizer = refused()
    torch._dynamo.reset()
    gc.collect()
    assert model() is None and optimizer() is None
