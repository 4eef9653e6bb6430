"""lowtide.torch.capture: random draws, batch norm and updates in place happen once, in order."""

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from capture_support import Cnn, Mlp, attributes, captured
from graph_rules import kinds, names, of_kind
from lowtide.torch.program.lowerings.random_draws import STATE_BYTES
from torch import nn


@pytest.mark.parametrize(("costs", "state"), [("a100", STATE_BYTES["cuda"]), ("cpu", None)])
def test_dropout_is_a_mask_drawn_and_a_product(costs, state):
    """A mask much larger than the generator's state may be drawn again, from the state before it."""
    graph = captured(Mlp, 32, 8, costs=costs)
    masks, products = of_kind(graph, "lowtide.dropout_mask"), of_kind(graph, "lowtide.dropout_apply")
    states = of_kind(graph, "lowtide.random_state")
    assert len(masks) == len(products) == 2 and "aten.native_dropout" not in kinds(graph)
    assert len(states) == (2 if state else 0)
    for i, (mask, product) in enumerate(zip(masks, products, strict=True)):
        assert mask["recomputable"] == bool(state) and attributes(mask) == attributes(product) == {"p": 0.5}
        source, *rest = mask["inputs"]
        assert graph["tensors"][source]["bytes"] == 32 * 16 * 4 == mask["workspace"] - (state or 0)
        assert rest == (states[i]["outputs"] if state else [])
        assert product["recomputable"] and product["inputs"] == [source, *mask["outputs"]]
        assert product["workspace"] == 0
        assert graph["tensors"][mask["outputs"][0]] == {
            "name": mask["name"], "bytes": 32 * 16, "role": None, "shape": [32, 16], "dtype": "bool"}
    for op in states:
        assert not op["recomputable"] and op["inputs"] == [] and op["time"] == 0
        assert graph["tensors"][op["outputs"][0]] == {
            "name": op["name"], "bytes": state, "role": None, "shape": [state], "dtype": "u8"}
    assert [m["origin"] for m in masks] == ["2", "4"]
    draws = [i for i, op in enumerate(graph["ops"]) if op in masks or op in states]
    assert [graph["ops"][i]["after"] for i in draws] == [[], *([i] for i in draws[:-1])]
    (barrier,) = of_kind(graph, "lowtide.barrier")
    assert barrier["after"] == draws[-1:]
    backward = of_kind(graph, "aten.native_dropout_backward")
    assert {m["outputs"][0] for m in masks} == {op["inputs"][1] for op in backward}
    assert all(op["recomputable"] for op in backward)


@pytest.mark.parametrize(("elements", "states"), [(63, 0), (64, 1)])
def test_a_small_draw_is_kept_rather_than_a_state(elements, states):
    graph = captured(lambda: nn.Sequential(nn.Linear(1, elements), nn.Dropout(0.5)), 1, 1)
    assert kinds(graph)["lowtide.random_state"] == states
    assert [op["recomputable"] for op in of_kind(graph, "lowtide.dropout_mask")] == [bool(states)]


@pytest.mark.parametrize("p", [0.0, 0.1])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_attention_stays_whole_and_is_random_only_with_dropout(p, dtype):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = (t.view(2, 8, 4, 4).transpose(1, 2) for t in self.qkv(x).split(16, -1))
            return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)

    graph = captured(Attention, 2, 8, 16, dtype=dtype)
    forward, backward = (op for op in graph["ops"] if "attention" in op["kind"])
    states = of_kind(graph, "lowtide.random_state")
    assert len(states) == (p != 0) and {t for op in states for t in op["outputs"]} <= set(forward["inputs"])
    assert forward["recomputable"] and backward["recomputable"]
    assert forward["attributes"]["flops"] == 2 * 2 * 2 * 4 * 8 * 8 * 4 // 2
    assert (graph["ops"].index(forward) in of_kind(graph, "lowtide.barrier")[0]["after"]) == (p != 0)


def test_attention_inside_pytorchs_own_layers_stays_whole_too():
    graph = captured(lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True), 2, 8, 16)
    assert kinds(graph)["aten._scaled_dot_product_efficient_attention"] == 1 and "aten.bmm" not in kinds(graph)
    drawn = [op["kind"] for op in graph["ops"] if not op["recomputable"]]
    assert drawn == [*["lowtide.random_state"] * 4, "lowtide.barrier"]
    assert F.scaled_dot_product_attention.__module__ != "lowtide.torch.tracing.fake_step"


