"""python/tools/capture.py: small models captured, their graphs checked against the format's rules."""

import gzip
import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if torch.__version__.split(".")[:2] != ["2", "13"]:
    pytest.skip("tracing is written for torch 2.13", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tools"))

import capture as tool
import torch.nn.functional as F
from graph_rules import check, kinds, names, of_kind
from torch import nn
from torch_capture.example_models import GPT2, ResNet50, UNet, ViT
from torch_capture.fake_step import CaptureError, trace_step
from torch_capture.graph_file import write_graph


def square(model, x):
    return model(x).square().mean()


def captured(make, *shape, loss=square, **options):
    """The graph of a training step of make() on float inputs of `shape`, checked."""
    graph = tool.capture(lambda: (make(), (torch.empty(*shape),), loss), name="test", **options)
    check(graph)
    return graph


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
    assert first["origin"] == "0" and first["attributes"] == {"flops": 2 * 32 * 8 * 16}
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

    graph = tool.capture(build, name="test")
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
    assert out[:2] == ["sum_1", "addmm"] and "weight" not in out and "input0" not in out
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

    graph = tool.capture(lambda: (Tied(), (torch.zeros(3, 5, dtype=torch.long),), square), name="tied")
    check(graph)
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


def test_a_real_model_is_left_as_it_is():
    model = nn.Linear(4, 4)
    weight = model.weight.detach().clone()
    captured(lambda: model, 2, 4)
    assert type(model.weight) is nn.Parameter and torch.equal(model.weight, weight)
    assert not model._forward_hooks and model.weight.grad is None


# ---- random draws, batch norm, updates in place


def test_dropout_is_a_mask_drawn_once_and_a_product():
    graph = captured(Mlp, 32, 8)
    masks, products = of_kind(graph, "lowtide.dropout_mask"), of_kind(graph, "lowtide.dropout_apply")
    assert len(masks) == len(products) == 2 and "aten.native_dropout" not in kinds(graph)
    for mask, product in zip(masks, products, strict=True):
        assert not mask["recomputable"] and mask["inputs"] == [] and mask["attributes"] == {"p": 0.5}
        assert product["recomputable"] and mask["outputs"][0] in product["inputs"]
        assert graph["tensors"][mask["outputs"][0]] == {
            "name": mask["name"], "bytes": 32 * 16, "role": None, "shape": [32, 16], "dtype": "bool"}
    assert [m["origin"] for m in masks] == ["2", "4"]
    assert masks[0]["after"] == [] and masks[1]["after"] == [graph["ops"].index(masks[0])]
    (barrier,) = of_kind(graph, "lowtide.barrier")
    assert barrier["after"] == [graph["ops"].index(masks[1])]
    backward = of_kind(graph, "aten.native_dropout_backward")
    assert {m["outputs"][0] for m in masks} == {op["inputs"][1] for op in backward}
    assert all(op["recomputable"] for op in backward)


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
    assert forward["recomputable"] == (p == 0) and backward["recomputable"]
    assert forward["attributes"]["flops"] == 2 * 2 * 2 * 4 * 8 * 8 * 4 // 2
    assert (graph["ops"].index(forward) in of_kind(graph, "lowtide.barrier")[0]["after"]) == (p != 0)


def test_attention_inside_pytorchs_own_layers_stays_whole_too():
    graph = captured(lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True), 2, 8, 16)
    assert kinds(graph)["aten._scaled_dot_product_efficient_attention"] == 1 and "aten.bmm" not in kinds(graph)
    drawn = [op["kind"] for op in graph["ops"] if not op["recomputable"]]
    assert drawn == ["aten._scaled_dot_product_efficient_attention", *["lowtide.dropout_mask"] * 3, "lowtide.barrier"]
    assert F.scaled_dot_product_attention.__module__ != "torch_capture.fake_step"


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
    state = {t["name"]: i for i, t in enumerate(graph["tensors"]) if t["role"] == "state"}
    assert norm["recomputable"] and not set(state.values()).intersection(norm["inputs"])
    assert [graph["tensors"][t]["bytes"] for t in norm["outputs"]] == [2 * 8 * 6 * 6 * 4, 32, 32]
    assert stats["mutates"] == [state["bn.running_mean"], state["bn.running_var"]] == stats["inputs"][:2]
    assert stats["inputs"][2:] == norm["outputs"][1:] and stats["outputs"] == []
    (counter,) = of_kind(graph, "aten.add_")
    assert counter["mutates"] == counter["inputs"] == [state["bn.num_batches_tracked"]]
    (backward,) = of_kind(graph, "aten.native_batch_norm_backward")
    assert not set(state.values()).intersection(backward["inputs"])
    assert set(norm["outputs"][1:]) < set(backward["inputs"])


