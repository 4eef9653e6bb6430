"""Distinguishes inputs that are views of one storage.

`tokens, targets = batch[:, :-1], batch[:, 1:]` are two inputs in one storage, and the next batch may have them in two:
nothing guards how inputs share.  A tensor of a graph is one storage, so a part that reads a slice of `targets` would find
it by its place beside `tokens`.  Each such input but the first gets a fake storage of its own before the graph is lowered.
The plan counts their shared bytes more than once, which keeps the budget.

Parameters keep their storages: a flat buffer of all of them is the same one in each step, and is counted once.
"""

from __future__ import annotations

import operator
from collections.abc import Container

import torch
from torch import fx

from ..compat.dispatch import without_torch_dispatch
from ..compat.fake import FakeTensor
from ..tensors.operators import leaves
from ..tensors.storages import is_dense, storage
from .real_types import propagate


def tell_apart(joint: fx.GraphModule, trained: Container[int]) -> None:
    """Give each input of joint that shares its storage with an earlier one a storage of its own, and the views of it too.

    trained: the positions of inputs that get a gradient, which keep theirs.
    """
    seen: set[int] = set()
    apart: dict[fx.Node, set[int]] = {}  # what has another storage now -> those that it had
    for i, node in enumerate(joint.graph.find_nodes(op="placeholder")):
        t = node.meta.get("val")
        if not is_dense(t) or not isinstance(t, FakeTensor):
            continue
        if storage(t) not in seen:
            seen.add(storage(t))
        elif i not in trained:
            apart[node] = {storage(t)}
            with without_torch_dispatch():
                alone = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
                node.meta["val"] = FakeTensor(t.fake_mode, alone, t.fake_device)
    for node in joint.graph.nodes if apart else ():
        before = set().union(*(apart[source] for source in node.all_input_nodes if source in apart))
        if before and node.op == "call_function" and not before.isdisjoint(map(storage, leaves(node.meta.get("val")))):
            if node.target is operator.getitem:
                node.meta["val"] = node.args[0].meta["val"][node.args[1]]
            else:
                propagate(node)
            apart[node] = before