def test_random_draws_keep_their_order():
    class Noise(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.drop = nn.Parameter(torch.zeros(8)), nn.Dropout(0.2)

        def forward(self, x):
            x = x * self.w + torch.rand_like(x)
            x = self.drop(x) + torch.randn(8)
            return F.dropout2d(x.view(2, 2, 2, 1), 0.5)

    graph = captured(Noise, 8)
    drawn = [i for i, op in enumerate(graph["ops"]) if not op["recomputable"] and op["kind"] != "lowtide.barrier"]
    assert len(drawn) == 4
    assert [graph["ops"][i]["after"] for i in drawn] == [[], [drawn[0]], [drawn[1]], [drawn[2]]]


def test_batch_norm_may_run_again_and_moves_its_statistics_once():
    graph = captured(Cnn, 2, 3, 8, 8)
    (norm,), (stats,) = of_kind(graph, "aten.native_batch_norm"), of_kind(graph, "lowtide.batch_norm_stats")
    (barrier,), (counter,) = of_kind(graph, "lowtide.barrier"), of_kind(graph, "aten.add")
    state = {t["name"]: i for i, t in enumerate(graph["tensors"]) if t["role"] == "state"}
    running = [state["bn.running_mean"], state["bn.running_var"]]
    assert norm["recomputable"] and not set(state.values()).intersection(norm["inputs"])
    assert [graph["tensors"][t]["bytes"] for t in norm["outputs"]] == [2 * 8 * 6 * 6 * 4, 32, 32]
    assert stats["inputs"] == [*norm["inputs"], *running] and stats["time"] == stats["workspace"] == 0
    assert not stats["recomputable"] and attributes(stats) == {"momentum": 0.1}
    assert [graph["tensors"][t]["bytes"] for t in stats["outputs"]] == [32, 32]
    assert norm["after"] == [graph["ops"].index(stats)]
    assert counter["inputs"] == [state["bn.num_batches_tracked"]]
    assert set(barrier["mutates"]) == set(state.values())
    assert {*stats["outputs"], *counter["outputs"]} < set(barrier["inputs"])
    assert graph["ops"].index(norm) in barrier["after"]  # the kernel that makes the statistics is NORM's first run
    assert not {*stats["outputs"], *counter["outputs"]}.intersection(graph["outputs"])
    (backward,) = of_kind(graph, "aten.native_batch_norm_backward")
    assert not set(state.values()).intersection(backward["inputs"])
    assert set(norm["outputs"][1:]) < set(backward["inputs"])


def test_a_batch_norm_that_runs_twice_moves_its_statistics_once_in_the_end():
    graph = captured(lambda: Cnn(repeat=2), 2, 3, 8, 8)
    (barrier,) = of_kind(graph, "lowtide.barrier")
    state = [i for i, t in enumerate(graph["tensors"]) if t["role"] == "state"]
    assert Counter(barrier["mutates"]) == Counter(state)
    first, second = of_kind(graph, "lowtide.batch_norm_stats")
    assert set(first["outputs"]) < set(second["inputs"]) and not set(state).intersection(second["inputs"])
    assert set(second["outputs"]) < set(barrier["inputs"]) and not set(first["outputs"]) & set(barrier["inputs"])
    assert kinds(graph)["aten.native_batch_norm"] == 2


def test_batch_norm_in_evaluation_reads_its_statistics():
    graph = captured(lambda: Cnn().eval(), 2, 3, 8, 8)
    state = {i for i, t in enumerate(graph["tensors"]) if t["role"] == "state" and t["dtype"] == "f32"}
    readers = [op for op in graph["ops"] if state & set(op["inputs"])]
    assert len(readers) == 2 and not any(op["mutates"] for op in graph["ops"])


def test_relu_in_place_is_like_relu():
    plain = captured(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), 4, 8)
    in_place = captured(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(True), nn.Linear(8, 8)), 4, 8)
    assert plain == in_place


class Buffers(nn.Module):
    """A counter, a moving average, two buffers of one value, one that only moves, and one that stays."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        for name in ("count", "average", "one", "two", "moved", "still"):
            self.register_buffer(name, torch.zeros(4))

    def forward(self, x):
        self.count.add_(1)
        y = self.lin(x) + self.still
        with torch.no_grad():
            self.average.mul_(0.9).add_(y.mean(0))
            new = y.amax(0)
            self.one.copy_(new)
            self.two.copy_(new)
            self.moved.copy_(self.moved.roll(1))
        return y * self.count


def test_buffers_change_once_at_the_barrier():
    graph = captured(Buffers, 2, 4)
    (barrier,) = of_kind(graph, "lowtide.barrier")
    changed = Counter(graph["tensors"][t]["name"] for t in barrier["mutates"])
    assert changed == Counter(["count", "average", "one", "two", "moved"])
    made = {t for op in graph["ops"] for t in op["outputs"]}
    handed = [t for t in barrier["inputs"] if t in made]
    assert len(handed) == 6  # the loss, and the new values
    assert len(set(handed).intersection(graph["outputs"])) == 1  # the others are copied then, and dropped
    number = {t["name"]: i for i, t in enumerate(graph["tensors"])}
    (count,) = (op for op in graph["ops"][:graph["ops"].index(barrier)] if number["count"] in op["inputs"])
    (reader,) = (op for op in graph["ops"] if op["phase"] == "backward" and op["inputs"][1:] == count["outputs"])
    assert count["outputs"][0] in handed and reader["kind"] == "aten.mul"  # read later


def test_constants_in_the_model_are_constants():
    graph = captured(lambda: nn.Linear(3, 3), 2, 3, loss=lambda m, x: (m(x) * torch.tensor([1.0, 2.0, 3.0])).sum())
    assert [t["bytes"] for t in graph["tensors"] if t["role"] == "constant"] == [12]


def test_tensors_that_are_plain_attributes_are_state():
    class Plain(nn.Linear):
        def __init__(self):
            super().__init__(4, 4)
            self.table = torch.arange(4.0)

        def forward(self, x):
            return super().forward(x) * self.table

    real = Plain()
    assert captured(Plain, 2, 4) == captured(lambda: real, 2, 4)
    assert names(captured(Plain, 2, 4), "state") == ["table"] and "table" in vars(real)
