"""Inputs that are views of one storage, told apart.

`tokens, targets = batch[:, :-1], batch[:, 1:]` are two inputs in one storage, and the next batch may have them in two:
nothing guards how inputs share.  A tensor of a graph is one storage, so a part that reads a slice of `targets` would find
it by its place beside `tokens`.  Each such input but the first gets a fake storage of its own before the graph is lowered.
The plan counts their shared bytes more than once, which keeps the budget.

Parameters keep their storages: a flat buffer of all of them is the same one in each step, and is counted once.
"""

from __future__ import annotations

from collections.abc import Container

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from ..storages import is_dense, storage


def tell_apart(joint: fx.GraphModule, trained: Container[int]) -> set[fx.Node]:
    """Give each input of joint that shares its storage with an earlier one a storage of its own; returns these inputs.

    trained: the positions of inputs that get a gradient.  The nodes that view a returned input have to be propagated anew.
    """
    seen: set[int] = set()
    told: set[fx.Node] = set()
    for i, node in enumerate(joint.graph.find_nodes(op="placeholder")):
        t = node.meta.get("val")
        if not is_dense(t) or not isinstance(t, FakeTensor):
            continue
        if storage(t) not in seen:
            seen.add(storage(t))
        elif i not in trained:
            with torch._C._DisableTorchDispatch():
                alone = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
                node.meta["val"] = FakeTensor(t.fake_mode, alone, t.fake_device)
            told.add(node)
    return told