def test_a_batch_norm_that_runs_twice_moves_its_statistics_once_in_the_end():
    graph = captured(lambda: Cnn(repeat=2), 2, 3, 8, 8)
    changed = Counter(t for op in graph["ops"] for t in op["mutates"])
    state = [i for i, t in enumerate(graph["tensors"]) if t["role"] == "state"]
    assert changed == Counter(state)
    assert kinds(graph)["aten._native_batch_norm_legit_functional"] == 2


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


def test_buffers_change_once_before_the_barrier():
    graph = captured(Buffers, 2, 4)
    changed = Counter(graph["tensors"][t]["name"] for op in graph["ops"] for t in op["mutates"])
    assert changed == Counter(["count", "average", "one", "two", "moved"])
    for op in graph["ops"]:
        assert not op["mutates"] or (op["outputs"] == [] and not op["recomputable"])
    (count,) = (i for i, t in enumerate(graph["tensors"]) if t["name"] == "count")
    assert [op["kind"] for op in graph["ops"] if count in op["mutates"]] == ["aten.copy_"]  # read later


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
    slow, fast = (captured(Mlp, 4096, 8, device=d) for d in ("l4", "h200"))
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
        tool.capture(lambda: (make(), (torch.zeros(2, 4, dtype=torch.long),), square), name="test")


def test_a_stray_tensor_is_refused():
    def build():
        weight = torch.ones(4)
        return nn.Linear(4, 4), (torch.empty(2, 4),), lambda m, x: (m(x) * weight).sum()

    with pytest.raises(CaptureError, match="none of its inputs"):
        tool.capture(build, name="test")


def test_a_builder_must_return_three_things():
    with pytest.raises(CaptureError, match="must return"):
        tool.capture(lambda: nn.Linear(2, 2), name="test")
    with pytest.raises(CaptureError, match="unknown device 'tpu'"):
        tool.capture(lambda: None, name="test", device="tpu")


# ---- files and the command line


def test_two_captures_give_the_same_bytes(tmp_path):
    """Also with one that fails in the middle of a module between them."""
    for i in range(2):
        with pytest.raises(CaptureError, match="TypeError"):
            captured(lambda: nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), 2, 4, loss=lambda m, x: m(3))
        write_graph(captured(Mlp, 32, 8), tmp_path / f"{i}.graph.json.gz")
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
    assert tool.main([f"{model}:net", "--batch", "5", "--device", "l4", "-o", str(out)]) == 0
    graph = json.loads(out.read_text())
    assert graph["tensors"][2]["shape"] == [5, 4] and "batch 5" in graph["name"] and "L4" in graph["name"]
    assert "ops" in capsys.readouterr().out
    for model_name, more, message in [
        ("resnet51", [], "neither a built-in example nor"),
        (f"{tmp_path}/none.py:net", [], "there is no file"),
        (f"{model}:thing", [], "has no function thing"),
        (f"{model}:fixed", ["--batch", "3"], "does not take a batch size"),
        ("no_such_module:net", [], "cannot be imported"),
    ]:
        assert tool.main([model_name, *more, "-o", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert tool.main([f"{model}:net", "-o", str(tmp_path / "none" / "x.json")]) == 2


# ---- size, and the examples


def test_a_model_of_seven_billion_parameters_takes_no_memory():
    start = time.monotonic()
    graph = captured(lambda: nn.Sequential(*(nn.Linear(16384, 16384) for _ in range(27))), 64, 16384, dtype="bf16")
    assert sum(t["bytes"] for t in graph["tensors"] if t["role"] == "parameter") > 2 * 7e9
    assert len(names(graph, "gradient")) == 54
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(("model", "parameters"), [
    (ResNet50, 25_557_032), (GPT2, 124_439_808), (ViT, 86_567_656), (UNet, 31_037_698)])
def test_examples_have_the_published_number_of_parameters(model, parameters):
    with torch.device("meta"):
        assert sum(p.numel() for p in model().parameters()) == parameters


def test_resnet50_is_captured_as_committed(tmp_path):
    out = tmp_path / "resnet50.graph.json"
    assert tool.main(["resnet50", "--batch", "128", "--device", "a100", "-o", str(out)]) == 0
    committed = gzip.decompress((ROOT / "examples" / "resnet50-train.graph.json.gz").read_bytes())
    assert out.read_bytes() == committed
