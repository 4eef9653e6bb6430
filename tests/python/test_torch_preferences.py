"""Losses that pair rows: forward and backward of the head are graphs of their own, each in parts."""

import os

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device.meter import bytes_held, peak_rise
from lowtide.torch.tracing.training_step import joint_graph
from lowtide.torch.transforms.computed_again import with_computed_again
from torch import nn
from torch_run import alone, fresh, twin

LONG = int(os.environ.get("LOWTIDE_TEST_SCALE", "1")) >= 10


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Preference(nn.Module):
    """Log-probabilities of given words, summed over a sequence; chosen sequences against rejected ones."""

    def __init__(self, words=1000, width=32, dropout=0.0, selective=False):
        super().__init__()
        self.body, self.head = nn.Linear(width, width), nn.Linear(width, words, bias=False)
        self.dropout, self.selective = dropout, selective

    def forward(self, x, y, weights):
        logits = self.head(F.dropout(torch.tanh(self.body(x)), self.dropout, self.training))
        picked = logits.gather(-1, y[..., None])[..., 0]
        if self.selective:
            each = picked - logits.logsumexp(-1)
        else:
            each = logits.log_softmax(-1).gather(-1, y[..., None])[..., 0]
        chosen, rejected = (each * weights).sum(-1).chunk(2)
        return -F.logsigmoid(0.1 * (chosen - rejected)).mean()


def case(**options):
    return lambda: (Preference(**options), (torch.randn(8, 16, 32), torch.randint(1000, (8, 16)), torch.ones(8, 16)))


def gradients_of(module, inputs, step):
    torch.manual_seed(5)
    loss = step(*inputs)
    loss.backward()
    return [loss.detach(), *(p.grad for p in module.parameters())]


def smallest(module, inputs, **options):
    """The smallest plan that is named, run: what it gives, its report, and its peak."""
    options = {"costs": "cpu", "techniques": "all", "work": 60_000, "time": None, "fallback": "error"} | options
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        lowtide.torch.optimize(module, inputs, budget=1, **options)
    torch._dynamo.reset()
    step = lowtide.torch.optimize(module, inputs, budget=refused.value.smallest, **options)
    found = gradients_of(module, inputs, step)
    report = lowtide.torch.reports()[-1]
    module.zero_grad()
    return found, report, bytes_held(module, inputs) + peak_rise(lambda: step(*inputs).backward())


@pytest.mark.parametrize("options", [{"dropout": 0.2}, *([{}] if LONG else [])])
def test_a_loss_that_pairs_rows_runs_in_parts_on_both_sides(options):
    module, inputs = fresh(case(**options))
    plain = twin(module)
    expected = gradients_of(plain, inputs, plain)
    plain.zero_grad()
    held = bytes_held(plain, inputs)
    rise = peak_rise(lambda: plain(*inputs).backward())
    found, report, peak = smallest(module, inputs)
    assert peak <= report.budget + 8  # the loss and its tangent, in the hands of the caller
    assert report.peak - held < 0.45 * rise  # the log-probabilities alone, held whole, are a third and their gradient another
    assert sum("split" in words for words in report.transforms) >= 1
    assert any("computed by the backward for itself" in one.detail for one in report.techniques)
    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-7)
    assert torch.equal(found[0], expected[0])


def test_a_budget_that_the_graph_as_it_is_keeps_computes_nothing_again():
    module, inputs = fresh(case())
    lowtide.torch.optimize(module, inputs, budget="100%", costs="cpu", techniques="all", work=20_000, time=None)
    report = lowtide.torch.reports()[-1]
    assert not any("for itself" in one.detail for one in report.techniques) and report.exactness.equal


def joint_of(module, inputs):
    given = []

    def catch(gm, example_inputs):
        given.append(joint_graph(gm, example_inputs)[0])
        return gm

    torch.compile(module, backend=catch)(*inputs)
    return given[0]


def test_random_draws_are_not_computed_twice():
    class Drops(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 512)

        def forward(self, x):
            return torch.dropout(self.layer(x), 0.5, True).square().mean()

    torch.manual_seed(0)
    assert with_computed_again(joint_of(Drops(), (torch.randn(16, 8),))) is None


def test_the_copy_reads_a_second_computation_in_the_backward_alone():
    torch.manual_seed(0)
    module, inputs = case()()
    joint = joint_of(module, inputs)
    made = with_computed_again(joint)
    counts = [sum(node.target is torch.ops.aten._log_softmax.default for node in graph.graph.nodes) for graph in (joint, made)]
    assert counts == [1, 2]
    (backward,) = (n for n in made.graph.nodes if n.target is torch.ops.aten._log_softmax_backward_data.default)
    assert any("lowtide_again" in n.meta for n in backward.all_input_nodes) or \
        any("lowtide_again" in s.meta for n in backward.all_input_nodes for s in n.all_input_nodes)


def test_a_large_result_of_nothing_is_computed_again_too():
    """Ones, which no tensor is read for."""
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.randn(64))

        def forward(self, x):
            return (torch.ones(64, 64) * self.scale).exp().sum() + x.sum()

    assert with_computed_again(joint_of(Shifted(), (torch.randn(4),))) is not None
