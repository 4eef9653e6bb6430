"""lowtide.torch.capture and its command: small models captured, their graphs checked against the format's rules."""

import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if torch.__version__.split(".")[:2] != ["2", "13"]:
    pytest.skip("tracing is written for torch 2.13", allow_module_level=True)

import torch.nn.functional as F
from graph_rules import check, kinds, names, of_kind, with_defaults
from torch import nn

import lowtide
from lowtide.torch import CaptureError, capture
from lowtide.torch.__main__ import main
from lowtide.torch.example_models import GPT2, ResNet50, UNet, ViT
from lowtide.torch.fake_step import trace_step
from lowtide.torch.origins import module_path, source_line
from lowtide.torch.random_state import STATE_BYTES

ROOT = Path(__file__).resolve().parents[2]
SCALE = int(os.environ.get("LOWTIDE_TEST_SCALE", "1"))


def square(model, x):
    return model(x).square().mean()


def graph_of(build, **options):
    """The dict of a captured graph, checked."""
    graph = with_defaults(capture(build, name="test", **options).to_dict())
    check(graph)
    return graph


def captured(make, *shape, loss=square, **options):
    """The same of a training step of make() on float inputs of `shape`."""
    return graph_of(lambda: (make(), (torch.empty(*shape),), loss), **options)


def attributes(op):
    return {key: value for key, value in op["attributes"].items() if key != "source"}


class Mlp(nn.Sequential):
    def __init__(self, dropout=0.5):
        super().__init__(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 16), nn.Dropout(dropout),
                         nn.Linear(16, 4))


class Cnn(nn.Module):
    def __init__(self, repeat=1):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.repeat = repeat

    def forward(self, x):
        x = self.conv(x)
        for _ in range(self.repeat):
            x = self.relu(self.bn(x))
        return x


# ---- structure


def test_mlp_has_the_ops_and_bytes_that_one_expects():
    graph = captured(lambda: Mlp(0.0), 32, 8)
    assert names(graph, "parameter") == ["0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias"]
    assert sorted(names(graph, "gradient")) == sorted(f"{n}.grad" for n in names(graph, "parameter"))
    by_name = {t["name"]: t for t in graph["tensors"]}
    assert by_name["0.weight"] == {
        "name": "0.weight", "bytes": 512, "role": "parameter", "shape": [16, 8], "dtype": "f32"}
    assert by_name["addmm"]["bytes"] == 32 * 16 * 4
    assert by_name["tangents_1"]["bytes"] == 4
    assert {t["bytes"] for t in graph["tensors"] if t["name"].endswith("weight.grad")} == {512, 1024, 256}
    assert kinds(graph)["aten.addmm"] == 3 and kinds(graph)["aten.mm"] == 5
    first = of_kind(graph, "aten.addmm")[0]
    assert first["origin"] == "0" and attributes(first) == {"flops": 2 * 32 * 8 * 16}
    assert of_kind(graph, "aten.threshold_backward")[0]["origin"] == "1"


def test_views_make_no_tensors():
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(6, 4))

        def forward(self, x):
            y = x @ self.w.t().reshape(2, 2, 6).flatten(0, 1)
            a, b = y.view(3, -1).unsqueeze(0).expand(5, -1, -1).split(2, -1)[:2]
            return a * b.detach()

    graph = captured(Views, 4, 4)
    forward = [op["kind"] for op in graph["ops"] if op["phase"] == "forward"]
    assert forward == ["aten.mm", "aten.mul", "aten.pow", "aten.mean"]


