"""Sums with a factor, of which Dynamo would make products and sums, have the bits of eager execution under a plan."""

import lowtide.torch
import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.compat.versions import before, since
from torch import nn
from torch_run import alone as alone_
from torch_run import equal, train, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    with alone_(monkeypatch):
        yield


def averaged(x, y, z):
    with torch.no_grad():
        mean = [y.detach().clone()]
        torch._foreach_lerp_(mean, [z.detach()], 0.1)
    return x * mean[0]


SUMS = {"add_": lambda x, y, z: x.add_(y, alpha=0.1), "addcmul_": lambda x, y, z: x.addcmul_(y, z, value=0.1),
        "addcdiv_": lambda x, y, z: x.addcdiv_(z, y, value=0.1), "addcdiv": lambda x, y, z: torch.addcdiv(x, z, y, value=0.1),
        "lerp": averaged}


class Summed(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(32, 32), function

    def forward(self, x):
        y = self.layer(x)
        return self.function(y.sin(), y.sigmoid() + 0.3, y.cos()).square().mean()


def planned(function):
    torch.manual_seed(0)
    plain = Summed(function)
    mine = twin(plain)
    step = lowtide.torch.optimize(mine, (torch.randn(16, 32),), budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    return plain, mine, step, lowtide.torch.reports()[-1]


@pytest.mark.parametrize("name", SUMS)
def test_a_number_as_factor_changes_no_bit(name):
    plain, mine, step, report = planned(SUMS[name])
    x = torch.randn(16, 32)
    assert equal(train(plain, (x,), plain), train(mine, (x,), step))
    assert "as several operators" not in str(report)


def test_a_tensor_as_factor_is_named():
    if since(2, 12) and before(2, 13):
        pytest.skip(f"torch {torch.__version__} lacks a derivative of what it makes of addcmul_ with a tensor as factor")
    *_, report = planned(lambda x, y, z: x.addcmul_(y, z, value=torch.tensor(0.1)))
    assert "addcmul_ with a tensor as factor as several operators" in str(report)


def test_other_backends_trace_as_ever():
    graphs = []

    def backend(gm, _):
        graphs.append(gm)
        return gm.forward

    torch.compile(Summed(SUMS["addcdiv_"]), backend=backend)(torch.randn(4, 32))
    assert "addcdiv" not in graphs[0].code and torch._dynamo.config.enable_dynamo_decompositions
