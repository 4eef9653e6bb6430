"""Models are called with tuples, keyword arguments, batches that are mappings, and return objects."""

import collections
import dataclasses
from collections.abc import Mapping, MutableMapping

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.tensors.arguments import map_tensors, tensors_in
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


@dataclasses.dataclass
class Padded:
    """Made of rows, which it pads each time that it is made."""

    rows: torch.Tensor
    by: dataclasses.InitVar[int]
    mask: torch.Tensor = dataclasses.field(init=False)
    unset: torch.Tensor = dataclasses.field(init=False)

    def __post_init__(self, by):
        self.rows = F.pad(self.rows, (0, 0, 0, by))
        self.mask = torch.ones(len(self.rows), 1)


@dataclasses.dataclass(frozen=True)
class Frozen:
    rows: torch.Tensor
    more: tuple = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    rows: torch.Tensor


class ReadOnly(Mapping):
    def __init__(self, **items):
        self.store = items

    def __getitem__(self, key):
        return self.store[key]

    def __iter__(self):
        return iter(self.store)

    def __len__(self):
        return len(self.store)


class Mutable(ReadOnly, MutableMapping):
    def __setitem__(self, key, value):
        self.store[key] = value

    def __delitem__(self, key):
        del self.store[key]


class Shared(Mutable):
    """Its copies are views of the same items."""

    def __init__(self, **items):
        self.hidden = (items,)

    @property
    def store(self):
        return self.hidden[0]


class NamedDict(dict):
    """A dict that pytree does not know."""


@dataclasses.dataclass
class ModelOutput(collections.OrderedDict):
    """As transformers has it: the fields that are set are items, too."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None

    def __post_init__(self):
        for f in dataclasses.fields(self):
            if getattr(self, f.name) is not None:
                self[f.name] = getattr(self, f.name)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __reduce__(self):
        made, _, *rest = super().__reduce__()
        return made, tuple(getattr(self, f.name) for f in dataclasses.fields(self)), *rest


def test_dataclasses_are_not_made_again():
    class Rows(nn.Linear):
        def forward(self, batch):
            return (super().forward(batch.rows) * batch.mask).sum()

    one = Padded(torch.randn(3, 4), 2)
    rows, mask = one.rows, one.mask
    assert [t is u for t, u in zip(tensors_in(one), (rows, mask), strict=True)] == [True, True]
    doubled = map_tensors(lambda t: t * 2, one)
    assert isinstance(doubled, Padded) and equal([doubled.rows, doubled.mask], [rows * 2, mask * 2])
    assert one.rows is rows and one.mask is mask and not hasattr(doubled, "unset")
    module = Rows(4, 4)
    step = lowtide.torch.optimize(twin(module), (one,), **OPTIONS)
    assert equal([step(one).detach()], [module(one).detach()])


def test_dataclasses_of_all_kinds_are_copied():
    row = torch.ones(2)
    for one in (Frozen(row, (Slotted(row),)), Slotted(row), ModelOutput(logits=row)):
        count = len(tensors_in(one))
        doubled = map_tensors(lambda t: t * 2, one)
        assert type(doubled) is type(one) and count == (2 if isinstance(one, Frozen) else 1)
        assert [t.tolist() for t in tensors_in(doubled)] == [[2.0, 2.0]] * count
        assert all(t is row for t in tensors_in(one))
    assert list(doubled) == ["logits"] and doubled["logits"] is doubled.logits and doubled.loss is None


def test_a_dataclass_may_hold_itself():
    one = Padded(torch.randn(3, 4), 0)
    one.unset = [one]
    doubled = map_tensors(lambda t: t * 2, one)
    assert doubled.unset[0] is doubled and len(tensors_in(one, [doubled])) == 4


@pytest.mark.parametrize("kind", [ReadOnly, Mutable, Shared, NamedDict, Batch, collections.OrderedDict])
def test_tensors_are_found_in_mappings_of_all_kinds(kind):
    row, deep = torch.ones(2), torch.zeros(3)
    one = kind(row=row, deep=[{"of": kind(deep=deep)}], name="x")
    assert [t is u for t, u in zip(tensors_in((one, 1)), (row, deep), strict=True)] == [True, True]
    more, = map_tensors(lambda t: t + 1, (one,))
    assert type(more) is kind and list(more) == ["row", "deep", "name"] and more["name"] == "x"
    assert one["row"] is row and one["deep"][0]["of"]["deep"] is deep
    if kind in (ReadOnly, Shared):
        assert more is one
    else:
        assert more["row"].tolist() == [2.0, 2.0] and more["deep"][0]["of"]["deep"].tolist() == [1.0] * 3


def test_optimize_plans_for_a_mapping_among_arguments():
    class Rows(nn.Linear):
        def forward(self, batch):
            return super().forward(batch["rows"]).sum()

    module, held = Rows(4, 4), Mutable(rows=torch.randn(3, 4))
    rows = held["rows"]
    step = lowtide.torch.optimize(twin(module), (held,), **OPTIONS)
    assert held["rows"] is rows and equal([step(held).detach()], [module(held).detach()])
