"""The record of a model's calls: what is one step, what waits, what stands beside whom."""

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.graphs import calls as module
from lowtide.torch.graphs.accounts import Accounts
from lowtide.torch.graphs.calls import Calls
from lowtide.torch.graphs.records import GraphRecord
from lowtide.torch.tensors.storages import storages


class Model:
    """Graphs without code: forwards leave a tensor, backwards take it."""

    def __init__(self, *trains):
        self.calls = Calls()
        self.captured_graphs = [GraphRecord(i, trains=t) for i, t in enumerate(trains)]
        self.kept = {}

    def forward(self, i, *args, handed_out=()):
        captured = self.captured_graphs[i]
        begins = self.calls.begins(captured)
        observed = self.calls.forward(captured, args)
        if captured.trains:
            self.kept[i] = torch.zeros(10)
            self.calls.leave(captured, self.kept[i], True, 100, handed_out)
        return begins, observed

    def backward(self, i):
        observed = self.calls.backward(self.captured_graphs[i], [self.kept[i]])
        del self.kept[i]
        return observed

    def steps(self):
        return sorted(" ".join(f"{'b' if e.backward else 'f'}{e.captured.number}" for e in step)
                      for step in self.calls.steps())


def test_a_step_ends_where_nothing_waits():
    model = Model(True, True)
    for _ in range(2):
        model.calls.news = False
        assert model.forward(0)[0] and not model.forward(1)[0]
        model.backward(1)
        observed = model.backward(0)
        model.forward(1)
        model.backward(1)
    assert model.steps() == ["f0 f1 b1 b0", "f1 b1"] and observed is None and not model.calls.news


def test_a_forward_that_is_dropped_waits_no_more():
    model = Model(True, True)
    model.forward(0)
    assert model.calls.waiting_bytes() == 100
    model.kept.clear()
    assert model.calls.waiting_bytes() == 0 and model.forward(1)[0]


def test_a_backward_that_keeps_its_graph_waits_on():
    model = Model(True)
    model.forward(0)
    kept = model.kept[0]
    model.backward(0)
    assert model.calls.waiting_bytes() == 100
    del kept
    assert model.calls.waiting_bytes() == 0


def test_evaluations_are_steps_from_their_first_region_on():
    model, x, y = Model(False, False), torch.zeros(5), torch.zeros(6)
    for _ in range(3):
        begins = [model.forward(0, x)[0], model.forward(1, y)[0], model.forward(1, y)[0]]
        assert begins == [True, False, False]
    assert model.steps() == ["f0 f1 f1"]


def test_memory_beside_a_pass():
    weight, other = torch.nn.Parameter(torch.zeros(8)), torch.nn.Parameter(torch.zeros(4))
    model, x, y, target = Model(True, True), torch.zeros(16), torch.zeros(32), torch.zeros(64)
    model.captured_graphs[0].leaves, model.captured_graphs[1].leaves = storages([weight]), storages([other])
    weight.grad = torch.zeros(8)
    _, first = model.forward(0, x, weight, handed_out=[y])
    _, second = model.forward(1, y, target, other)
    other.grad = None
    last = model.backward(1)
    other.grad = torch.zeros(4)
    first_backward = model.backward(0)
    assert [list(e.given.values()) for e in (first, second)] == [[64], [256]]
    assert second.twice == 128 and [w.number for w in second.waiting] == [0]
    assert sum(first.old.values()) == 32 and last.new == 0 and first_backward.new == 16
    assert sum(model.calls.known.staying(False).values()) == 48


def test_a_batch_and_a_parameter_of_another_step_do_not_stand_beside_a_pass():
    weight = torch.nn.Parameter(torch.zeros(8))
    model, batches = Model(True), [torch.zeros(n) for n in (16, 32, 64, 128, 256)]
    accounts = Accounts(model.calls, model.captured_graphs)

    def others():
        (step,) = model.calls.steps()
        return [accounts.others(pass_, step, accounts.staying(), {}) for pass_ in step]

    for step, batch in enumerate(batches):
        if step == 4:
            weight.data = torch.zeros(8)
            model.calls.know([weight], [weight])
            assert others() == [0, 0]
        model.forward(0, batch, weight)
        model.backward(0)
        assert others() == [0, 0]
    kept = weight.data
    weight.data = torch.zeros(8)
    model.calls.know([weight], [weight])
    assert kept.numel() == 8 and others() == [32, 32]


def test_the_tree_does_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(module, "_NODES", 8)
    model = Model(True)
    for n in range(6):
        for _ in range(n):
            model.forward(0)
            model.kept[n, _] = model.kept.pop(0)
        model.kept.clear()
    assert sum(len(step) for step in model.calls.steps()) <= 8
    assert model.forward(0)[0]
