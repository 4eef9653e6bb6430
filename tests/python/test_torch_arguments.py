"""Models are called with tuples, keyword arguments, batches that are mappings, and return objects."""

import collections
import dataclasses

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn
from torch_run import equal, gradients, twin

OPTIONS = {"budget": "100%", "costs": "cpu", "work": 1000, "time": None, "fallback": "error"}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


@dataclasses.dataclass
class Output:
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None


class Batch(collections.UserDict):
    """As tokenizers return it: a mapping that is no dict."""


class Model(nn.Module):
    """Called as language models are."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)

    def forward(self, input_ids=None, attention_mask=None, labels=None, *, scale=1.0, extra=None):
        hidden = self.table(input_ids) * scale
        if attention_mask is not None:
            hidden = hidden * attention_mask[..., None]
        if extra is not None:
            hidden = hidden + extra["shift"][0]
        logits = self.head(hidden)
        return Output(F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits)


def batch():
    ids = torch.randint(32, (4, 8))
    return {"input_ids": ids, "attention_mask": torch.ones(4, 8), "labels": ids}


def the_step(call, module, given, named):
    out = call(*given, **named)
    out.loss.backward()
    seen = [out.loss.detach(), out.logits.detach(), *gradients(module)]
    module.zero_grad()
    return seen


@pytest.mark.parametrize("form", ["dict", "mapping", "kwargs", "both", "nested"])
def test_optimize_plans_for_keyword_arguments(form):
    torch.manual_seed(0)
    module, one = Model(), batch()
    mine, ids = twin(module), one["input_ids"]
    extra = {"shift": [torch.randn(16)]}
    given, named, inputs, kwargs = {
        "dict": ((), one, one, None),
        "mapping": ((), one, Batch(one), None),
        "kwargs": ((ids,), {"labels": ids, "scale": 2.0}, (ids,), {"labels": ids, "scale": 2.0}),
        "both": ((), {**one, "scale": 2.0}, one, {"scale": 2.0}),
        "nested": ((ids, None, ids), {"extra": extra}, (ids, None, ids), {"extra": extra}),
    }[form]
    before = len(lowtide.torch.reports())
    step = lowtide.torch.optimize(mine, inputs, kwargs=kwargs, **OPTIONS)
    assert len(lowtide.torch.reports()) - before == 1
    assert equal(the_step(step, mine, given, named), the_step(module, module, given, named))
    assert len(lowtide.torch.reports()) - before == 1
    graph = lowtide.torch.capture(module, inputs, kwargs=kwargs)
    loss = lowtide.torch.capture(module, inputs, lambda m, *a, **k: m(*a, **k).loss, kwargs=kwargs)
    assert graph.num_ops == loss.num_ops > 5


def test_explain_takes_them_too():
    found = lowtide.torch.explain(Model(), batch(), points=2, time=0.2, costs="cpu", show=False)
    assert found.smallest is not None


def test_a_mapping_of_results_has_its_loss_under_that_name():
    class Mapped(Model):
        def forward(self, **named):
            out = super().forward(**named)
            return {"logits": out.logits, "loss": out.loss}

    assert lowtide.torch.capture(Mapped(), batch()).hash == lowtide.torch.capture(Model(), batch()).hash


@pytest.mark.parametrize(("inputs", "kwargs", "words"), [
    ({1: torch.zeros(1)}, None, r"1 is no name; a dict that is one argument goes into a tuple: \(batch,\)"),
    ({"x": torch.zeros(1)}, {"x": 1}, "x: given as an input and in kwargs"),
    ((), [("x", 1)], "kwargs must be a mapping of keyword arguments, not list"),
])
def test_wrong_arguments_are_said(inputs, kwargs, words):
    for call in (lambda: lowtide.torch.optimize(Model(), inputs, kwargs=kwargs, budget="1GiB"),
                 lambda: lowtide.torch.capture(Model(), inputs, kwargs=kwargs),
                 lambda: lowtide.torch.explain(Model(), inputs, kwargs=kwargs)):
        with pytest.raises(TypeError, match=words):
            call()