def test_storages_are_those_of_a_real_run():
    """The bytes of produced tensors are those of the storages that the traced graph makes on real tensors."""
    def build():
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
        return model, (torch.ones(5, 8),), square

    graph = graph_of(build)
    module = trace_step(build, "f32")
    inputs = [torch.ones(n.meta["val"].shape) for n in module.graph.find_nodes(op="placeholder")]
    seen, alive = {t.untyped_storage().data_ptr() for t in inputs}, []

    class Count(torch.fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            for t in torch.utils._pytree.tree_leaves(result):
                if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in seen:
                    seen.add(t.untyped_storage().data_ptr())
                    alive.append(t)
            return result

    Count(module, garbage_collect_values=False).run(*inputs)
    produced = {t for op in graph["ops"] for t in op["outputs"]} - {
        t for op in of_kind(graph, "lowtide.barrier") for t in op["outputs"]}
    assert sorted(t.untyped_storage().nbytes() for t in alive) == sorted(graph["tensors"][t]["bytes"] for t in produced)


def test_several_outputs_of_one_op_stay_apart():
    graph = captured(lambda: nn.LayerNorm(8), 4, 8)
    (norm,) = of_kind(graph, "aten.native_layer_norm")
    assert [graph["tensors"][t]["bytes"] for t in norm["outputs"]] == [128, 16, 16]


def test_the_barrier_takes_what_the_forward_hands_out():
    def loss(model, x):
        y = model(x)
        return y.sum(), y, y.view(-1), model.weight, x

    graph = captured(lambda: nn.Linear(4, 4), 2, 4, loss=loss)
    (barrier,) = of_kind(graph, "lowtide.barrier")
    given = [graph["tensors"][t]["name"] for t in barrier["inputs"]]
    assert given == ["sum_1", "addmm", "weight", "input0"]
    assert [graph["tensors"][t]["bytes"] for t in barrier["outputs"]] == [4]
    out = [graph["tensors"][t]["name"] for t in graph["outputs"]]
    assert out[:3] == ["sum_1", "addmm", "tangents_1"] and "weight" not in out and "input0" not in out
    dependent = set(barrier["outputs"])
    for op in graph["ops"][graph["ops"].index(barrier) + 1:]:
        assert dependent.intersection(op["inputs"])
        dependent.update(op["outputs"])


def test_a_loss_that_is_a_view_is_an_output():
    graph = captured(lambda: nn.Linear(4, 1), 1, 4, loss=lambda m, x: m(x).view(()))
    (barrier,) = of_kind(graph, "lowtide.barrier")
    assert [graph["tensors"][t]["name"] for t in barrier["inputs"]] == ["addmm"]


# ---- parameters


def test_tied_weights_are_one_parameter_with_one_gradient():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
            self.head.weight = self.emb.weight

        def forward(self, x):
            return self.head(self.emb(x))

    graph = graph_of(lambda: (Tied(), (torch.zeros(3, 5, dtype=torch.long),), square))
    assert names(graph, "parameter") == ["emb.weight"]
    assert names(graph, "gradient") == ["emb.weight.grad"]
    assert kinds(graph)["aten.embedding_dense_backward"] == 1


def test_every_tie_counts():
    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight, self.b.bias = self.a.weight, self.a.bias
            self.c.weight = self.a.weight

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    graph = captured(Twins, 2, 4)
    assert names(graph, "parameter") == ["a.weight", "a.bias", "c.bias"]
    assert sorted(names(graph, "gradient")) == ["a.bias.grad", "a.weight.grad", "c.bias.grad"]


def test_a_module_used_under_two_names_is_one():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    graph = captured(Shared, 2, 4)
    assert names(graph, "parameter") == ["a.weight", "a.bias"]
    assert len(names(graph, "gradient")) == 2


def test_unused_and_frozen_parameters_have_no_gradient():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused, self.frozen = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.frozen(self.used(x))

    graph = captured(Partly, 2, 4)
    assert len(names(graph, "parameter")) == 6
    assert sorted(names(graph, "gradient")) == ["used.bias.grad", "used.weight.grad"]


def test_one_storage_as_two_gradients_is_one_output():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(4))

        def forward(self, x):
            return torch.tanh(self.a + self.b) * x

    graph = captured(Sum, 4)
    assert names(graph, "gradient") == ["a.grad, b.grad"]


def test_a_real_module_is_left_as_it_is():
    torch.manual_seed(0)
    model, x = nn.Sequential(Cnn(), nn.Dropout(0.5)), torch.randn(2, 3, 8, 8)
    before = {name: (t, t.detach().clone()) for name, t in model.state_dict(keep_vars=True).items()}
    generator = torch.get_rng_state()
    graph = with_defaults(capture(model, x, square).to_dict())
    check(graph)
    assert graph["name"] == "Sequential training"
    for name, t in model.state_dict(keep_vars=True).items():
        assert t is before[name][0] and torch.equal(t, before[name][1]) and t.grad is None
    assert torch.equal(torch.get_rng_state(), generator) and model.training
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert graph | {"name": "test"} == captured(lambda: nn.Sequential(Cnn(), nn.Dropout(0.5)), 2, 3, 8, 8)


