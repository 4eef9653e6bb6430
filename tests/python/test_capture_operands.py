"""A captured graph says what each op does, and over which operands it may write."""

import torch
import torch.nn.functional as F
from capture_support import Cnn, Mlp, captured, graph_of
from graph_rules import of_kind
from torch import nn


def named(graph, entries):
    return {entry["argument"]: graph["tensors"][entry["tensor"]]["name"] for entry in entries}


def pairs(graph, kind):
    """Operands by their arguments' names that ops of a kind may overwrite, for each op."""
    found = []
    for op in of_kind(graph, kind):
        inputs = {t for t, _ in op.get("in_place", ())}
        found.append({entry["argument"] for entry in op["operands"] if entry["tensor"] in inputs})
    return found


def test_operands_are_as_the_op_sees_them():
    graph = captured(lambda: Mlp(0.5), 32, 8)
    first = of_kind(graph, "aten.addmm")[0]
    operands = {entry["argument"]: entry for entry in first["operands"]}
    assert named(graph, first["operands"]) == {"self": "0.bias", "mat1": "input0", "mat2": "0.weight"}
    weight = graph["tensors"].index(next(t for t in graph["tensors"] if t["name"] == "0.weight"))
    assert operands["mat2"] == {"argument": "mat2", "tensor": weight, "shape": [8, 16], "strides": [1, 8],
                                "dtype": "f32"}
    assert first["results"] == [{"tensor": first["outputs"][0], "shape": [32, 16], "strides": [16, 1], "dtype": "f32"}]
    assert first["arguments"] == {"beta": 1, "alpha": 1}
    mask, apply = of_kind(graph, "lowtide.dropout_mask")[0], of_kind(graph, "lowtide.dropout_apply")[0]
    assert mask["arguments"] == apply["arguments"] == {"p": 0.5}
    assert set(named(graph, apply["operands"])) == {"input", "mask"}
    assert {entry["dtype"] for entry in mask["results"]} == {"bool"}


def test_lists_of_tensors_and_literals_of_every_kind():
    def step(model, x):
        y = torch.cat([model(x), x, x * 2], 1).masked_fill(x.new_ones(4, 24, dtype=torch.bool).tril(), -float("inf"))
        return torch.logsumexp(y.to(torch.bfloat16), 1).nan_to_num(neginf=0.0).sum()

    graph = captured(lambda: nn.Linear(8, 8), 4, 8, loss=step)
    (cat,) = of_kind(graph, "aten.cat")
    assert [(entry["argument"], entry["index"]) for entry in cat["operands"]] == [("tensors", i) for i in range(3)]
    assert cat["arguments"] == {"dim": 1}
    assert of_kind(graph, "aten.masked_fill")[0]["arguments"] == {"value": {"float": "-inf"}}
    cast = of_kind(graph, "aten._to_copy")[0]["arguments"]
    assert cast["dtype"] == {"dtype": "bf16"} and cast["non_blocking"] is False and cast["layout"] is None


def test_tensors_that_the_caller_holds_stay():
    graph = captured(Cnn, 2, 3, 8, 8)
    made = {t for op in graph["ops"] for t in op["outputs"]}
    assert all(tensor.get("stays", False) == (t not in made) for t, tensor in enumerate(graph["tensors"]))


def test_ops_that_may_write_over_an_operand():
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm, self.head = nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 50)

        def forward(self, x):
            y = self.norm(self.embed(x))
            return self.head(y + F.gelu(y))

    inputs = (torch.zeros(4, 8, dtype=torch.int64),)
    graph = graph_of(lambda: (Head(), inputs, lambda m, x: F.cross_entropy(m(x).flatten(0, 1), x.flatten())))
    assert pairs(graph, "aten._log_softmax") == [{"self"}]
    assert pairs(graph, "aten._log_softmax_backward_data") == [{"grad_output", "output"}]
    assert pairs(graph, "aten.gelu_backward") == [{"grad_output", "self"}]
    assert {"self", "other"} in pairs(graph, "aten.add")
    for kind in ("aten.embedding", "aten.native_layer_norm", "aten.addmm", "aten.mm", "lowtide.barrier"):
        assert not any(op.get("in_place") for op in of_kind(graph, kind))

def test_tensors_that_others_may_see_are_not_overwritten():
    """Inputs, parameters, results, what an operator of the user's own has read or made."""
    kept = []

    @torch.library.custom_op("lowtide_tests::keep", mutates_args=())
    def keep(x: torch.Tensor) -> torch.Tensor:
        kept.append(x)
        return x * 2

    @keep.register_fake
    def _(x):
        return torch.empty_like(x)

    keep.register_autograd(lambda context, gradient: 2 * gradient)

    def step(model, x):
        a = torch.relu(x)  # of an input
        b = torch.relu(model(a))
        c = torch.relu(b.detach())  # the caller gets b
        d = torch.tanh(torch.exp(model(x)) + keep(torch.exp(x)))
        e = torch.exp(model(x))
        f = torch.sigmoid(keep(e))
        g = torch.sigmoid(e)
        return (b.sum() + c.sum() + d.sum() + f.sum() + g.sum(), b)

    graph = captured(lambda: nn.Linear(8, 8), 4, 8, loss=step)
    tensors = graph["tensors"]
    over = {tensors[t]["name"] for op in graph["ops"] for t, _ in op.get("in_place", ())}
    assert not over & {"input0", "weight", "bias", "relu_1"} and not any("keep" in name for name in over)
    sigmoids = of_kind(graph, "aten.sigmoid")
    assert len(sigmoids) == 2 and not any(op.get("in_place") for op in sigmoids)
    assert of_kind(graph, "aten.exp")[0].get("in_place")
