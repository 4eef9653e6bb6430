"""Tensors of classes that wrap another tensor: a DTensor, of which each rank holds a part.

AOTAutograd takes such a tensor apart: the graph reads and makes the tensor within, which alone has memory.  So the bytes, the
storage and the gradient of a wrapper are those of that tensor, and it takes part in a plan under its own name and place.  This
holds for classes that wrap one tensor; those that wrap several have no one storage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ..compat.aot import SubclassGetAttrAOTInput, SubclassGetAttrAOTOutput
from ..compat.dispatch import is_traceable_wrapper_subclass

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def unwrapped(t: torch.Tensor) -> torch.Tensor:
    """The tensor with the memory of t: t itself, if it wraps none."""
    while type(t) not in _PLAIN and is_traceable_wrapper_subclass(t):
        within = _within(t)
        if len(within) != 1:
            return t
        (t,) = within
    return t


def wraps_several(t: torch.Tensor) -> bool:
    """Does t wrap several tensors, or none?"""
    return type(t) not in _PLAIN and is_traceable_wrapper_subclass(unwrapped(t))


def map_within(function: Callable[[torch.Tensor], torch.Tensor], t: Any) -> torch.Tensor:
    """function(t), or a wrapper like t around the function of what is within."""
    if type(t) in _PLAIN or not is_traceable_wrapper_subclass(t):
        return function(t)
    names, facts = t.__tensor_flatten__()
    within = {name: getattr(t, name) for name in names}
    made = {name: map_within(function, part) if isinstance(part, torch.Tensor) else part for name, part in within.items()}
    return type(t).__tensor_unflatten__(made, facts, t.shape, t.stride())


def name_by_wrapper(joint: fx.GraphModule) -> None:
    """Give the inputs and results of a joint graph that are the one tensor within a wrapper the wrapper's descriptor."""
    inputs = joint.graph.find_nodes(op="placeholder")
    own = _by_wrapper([(n.meta.get("desc"), n.meta.get("val")) for n in inputs])
    for node, descriptor in zip(inputs, own, strict=True):
        if descriptor is not None:
            node.meta["desc"] = descriptor
    (output,) = joint.graph.find_nodes(op="output")
    if "desc" in output.meta:
        made = [n.meta.get("val") if isinstance(n, fx.Node) else n for n in output.args[0]]
        output.meta["desc"] = _by_wrapper(list(zip(output.meta["desc"], made, strict=True)))


def is_of_gradient(descriptor: Any) -> bool:
    """Is a result a gradient, or another part of a wrapper around one?"""
    while isinstance(descriptor, SubclassGetAttrAOTOutput):
        descriptor = descriptor.base
    return hasattr(descriptor, "grad_of")


def _by_wrapper(described: list[tuple[Any, Any]]) -> list[Any]:
    """These descriptors of values, those of the one tensor within a wrapper replaced."""
    descriptors = [descriptor for descriptor, _ in described]
    while True:
        parts = {i for i, (_, value) in enumerate(described) if isinstance(value, torch.Tensor)
                 and isinstance(descriptors[i], (SubclassGetAttrAOTInput, SubclassGetAttrAOTOutput))}
        of = Counter(descriptors[i].base for i in parts)
        sole = {i for i in parts if of[descriptors[i].base] == 1}
        if not sole:
            return descriptors
        descriptors = [d.base if i in sole else d for i, d in enumerate(descriptors)]


def _within(t: Any) -> list[torch.Tensor]:
    return [part for part in (getattr(t, name) for name in t.__tensor_flatten__()[0]) if isinstance(part, torch.Tensor)]
