"""What kernels are measured to cost, and what of it is kept on disk."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


@pytest.mark.parametrize(("loss", "reduction", "weighed"), [
    (F.mse_loss, "mean", False), (F.mse_loss, "sum", False), (F.mse_loss, "mean", True), (F.smooth_l1_loss, "mean", True),
    (F.binary_cross_entropy, "mean", False), (F.soft_margin_loss, "sum", False), (F.l1_loss, "mean", False)])
def test_what_a_loss_holds_beyond_what_it_shows_is_counted(loss, reduction, weighed):
    """Some kernels of the CPU sum their terms up in place: the scalar keeps their storage."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 64)

        def forward(self, x, y):
            value = loss(torch.sigmoid(self.layer(x)), y, reduction=reduction)
            return 2 * value * value if weighed else value

    module, inputs = Net(), (torch.rand(512, 64), torch.rand(512, 64))
    step = lowtide.torch.optimize(module, inputs, budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    step(*inputs).backward()
    module.zero_grad()
    report = lowtide.torch.reports()[-1]
    peak = lowtide.torch.measure_peak(lambda: step(*inputs).backward(), held=(module, inputs))
    assert peak <= report.budget and report.peak - 64 <= peak <= report.peak
