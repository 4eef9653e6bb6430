"""Models whose graphs rules of substitution have changed: run, with the gradients that they had."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch import LowtideWarning
from torch import nn
from torch.nn import functional as F
from torch_run import gradients

pytestmark = pytest.mark.filterwarnings(f"error::{LowtideWarning.__module__}.{LowtideWarning.__name__}")


class Gated(nn.Module):
    """Gate and up read one input; so do queries, keys and values.  bias: have these one?"""

    def __init__(self, width=64, bias=True):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.query, self.key, self.value = (nn.Linear(width, width, bias) for _ in range(3))

    def forward(self, x):
        x = x + self.down(F.silu(self.gate(x)) * self.up(x))
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        return (x + scores.softmax(-1) @ self.value(x)).square().mean()


def relu6():
    layers = [layer for i in range(4) for layer in (nn.Conv2d(3 if i == 0 else 8, 8, 3, 1, 1), nn.ReLU6())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 64, 1)), torch.randn(16, 3, 8, 8)


class Mean(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).mean()


def trained(module, x, step):
    module.zero_grad()
    loss = step(x)
    loss.backward()
    return [loss.detach(), *gradients(module)]


def planned(module, x, budget, techniques):
    step = lowtide.torch.optimize(module, (x,), budget=budget, techniques=techniques, costs="a100", work=60_000,
                                  time=None, fallback="error")
    return step, lowtide.torch.reports()[-1]


def test_relu6_is_read_from_its_output_to_the_last_bit():
    torch.manual_seed(0)
    model, x = relu6()
    module = Mean(model)
    expected = trained(module, x, module)
    step, report = planned(module, x, "75%", ["recompute", "in_place", "substitute"])
    assert any("other_side" in said for said in report.transforms)
    assert all(map(torch.equal, trained(module, x, step), expected))
    assert report.peak <= report.budget < report.own_peak


@pytest.mark.parametrize(("techniques", "bias"), [(["recompute", "in_place", "substitute"], True), ("all", True), ("all", False)],
                         ids=["substitute", "all", "without biases"])
def test_products_are_merged_up_to_the_order_of_sums(techniques, bias):
    torch.manual_seed(0)
    module, x = Gated(bias=bias), torch.randn(8, 128, 64)
    expected = trained(module, x, module)
    step, report = planned(module, x, "100%", techniques)
    assert any("merge_products" in said for said in report.transforms)
    assert report.duration < report.own_duration
    for _ in range(2):
        for got, wanted in zip(trained(module, x, step), expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-6)
