"""Gives fake results the layouts and types that the device's kernels really return.

A fake kernel may return other number types or strides than the real one.  For example, PyTorch's fake batch norm, group
norm and layer norm of half-precision inputs with single-precision weights (as under autocast) return statistics in half
precision, the CPU's kernels in single precision.  Then a plan would count too few bytes.  Readers of such a tensor would
be measured with the wrong type: they might refuse it, or need another workspace.  If operands differ in layout, many fake
kernels return another order of dimensions than the real one: the product of an expanded scalar and a permuted tensor in
half precision, the gradients of losses and of layer norms.  So kernels that may be wrong run once on made-up numbers
before a joint graph is lowered, and the nodes of the graph get the types and strides of the real results.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from ..compat import pytree
from ..compat.counting import is_counted
from ..compat.dispatch import OpOverload
from ..device.identity import untraced
from ..pricing.costs import key_of, real_arguments
from ..tensors.operators import arguments_of, fake_mode_of, is_effect, leaves, operand, operator_of, values
from ..tensors.storages import storage

aten = torch.ops.aten
_COPIES = (aten.clone.default, aten._to_copy.default, aten.copy.default)
_Layout = tuple[tuple[int, ...], torch.dtype]
_known: dict[tuple[str, str], list[_Layout | None] | None] = {}  # device, kernel -> strides and type of each result


def correct_types(joint: fx.GraphModule, changed: Iterable[fx.Node] = ()) -> None:
    """Correct the fake results of joint's nodes, and of all that follows from them.  changed: nodes whose results are no
    longer what the tracer said."""
    corrected = set(changed)
    for node in joint.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            if node.args[0] in corrected:
                node.meta["val"] = node.args[0].meta["val"][node.args[1]]
                corrected.add(node)
            continue
        if not isinstance(operator_of(node.target, node.args), OpOverload):
            continue
        if not corrected.isdisjoint(node.all_input_nodes):
            follows = propagate(node)
            if not follows and node.target is aten.view.default:
                _view_a_copy(node)
                follows = propagate(node)
            if follows:
                corrected.add(node)
        if isinstance(node.target, OpOverload) and not is_effect(node, arguments_of(node)):
            made = as_really_made(node.target, values(node.args), values(node.kwargs), node.meta.get("val"))
            if made is not None:
                node.meta["val"] = made
                corrected.add(node)


def as_really_made(target: Any, args: Any, kwargs: Any, made: Any) -> Any:
    """The fake kernel's result with the strides and number types of the real kernel; None if there is nothing to correct."""
    return _corrected(target, args, kwargs, made) if _may_be_wrong(target, leaves((args, kwargs)), leaves(made)) else None


def propagate(node: fx.Node) -> bool:
    """Run a node's fake kernel on its arguments as they are by now."""
    mode = next((t.fake_mode for t in leaves(node.meta.get("val")) if hasattr(t, "fake_mode")), None)
    if mode is None:
        return False
    try:
        with mode:
            target: Any = node.target
            node.meta["val"] = target(*values(node.args), **values(node.kwargs))
    except Exception:  # then it stays what the tracer said
        return False
    return True


def _view_a_copy(node: fx.Node) -> None:
    """Have it view a copy of what, as it really lies, has no such view: as `reshape` does, which the tracer took for a view."""
    source = operand(node)
    with node.graph.inserting_before(node), fake_mode_of(source.meta["val"]):
        copy = node.graph.call_function(aten.clone.default, (source,), {"memory_format": torch.contiguous_format})
        copy.meta = node.meta | {"val": aten.clone.default(source.meta["val"], memory_format=torch.contiguous_format)}
    node.replace_input_with(source, copy)


def _may_be_wrong(target: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    """Does it mix floating-point types, or layouts, in a way that its fake kernel may not know?  Casts and pointwise
    kernels follow the rules of promotion; operators of other libraries are left alone."""
    if target.namespace != "aten" or target.is_view or target._schema.is_mutable:
        return False
    if _mixes_layouts(target, given, made):
        return True
    if target is aten._to_copy.default or torch.Tag.pointwise in target.tags:
        return False
    return sum(dtype.is_floating_point for dtype in {t.dtype for t in (*given, *made)}) > 1


def _mixes_layouts(target: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    """Do operands lie in such ways that the kernel may lay its result out otherwise than its fake kernel says?

    Not if they all lie as their elements are read, or if a pointwise kernel finds one order in all.  Products and
    convolutions, which cost something, say what is so; copies are told.
    """
    like = [t for t in given if made and t.shape == made[0].shape]
    if not like or target in _COPIES or is_counted(target.overloadpacket):
        return False
    orders = {tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1) for t in (*like, made[0])}
    dense = [t for t in (*like, made[0]) if not _is_expanded(t)]
    if len(dense) > 1 and all(t.is_contiguous() for t in dense):
        return False
    return len(orders) > 1 or torch.Tag.pointwise not in target.tags


def _is_expanded(t: torch.Tensor) -> bool:
    return any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape, strict=True))


def _corrected(target: Any, args: Any, kwargs: Any, made: Any) -> Any:
    flat, tree = pytree.tree_flatten(made)
    given = set(map(storage, leaves((args, kwargs))))
    fakes = [t for t in flat if isinstance(t, torch.Tensor)]
    if not fakes or not given.isdisjoint(map(storage, fakes)):
        return None
    device = fakes[0].device
    key = (str(device), key_of(target, args, kwargs))
    if key not in _known:
        _known[key] = _run(target, args, kwargs, device)
    layouts = _known[key]
    if layouts is None or len(layouts) != len(flat):
        return None
    changed = False
    for i, (fake, real) in enumerate(zip(flat, layouts, strict=True)):
        if isinstance(fake, torch.Tensor) and real and (fake.stride(), fake.dtype) != real:
            with fake_mode_of(fake):
                flat[i] = torch.empty_strided(fake.shape, real[0], dtype=real[1], device=fake.device)
            changed = True
    return pytree.tree_unflatten(flat, tree) if changed else None


def _run(target: Any, args: Any, kwargs: Any, device: torch.device) -> list[_Layout | None] | None:
    with untraced(device):
        try:
            args, kwargs = real_arguments(target, args, kwargs, device)
            made = pytree.tree_leaves(target(*args, **kwargs))
        except Exception:  # any kernel may refuse made-up numbers
            return None
        return [(t.stride(), t.dtype) if isinstance(t, torch.Tensor) else None for t in made]
