"""lowtide.torch.capture: the ops, tensors, parameters and times of small models' graphs."""

import threading

import pytest

torch = pytest.importorskip("torch")

from capture_support import Cnn, Mlp, attributes, captured, graph_of, square
from graph_rules import check, kinds, names, of_kind, with_defaults
from lowtide.torch import capture
from lowtide.torch.tracing.fake_step import trace_step
from torch import nn


def test_mlp_has_the_ops_and_bytes_that_one_expects():
    graph = captured(lambda: Mlp(0.0), 32, 8)
    assert names(graph, "parameter") == ["0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias"]
    assert sorted(names(graph, "gradient")) == sorted(f"{n}.grad" for n in names(graph, "parameter"))
    by_name = {t["name"]: t for t in graph["tensors"]}
    assert by_name["0.weight"] == {
        "name": "0.weight", "bytes": 512, "role": "parameter", "stays": True, "shape": [16, 8], "dtype": "f32"}
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


@pytest.mark.parametrize(("mode", "sizes"), [("linear", (4,)), ("bilinear", (4, 4)), ("trilinear", (4, 4, 4)),
                                             ("bicubic", (4, 4)), ("nearest", (4, 4)), ("nearest-exact", (4,))])
def test_interpolation_is_one_op_and_its_backward_another(mode, sizes):
    class Raised(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(2, 3, *sizes))

        def forward(self, x):
            return nn.functional.interpolate(self.w * x, scale_factor=2, mode=mode)

    graph = captured(Raised, 2, 3, *sizes)
    found = [kind for kind in kinds(graph) if "upsample" in kind]
    assert len(found) == 2 and found[1] == f"{found[0]}_backward", found
    assert not any("index" in kind for kind in kinds(graph))


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


def test_threads_may_capture_at_once():
    def capture_often(graphs):
        for _ in range(4):
            graphs.append(capture(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4), lambda model, x: model(x).sum()).hash)

    found = [[], []]
    threads = [threading.Thread(target=capture_often, args=(graphs,)) for graphs in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] and len(found[0]) == 4
