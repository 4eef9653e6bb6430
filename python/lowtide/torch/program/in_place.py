"""Operators that can overwrite one of their arguments with their result, bit-identically, and the variant to call.

Nearly all of them have an out variant: an overload that takes the storage of the result as an argument (`out`,
`grad_input`).  Called with a dying operand there, it is the same kernel on the same operands in the same order, so even the
payloads of NaNs are equal.  An out variant is used only if the device has a kernel for it; otherwise PyTorch computes the
result first and copies it, which saves no memory.  Operators without an out variant may have one that overwrites the first
argument (`relu_`).

Pointwise operators are found by their tag (except special functions, which matter to no network); the others are listed.  A
kernel that is not pointwise is listed only if it reads a row completely before it writes that row.
tests/python/test_torch_in_place.py checks each of them, for all number types and layouts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..compat.dispatch import OpOverload, has_kernel
from ..compat.tensors import is_dense
from ..tensors.operators import leaves, values
from ..tensors.storages import storage

aten = torch.ops.aten

_DEVICES = {"cpu": "CPU", "cuda": "CUDA"}  # device -> its dispatch key

_library = torch.library.Library("lowtide", "FRAGMENT")
_library.define("dropout_backward_(Tensor(a!) grad_output, Tensor mask, float scale) -> Tensor(a!)")


@torch.library.impl(_library, "dropout_backward_", "CompositeExplicitAutograd")
def _dropout_backward_(gradient: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """native_dropout_backward on a CPU (aten/src/ATen/native/Dropout.cpp), over the gradient."""
    return aten.mul_.Tensor(gradient.mul_(mask), scale)  # of half precision mul_.Scalar would round the scale first


@dataclass(frozen=True)
class OutVariant:
    """The variant of an operator that overwrites an argument with the result.

    function: the overload to call.  keyword: its argument for the output storage; None: it overwrites its first argument.
    over: the arguments that may be overwritten, by their names in the operator's schema.
    """

    function: Any
    keyword: str | None
    over: tuple[str, ...]

    def kwargs(self, written: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the function that writes over the argument `written`, of those of the operator."""
        return {**kwargs, self.keyword: written} if self.keyword else {**kwargs}


# operator -> its form, its keyword, and what it may overwrite
_LISTED: dict[Any, tuple[Any, str | None, tuple[str, ...]]] = {
    aten._softmax.default: (aten._softmax.out, "out", ("self",)),
    aten._softmax_backward_data.default:
        (aten._softmax_backward_data.out, "grad_input", ("grad_output", "output")),
    aten._log_softmax.default: (aten._log_softmax.out, "out", ("self",)),
    aten._log_softmax_backward_data.default:
        (aten._log_softmax_backward_data.out, "out", ("grad_output", "output")),
    aten.elu_backward.default: (aten.elu_backward.grad_input, "grad_input", ("grad_output", "self_or_result")),
    aten.leaky_relu_backward.default:
        (aten.leaky_relu_backward.grad_input, "grad_input", ("grad_output", "self")),
    aten.softplus_backward.default: (aten.softplus_backward.grad_input, "grad_input", ("grad_output", "self")),
    aten.hardsigmoid_backward.default:
        (aten.hardsigmoid_backward.grad_input, "grad_input", ("grad_output", "self")),
    aten.hardtanh_backward.default: (aten.hardtanh_backward.grad_input, "grad_input", ("grad_output", "self")),
    aten.hardshrink_backward.default:
        (aten.hardshrink_backward.grad_input, "grad_input", ("grad_out", "self")),
    aten.softshrink_backward.default:
        (aten.softshrink_backward.grad_input, "grad_input", ("grad_output", "self")),
    aten.hardswish.default: (aten.hardswish.out, "out", ("self",)),
    aten.mul.Scalar: (aten.mul.out, "out", ("self",)),  # mul_.Scalar rounds the number to half precision first
    aten.masked_fill.Scalar: (aten.masked_fill_.Scalar, None, ("self",)),
    aten.masked_fill.Tensor: (aten.masked_fill_.Tensor, None, ("self",)),
    aten.tril.default: (aten.tril.out, "out", ("self",)),
    aten.triu.default: (aten.triu.out, "out", ("self",)),
    aten.index_put.default: (aten.index_put_.default, None, ("self",)),
    aten.index_add.default: (aten.index_add.out, "out", ("self",)),
    aten.index_copy.default: (aten.index_copy.out, "out", ("self",)),
    aten.index_fill.int_Scalar: (aten.index_fill_.int_Scalar, None, ("self",)),
    aten.scatter.src: (aten.scatter.src_out, "out", ("self",)),
    aten.scatter.value: (aten.scatter.value_out, "out", ("self",)),
    aten.scatter_add.default: (aten.scatter_add.out, "out", ("self",)),
    aten.masked_scatter.default: (aten.masked_scatter_.default, None, ("self",)),
}
LISTED_FOR_CPU: dict[Any, tuple[Any, str | None, tuple[str, ...]]] = {
    aten.native_dropout_backward.default: (torch.ops.lowtide.dropout_backward_.default, None, ("grad_output",)),
}


