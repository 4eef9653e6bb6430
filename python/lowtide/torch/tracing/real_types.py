"""Fake results as the device's kernels really make them.

A fake kernel may say other number types or strides than its real one: PyTorch's fake batch norm, group norm and layer
norm of half-precision inputs with single-precision weights (what autocast makes) give statistics in half precision,
the CPU's in single.  A plan would count too few bytes, and the kernels that read such a tensor would be measured on
another than they get: they may then refuse it, or need no scratch where they do.  So what may be wrong is run once on
made-up numbers before a joint graph is lowered, and what comes out is what its nodes say from then on.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from ..costs import key_of, materialise, untraced
from ..operators import arguments_of, is_effect, leaves, operator_of, values
from ..storages import storage

aten = torch.ops.aten
_Layout = tuple[tuple[int, ...], torch.dtype]
_known: dict[tuple[str, str], list[_Layout | None] | None] = {}  # device, kernel -> strides and type of each result


def correct_types(joint: fx.GraphModule) -> None:
    """Correct the fake results of joint's nodes, and of all that follows from them."""
    corrected: set[fx.Node] = set()
    for node in joint.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            if node.args[0] in corrected:
                node.meta["val"] = node.args[0].meta["val"][node.args[1]]
                corrected.add(node)
            continue
        if not isinstance(operator_of(node.target, node.args), torch._ops.OpOverload):
            continue
        if not corrected.isdisjoint(node.all_input_nodes) and _propagate(node):
            corrected.add(node)
        if isinstance(node.target, torch._ops.OpOverload) and _may_be_wrong(node) and _correct(node):
            corrected.add(node)


def _propagate(node: fx.Node) -> bool:
    """Run a node's fake kernel on its arguments as they are by now."""
    mode = next((t.fake_mode for t in leaves(node.meta.get("val")) if hasattr(t, "fake_mode")), None)
    if mode is None:
        return False
    try:
        with mode:
            node.meta["val"] = node.target(*values(node.args), **values(node.kwargs))
    except Exception:  # noqa: BLE001: then it stays what the tracer said
        return False
    return True


def _may_be_wrong(node: fx.Node) -> bool:
    """Does it mix floating-point types in a way that its fake kernel may not know?  Casts and pointwise kernels
    follow the rules of promotion; effects are left alone, and so are operators of other libraries."""
    target = node.target
    if target.namespace != "aten" or target is aten._to_copy.default or torch.Tag.pointwise in target.tags \
            or target.is_view or target._schema.is_mutable or is_effect(node, arguments_of(node)):
        return False
    types = {t.dtype for t in leaves((values((node.args, node.kwargs)), node.meta.get("val")))}
    return sum(dtype.is_floating_point for dtype in types) > 1


def _correct(node: fx.Node) -> bool:
    """Give a node's results the strides and number types that its kernel makes; was there anything to correct?"""
    flat, tree = pytree.tree_flatten(node.meta["val"])
    args, kwargs = values(node.args), values(node.kwargs)
    given = set(map(storage, leaves((args, kwargs))))
    fakes = [t for t in flat if isinstance(t, torch.Tensor)]
    if not fakes or not given.isdisjoint(map(storage, fakes)):
        return False
    device = fakes[0].device
    key = (str(device), key_of(node.target, args, kwargs))
    if key not in _known:
        _known[key] = _run(node.target, args, kwargs, device)
    made = _known[key]
    if made is None or len(made) != len(flat):
        return False
    changed = False
    for i, (fake, real) in enumerate(zip(flat, made, strict=True)):
        if isinstance(fake, torch.Tensor) and real and (fake.stride(), fake.dtype) != real:
            with fake.fake_mode:
                flat[i] = torch.empty_strided(fake.shape, real[0], dtype=real[1], device=fake.device)
            changed = True
    if changed:
        node.meta["val"] = pytree.tree_unflatten(flat, tree)
    return changed


def _run(target: Any, args: Any, kwargs: Any, device: torch.device) -> list[_Layout | None] | None:
    with untraced(device):
        try:
            args, kwargs = materialise((args, kwargs), device)
            made = pytree.tree_leaves(target(*args, **kwargs))
        except Exception:  # noqa: BLE001: any kernel may refuse made-up numbers
            return None
        return [(t.stride(), t.dtype) if isinstance(t, torch.Tensor) else None for t in made]
