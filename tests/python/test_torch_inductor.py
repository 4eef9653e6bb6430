"""Planned halves compiled by Inductor: the plan is kept, and numbers are those of Inductor without one."""

import shutil

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.emission.inductor import LostPlan, _check, large_kernels
from lowtide.torch.meter import peak_rise
from torch import nn
from torch.nn import functional as F
from torch_run import fresh, train, twin
from torch_zoo import ZOO

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler on a CPU")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


class Layers(nn.Module):
    """Draws numbers, and moves statistics."""

    def __init__(self, d=256, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(d) for _ in range(layers))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.dropout(torch.tanh(norm(layer(x))), 0.5, self.training)
        return x.square().mean()


@needs_compiler
def test_random_numbers_statistics_and_recomputation_under_inductor():
    """Other masks, or statistics that move twice, would be far off; generator and counts are equal."""
    module, inputs = fresh(lambda: (Layers(), (torch.randn(256, 256),)))
    theirs = twin(module)
    expected = train(theirs, inputs, torch.compile(theirs))
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget="80%", inner="inductor", costs="cpu", fallback="error")
    for a, b in zip(train(mine, inputs, step), expected, strict=True):
        if a.dtype.is_floating_point:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert torch.equal(a, b)
    report = lowtide.torch.reports()[-1]
    assert report.again and report.peak <= report.budget
    mine.zero_grad()
    assert peak_rise(lambda: step(*inputs).backward()) <= report.peak - report.inputs


def test_a_merged_kernel_is_noticed():
    def twice(x):
        return torch.mm(x, x) + torch.mm(x, x)

    graph = torch.fx.experimental.proxy_tensor.make_fx(twice)(torch.randn(4, 4))
    assert large_kernels(graph) == 2
    _check(2, "extern_kernels.mm(a, b, out=c)\nextern_kernels.mm(d, e, out=f)")
    with pytest.warns(LostPlan, match="calls 2 large kernels and Inductor's code 1"):
        _check(2, "extern_kernels.mm(a, b, out=c)")


def test_an_inner_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="'eager' or 'inductor'"):
        lowtide.torch.optimize(fresh(ZOO["mixer"])[0], budget="1GiB", inner="triton")
