"""A batch norm that a GPU runs by cuDNN, on the way from the trace to the code; on a CPU the same operator runs PyTorch's kernel."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn
from torch_run import alone, equal, gradients, twin

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class LibraryNorm(nn.BatchNorm2d):
    """What F.batch_norm calls on a GPU where it is traced, and what a CPU can run where it is not."""

    def forward(self, x):
        mean, variance = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        if torch.compiler.is_compiling():
            return aten.cudnn_batch_norm(x, self.weight, self.bias, mean, variance, self.training, self.momentum, self.eps)[0]
        return F.batch_norm(x, mean, variance, self.weight, self.bias, self.training, self.momentum, self.eps)


class Net(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(16 if i else 3, 16, 3, padding=1) for i in range(4))
        self.norms = nn.ModuleList(LibraryNorm(16, **options) for _ in range(4))

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.silu(norm(conv(x)))
        return x.square().mean()


@pytest.mark.parametrize("training, tracked", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("share", ["100%", "45%"])
def test_a_norm_of_a_library_runs_again_with_the_same_bits_and_moves_its_statistics_once(share, training, tracked):
    torch.manual_seed(0)
    module, x = Net(track_running_stats=tracked).train(training), torch.randn(4, 3, 32, 32)
    plain = twin(module)
    step = lowtide.torch.optimize(module, (x,), budget=share, costs="cpu", work=20_000, time=None, fallback="error")
    for _ in range(2):
        got, expected = step(x), plain(x)
        got.backward()
        expected.backward()
        assert torch.equal(got, expected) and equal(gradients(module), gradients(plain))
        assert equal(list(module.buffers()), list(plain.buffers()))
        module.zero_grad()
        plain.zero_grad()
    again = lowtide.torch.reports()[-1].again
    assert share == "100%" or not training or any("native_batch_norm" in op for ops in again.values() for op in ops)


def test_the_tracer_is_left_as_it_was():
    kernels = dict(aten.cudnn_batch_norm.default.py_kernels)
    module, x = Net(), torch.randn(2, 3, 8, 8)
    lowtide.torch.optimize(module, (x,), budget="100%", costs="cpu", work=1000, time=None)
    assert dict(aten.cudnn_batch_norm.default.py_kernels) == kernels