def test_the_modules_own_result_is_the_loss_where_none_is_given():
    class Both(nn.Linear):
        def forward(self, x, y):
            return (super().forward(x) - y).square().sum(), x

    graph = with_defaults(capture(Both(4, 4), (torch.ones(2, 4), torch.ones(2, 4))).to_dict())
    check(graph)
    assert names(graph, "input") == ["input0", "input1"] and len(names(graph, "gradient")) == 2


def test_the_optimizers_state_is_resident():
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused, self.frozen = nn.Linear(4, 4), nn.Linear(5, 5), nn.Linear(4, 4)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.frozen(self.used(x))

    own = 4 * (16 + 4)
    model = Partly()
    for optimizer, count in [("adamw", 2), (torch.optim.Adagrad, 1), ("sgd", 0), (None, 0),
                             (torch.optim.AdamW(model.parameters(), amsgrad=True), 3),
                             (torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), 1)]:
        graph = capture(model, torch.ones(2, 4), square, optimizer=optimizer)
        assert graph.resident_bytes == count * own
    assert graph.own_peak == capture(model, torch.ones(2, 4), square).own_peak + own
    with pytest.raises(ValueError, match="no rule for the state of optimizer 'shampoo'"):
        capture(model, torch.ones(2, 4), square, optimizer="shampoo")


# ---- random draws, batch norm, updates in place


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
    assert F.scaled_dot_product_attention.__module__ != "lowtide.torch.fake_step"


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


# ---- number types, times


def test_autocast_and_bf16():
    amp = captured(lambda: Mlp(0.0), 32, 8, dtype="amp")
    assert {t["dtype"] for t in amp["tensors"] if t["role"] in ("parameter", "gradient")} == {"f32"}
    assert kinds(amp)["aten._to_copy"] > 0
    half = captured(lambda: Mlp(0.0), 32, 8, dtype="bf16")
    assert {t["dtype"] for t in half["tensors"]} == {"bf16"}


def test_times_follow_the_device():
    slow, fast = (captured(Mlp, 4096, 8, costs=d) for d in ("l4", "h200"))
    assert sum(op["time"] for op in slow["ops"]) > sum(op["time"] for op in fast["ops"])
    assert [op["name"] for op in slow["ops"]] == [op["name"] for op in fast["ops"]]


# ---- what is refused


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
def test_what_cannot_be_captured_is_said(loss, message):
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


# ---- files and the command line


def test_two_captures_give_the_same_bytes(tmp_path):
    """Also with one that fails in the middle of a module between them."""
    for i in range(2):
        with pytest.raises(CaptureError, match="TypeError"):
            captured(lambda: nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), 2, 4, loss=lambda m, x: m(3))
        capture(lambda: (Mlp(), (torch.empty(32, 8),), square)).save(tmp_path / f"{i}.graph.json.gz")
    first, second = ((tmp_path / f"{i}.graph.json.gz").read_bytes() for i in range(2))
    assert first == second and first[4:8] == bytes(4)
    assert json.loads(gzip.decompress(first))["ops"]


