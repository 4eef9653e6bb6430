"""Planned halves compiled by Inductor: the plan is kept, and numbers are those of Inductor without one."""

import shutil

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.emission.inductor import LostPlan, _check, large_kernels
from torch_run import equal, fresh, train, twin
from torch_zoo import ZOO, Cnn, DropoutMlp

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler on a CPU")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


@needs_compiler
def test_random_numbers_and_recomputation_under_inductor():
    module, inputs = fresh(lambda: (DropoutMlp(layers=2), (torch.randn(256, 256),)))
    theirs = twin(module)
    expected = train(theirs, inputs, torch.compile(theirs))
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget="80%", inner="inductor", costs="cpu", fallback="error")
    assert equal(train(mine, inputs, step), expected)
    report = lowtide.torch.reports()[-1]
    assert report.again and report.peak <= report.budget
    assert not report.exactness.equal and "as close to Inductor" in str(report)  # no bits are promised
    mine.zero_grad()
    assert peak_rise(lambda: step(*inputs).backward()) <= report.peak - report.inputs


@needs_compiler
def test_statistics_move_once_under_inductor():
    module, inputs = fresh(lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))))
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget="80%", inner="inductor", costs="cpu", fallback="error")
    got = train(mine, inputs, step)
    assert lowtide.torch.reports()[-1].again
    for a, b in zip(got, expected, strict=True):
        if a.dtype.is_floating_point:
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(a, b)


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