@functools.cache
def out_variant_of(target: Any, device: str) -> OutVariant | None:
    """The variant of an operator that overwrites an argument, on that type of device; None if none is known."""
    if device not in _DEVICES or not isinstance(target, OpOverload):
        return None
    listed = _LISTED.get(target) or (LISTED_FOR_CPU.get(target) if device == "cpu" else None)
    if listed:
        return OutVariant(*listed)
    schema = target._schema
    if torch.Tag.pointwise not in target.tags or torch.Tag.nondeterministic_seeded in target.tags \
            or target.namespace != "aten" or any(word in schema.name for word in ("special_", "gamma")) \
            or schema.is_mutable or [str(r.type) for r in schema.returns] != ["Tensor"] \
            or has_kernel(target, "CompositeImplicitAutograd"):
        return None
    tensors = tuple(a.name for a in schema.arguments if str(a.type) in ("Tensor", "Optional[Tensor]"))
    for form, keyword in _forms(target):
        if keyword and has_kernel(form, _DEVICES[device]):
            return OutVariant(form, keyword, tensors)
    first = schema.arguments[0].name
    return next((OutVariant(form, None, (first,)) for form, keyword in _forms(target) if not keyword), None)


def _forms(target: OpOverload) -> list[tuple[OpOverload, str | None]]:
    """The overloads of an operator with the same arguments that write to one more of them, whose keyword is given, or
    over the first one."""
    asked = [(a.name, str(a.type)) for a in target._schema.arguments]
    name = target._schema.name.removeprefix("aten::")
    found: list[tuple[OpOverload, str | None]] = []
    for packet in filter(None, (getattr(aten, name), getattr(aten, f"{name}_", None))):
        for overload in packet.overloads():
            form = getattr(packet, overload)
            written = [a for a in form._schema.arguments if a.is_out]
            taken = [(a.name, str(a.type)) for a in form._schema.arguments if not a.is_out]
            if taken != asked or len(form._schema.returns) != 1:
                continue
            if len(written) == 1:
                found.append((form, written[0].name))
            elif not written and packet._qualified_op_name.endswith("_") and form._schema.is_mutable:
                found.append((form, None))
    return found


def overwritable(node: fx.Node, arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The arguments over which a node of the joint graph may write its result, with their fake tensors.

    arguments: the node's, by the names of its operator's schema.  Whether somebody reads one of them later, or holds
    it, is asked elsewhere.
    """
    result = node.meta.get("val")
    if not isinstance(result, torch.Tensor):
        return {}
    variant = out_variant_of(node.target, result.device.type)
    read = [storage(t) for t in leaves(values(list(arguments.values())))]
    found: dict[str, torch.Tensor] = {}
    for name in variant.over if variant else ():
        operand = values(arguments[name])
        if isinstance(operand, torch.Tensor) and read.count(storage(operand)) == 1 and is_laid_out_as(operand, result):
            found[name] = operand
    return found


def is_laid_out_as(operand: torch.Tensor, result: torch.Tensor) -> bool:
    """Is the operand the whole of its storage, with every element where the result would have it?

    Complex numbers never are: products of theirs differ in the last bit with the loop that a kernel chooses, and it may
    choose another one for a result that is there already.
    """
    return ((operand.dtype, operand.device, operand.shape, operand.stride(), operand.layout)
            == (result.dtype, result.device, result.shape, result.stride(), result.layout)
            and operand.numel() > 0 and operand.storage_offset() == result.storage_offset() == 0
            and operand.untyped_storage().nbytes() == operand.numel() * operand.element_size()
            and result.untyped_storage().nbytes() == operand.untyped_storage().nbytes()
            and is_dense(operand)
            and not (operand.is_complex() or operand.is_neg() or result.is_neg()))
