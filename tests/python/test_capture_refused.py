"""lowtide.torch.capture: what cannot be captured, and what is said of it."""

import pytest

torch = pytest.importorskip("torch")

from capture_support import captured, square
from lowtide.torch import CaptureError, capture
from torch import nn


class Reads(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        y = self.lin(x) * self.scale
        self.scale.mul_(2)
        return y


@pytest.mark.parametrize(("loss", "message"), [
    (lambda m, x: m(x), r"one element .* shape \[2, 4\]"),
    (lambda m, x: 1.0, "got float"),
    (lambda m, x: x.sum(), "no backward to capture"),
    (lambda m, x: m(x).sum() * m(x).max().item(), "on the host"),
    (lambda m, x: m(x)[x > 0].sum(), "depends on values"),
    (lambda m, x: m(x).sum().to("cuda"), "accelerator"),
    (lambda m, x: (m(x) * torch.ones(4, device="cuda")).sum(), "accelerator"),
    (lambda m, x: m(x, 1).sum(), "TypeError"),
])
def test_unsupported_losses_are_reported(loss, message):
    with pytest.raises(CaptureError, match=message):
        captured(lambda: nn.Linear(4, 4), 2, 4, loss=loss)


def test_a_read_after_an_update_is_refused_as_eager_refuses_it():
    with pytest.raises(CaptureError, match="modified by an inplace operation"):
        captured(Reads, 2, 4)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        Reads()(torch.ones(2, 4)).sum().backward()


@pytest.mark.parametrize(("make", "message"), [
    (lambda: nn.LSTM(4, 4, 2, dropout=0.1), "loses the dropout between the layers of nn.LSTM"),
    (lambda: nn.Sequential(torch.compile(nn.Linear(4, 4))), "plain module"),
    (lambda: nn.Embedding(10, 4, sparse=True), "sparse"),
])
def test_models_that_cannot_be_captured_are_refused(make, message):
    with pytest.raises(CaptureError, match=message):
        capture(lambda: (make(), (torch.zeros(2, 4, dtype=torch.long),), square))


def test_a_stray_tensor_is_refused():
    def build():
        weight = torch.ones(4)
        return nn.Linear(4, 4), (torch.empty(2, 4),), lambda m, x: (m(x) * weight).sum()

    with pytest.raises(CaptureError, match="none of its inputs"):
        capture(build)


def test_a_builder_must_return_three_things():
    with pytest.raises(CaptureError, match="must return"):
        capture(lambda: nn.Linear(2, 2))
    with pytest.raises(ValueError, match="unknown costs 'tpu'"):
        capture(lambda: None, costs="tpu")
