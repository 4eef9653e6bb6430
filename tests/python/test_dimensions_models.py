"""Models captured at one batch and at a third of it: what carries the batch is, op by op, a part of the other."""

import os

import pytest

torch = pytest.importorskip("torch")

from dimension_models import MODELS
from lowtide.torch import capture
from torch_zoo import ZOO

SCALE = int(os.environ.get("LOWTIDE_TEST_SCALE", "1"))
FEW = ["gpt_untied", "vit", "resnet_batch", "experts", "pairs", "encoder_inside", "losses"]
# Of the zoo of other tests those whose inputs begin with the batch, and whose modules take any.
BATCHED = ["gpt_dropout", "dropout_mlp", "cnn", "mixer", "unet", "encoder", "cells", "buffers", "attention_dropout",
           "spectral", "autocast", "frozen_norm", "norm_twice", "norms", "half", "group_norm", "noise"]


def graphs(make, dim):
    """Graphs of a model at a batch of six and of two, and the axes of the first's inputs."""
    large, small = (capture(*make(b), name=f"batch {b}") for b in (6, 2))
    inputs = [t.index for t in large.tensors if t.name.startswith("input") and t.producer is None and t.shape]
    return large, small, [(t, dim) for t in inputs]


def of_zoo(name):
    def make(batch):
        model, inputs = ZOO[name]()
        return model, tuple(x[:1].expand(batch, *x.shape[1:]).clone() for x in inputs)
    return make


def layout(entry):
    """How an op sees a tensor; of dimensions of one index the stride says nothing."""
    strides = [s for s, n in zip(entry["strides"], entry["shape"], strict=True) if n > 1]
    return entry["argument"], entry.get("index"), entry["shape"], strides, entry["offset"], entry["dtype"]


def differences(large, small, axes):
    """(op, what differs) of ops that carry the axes, or are not reached, and are not the small graph's."""
    reach = large.dimensions(axes, slices=2)
    assert large.num_ops == small.num_ops
    found = []
    breaks = any(entry and not entry["carries"] and entry["cause"] != "sum" and op.kind != "lowtide.barrier"
                 for op, entry in zip(large.ops, reach["ops"], strict=True))
    for op, part, entry in zip(large.ops, small.ops, reach["ops"], strict=True):
        assert op.kind == part.kind
        if entry is None and not breaks:
            said = {"operands": op.operands, "results": op.results, "arguments": op.arguments}
        elif entry and entry["carries"] and not entry.get("before"):
            said = entry["part"]
        else:
            continue
        for what in ("operands", "results"):
            pairs = zip(said[what], getattr(part, what), strict=True)
            found += [(op.index, op.kind, what, layout(a), layout(b)) for a, b in pairs if layout(a) != layout(b)]
        for name, value in part.arguments.items():
            # A divisor that is the count of all stays the whole's; a mean over targets is divided by the whole's.
            scalar = name in ("other", "value") and isinstance(value, (int, float))
            if not scalar and not (name == "reduction" and entry["weight"] == "total") and said["arguments"][name] != value:
                found.append((op.index, op.kind, name, said["arguments"][name], value))
    return reach, found


@pytest.mark.parametrize("name", MODELS if SCALE >= 10 else FEW)
def test_parts_are_the_model_at_a_smaller_batch(name):
    make, dim, least = MODELS[name]
    large, small, axes = graphs(make, dim)
    reach, found = differences(large, small, axes)
    assert not found
    share = 100 * sum(bool(entry and entry["carries"]) for entry in reach["ops"]) / large.num_ops
    assert share >= least
    assert name not in ("resnet_batch", "pairs", "lstm") or share < 75


@pytest.mark.parametrize("name", BATCHED if SCALE >= 10 else ["norms"])
def test_other_models_too(name):
    large, small, axes = graphs(of_zoo(name), 0)
    reach, found = differences(large, small, axes)
    assert not found
    assert any(entry and entry["carries"] for entry in reach["ops"])