def test_command_line(tmp_path, capsys):
    (tmp_path / "my_models.py").write_text(
        "import torch\n"
        "def net(batch=2):\n"
        "    return torch.nn.Linear(4, 4), (torch.ones(batch, 4),), lambda m, x: m(x).sum()\n"
        "def fixed():\n"
        "    return net(1)\n"
        "thing = 3\n")
    model, out = tmp_path / "my_models.py", tmp_path / "out.graph.json"
    assert main([f"{model}:net", "--batch", "5", "--device", "l4", "-o", str(out)]) == 0
    graph = json.loads(out.read_text())
    assert graph["tensors"][2]["shape"] == [5, 4] and "batch 5" in graph["name"] and "L4" in graph["name"]
    assert "ops" in capsys.readouterr().out
    assert graph["ops"][0]["attributes"]["source"] == "my_models.py:3"
    for model_name, more, message in [
        ("resnet51", [], "neither a built-in example nor"),
        (f"{tmp_path}/none.py:net", [], "there is no file"),
        (f"{model}:thing", [], "has no function thing"),
        (f"{model}:fixed", ["--batch", "3"], "does not take a batch size"),
        ("no_such_module:net", [], "cannot be imported"),
    ]:
        assert main([model_name, *more, "-o", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert main([f"{model}:net", "-o", str(tmp_path / "none" / "x.json")]) == 2
    assert main([f"{model}:net", "--optimizer", "adamw", "-o", str(out)]) == 0
    assert lowtide.Graph.load(out).resident_bytes == 2 * 4 * (16 + 4)
    assert main([f"{model}:net", "--optimizer", "shampoo", "-o", str(out)]) == 2
    assert "no rule for the state of optimizer 'shampoo'" in capsys.readouterr().err


def test_the_command_is_the_package(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "def net():\n"
        "    return torch.nn.Linear(4, 4), (torch.ones(2, 4),), lambda m, x: m(x).sum()\n")
    out = tmp_path / "net.graph.json.gz"
    done = subprocess.run([sys.executable, "-m", "lowtide.torch", "net:net", "-o", str(out)], cwd=tmp_path,
                          capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{out}: {lowtide.Graph.load(out).num_ops} ops, 8 tensors, {out.stat().st_size} bytes\n"


# ---- where an op comes from


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        x = self.lin(x)  # inner
        return torch.tanh(x)  # tanh


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Inner(), Inner()])

    def forward(self, x):
        x = self.blocks[0](x)
        return 2 * x + self.blocks[1](x)  # sum


def marked(word):
    """As an op's source says it, the line of this file that ends with the comment `word`."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if line.endswith(f"  # {word}"))
    return f"{Path(__file__).name}:{number}"


def test_ops_say_which_module_and_which_line_they_come_from():
    def loss(model, x):
        return model(x).abs().sum()  # loss

    graph = captured(Outer, 4, 8, loss=loss)
    said = [(op["kind"].removeprefix("aten."), op["origin"], op["attributes"].get("source"))
            for op in graph["ops"] if op["kind"] != "lowtide.barrier"]
    inner, tanh, add, whole = map(marked, ("inner", "tanh", "sum", "loss"))
    assert said[:8] == [
        ("addmm", "blocks.0.lin", inner), ("tanh", "blocks.0", tanh), ("mul", None, add),
        ("addmm", "blocks.1.lin", inner), ("tanh", "blocks.1", tanh), ("add", None, add),
        ("abs", "loss", whole), ("sum", "loss", whole)]
    backward = set(said[8:])
    assert {("sgn", "loss", whole), ("mul", None, add), ("tanh_backward", "blocks.1", tanh),
            ("mm", "blocks.1.lin", inner), ("mm", "blocks.0.lin", inner)} <= backward
    assert [line for kind, _, line in said[8:] if line is None and kind != "add"] == []  # a sum of gradients


def test_calls_inside_pytorchs_layers_have_the_line_outside():
    def loss(model, x):
        return model(x).sum()  # layer

    make = lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)  # noqa: E731
    graph = captured(make, 2, 8, 16, loss=loss)
    assert {op["attributes"].get("source") for op in graph["ops"]} - {None} == {marked("layer")}
    alone = graph_of(lambda: (nn.Sequential(make(), nn.Flatten(0), nn.Linear(256, 1)), (torch.empty(2, 8, 16),), None))
    assert not any("source" in op["attributes"] for op in alone["ops"])  # no line of the user's runs
    assert {op["attributes"]["source"] for op in of_kind(graph, "lowtide.random_state")} == {marked("layer")}


@pytest.mark.parametrize(("variable", "prefix"), [("self", ""), ("net", "net")])
def test_torch_compile_knows_modules_and_lines_too(monkeypatch, variable, prefix):
    module, programs = sys.modules["lowtide.torch.region"], []
    lower = module.lower
    monkeypatch.setattr(module, "lower", lambda *given, **named: programs.append(lower(*given, **named)) or programs[-1])
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch.compiler.reset()

    def step(net, x):
        return net(x)

    model, x = Outer(), torch.ones(4, 8)
    options = {"budget": "100%", "costs": "cpu", "fallback": "error"}
    if variable == "self":
        torch.compile(model, backend=lowtide.torch.backend, options=options)(x)
    else:
        torch.compile(step, backend=lowtide.torch.backend, options=options)(model, x)
    ops = with_defaults(programs[0].graph)["ops"]
    inner, tanh, add = map(marked, ("inner", "tanh", "sum"))
    root = prefix or None
    expected = [("addmm", "blocks.0.lin", inner), ("tanh", "blocks.0", tanh), ("mul", None, add),
                ("addmm", "blocks.1.lin", inner), ("tanh", "blocks.1", tanh), ("add", None, add)]
    expected = [(kind, ".".join(filter(None, (prefix, path))) or root, line) for kind, path, line in expected]
    said = [(op["kind"].removeprefix("aten."), op["origin"], op["attributes"].get("source")) for op in ops]
    assert said[:6] == expected
    assert expected[3][1:] in [words[1:] for words in said if words[0] == "mm"]


@pytest.mark.parametrize(("noted", "path"), [
    ("L['self']", ""), ("L['self'].h.3.mlp", "h.3.mlp"), ("L['self']._modules['h-3']", "h-3"),
    ("L['net'].h", "net.h"), ("G['NET']", "NET")])
def test_module_paths_that_torch_compile_has_noted(noted, path):
    node = torch.fx.Graph().placeholder("x")
    assert module_path(node) is None
    node.meta["nn_module_stack"] = {"1": ("L['other']", nn.Module), "2": (noted, nn.Module)}
    assert module_path(node) == path


def test_lines_that_torch_compile_has_noted():
    node = torch.fx.Graph().placeholder("x")
    assert source_line(node) is None
    inside = Path(nn.modules.linear.__file__)
    node.meta["stack_trace"] = ('  File "/home/me/models/net.py", line 12, in forward\n    y = self.f(x)\n'
                                '  File "/home/me/models/parts.py", line 7, in f\n    return self.lin(x)\n'
                                f'  File "{inside}", line 3, in forward\n    return F.linear(x)\n')
    assert source_line(node) == "parts.py:7"


# ---- size, and the examples


class Block(nn.Module):
    """A block of a language model of 70 billion parameters in 80 of them: 64 heads over 8 keys, gated."""

    def __init__(self, width=8192, keys=1024, hidden=28672):
        super().__init__()
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, keys, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x):
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (-1, 128)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(-2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@pytest.mark.parametrize(("blocks", "parameters"), [
    (8, 8_946_589_696),
    pytest.param(80, 70_553_706_496, marks=pytest.mark.skipif(SCALE < 10, reason="LOWTIDE_TEST_SCALE is below 10"))])
def test_a_model_of_seventy_billion_parameters_takes_no_memory(blocks, parameters):
    """A slice of it, or all: 14 seconds and 200 MB for 565 GB of training."""
    def build():
        model = nn.Sequential(nn.Embedding(128256, 8192), *(Block() for _ in range(blocks)), nn.RMSNorm(8192),
                              nn.Linear(8192, 128256, bias=False))
        tokens = torch.zeros(1, 4096, dtype=torch.long)
        return model, (tokens, tokens), lambda m, x, y: F.cross_entropy(m(x).flatten(0, 1), y.flatten())

    before, start = peak_memory(), time.monotonic()
    graph = capture(build, dtype="bf16", optimizer="adamw")
    assert sum(t.bytes for t in graph.tensors if t.role == "parameter") == 2 * parameters
    assert graph.resident_bytes == 2 * 2 * parameters and graph.own_peak > 8 * parameters
    assert sum(t.role == "gradient" for t in graph.tensors) == 9 * blocks + 3
    assert time.monotonic() - start < 120
    assert peak_memory() - before < 1e9


def peak_memory():
    """Bytes of this process at most so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize(("model", "parameters"), [
    (ResNet50, 25_557_032), (GPT2, 124_439_808), (ViT, 86_567_656), (UNet, 31_037_698)])
def test_examples_have_the_published_number_of_parameters(model, parameters):
    with torch.device("meta"):
        assert sum(p.numel() for p in model().parameters()) == parameters


def test_resnet50_is_captured_as_committed(tmp_path):
    out = tmp_path / "resnet50.graph.json"
    assert main(["resnet50", "--batch", "128", "--device", "a100", "-o", str(out)]) == 0
    committed = gzip.decompress((ROOT / "examples" / "resnet50-train.graph.json.gz").read_bytes())
    assert out.read_bytes() == committed
