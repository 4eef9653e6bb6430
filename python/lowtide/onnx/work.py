"""What a node computes: operations, and the bytes that it moves, for the roofline model of a device."""

from __future__ import annotations

import math
from typing import Any

import lowtide

from ..frontend.roofline import kernel_ns
from .number_types import name_of
from .values import Value

_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "QLinearConv", "FusedConv", "ConvTranspose", "DeformConv"})
_PRODUCTS = frozenset({"MatMul", "MatMulInteger", "QLinearMatMul", "FusedMatMul", "TransposeMatMul", "MatMulIntegerToFloat",
                       "DynamicQuantizeMatMul", "Gemm", "QGemm", "FusedGemm"})
_RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}  # gates


def operations(node: Any, given: list[Value], made: list[Value]) -> int:
    """Operations of matrix products and convolutions, a multiply-add as two; one for each number that other nodes make."""
    out = sum(value.elements for value in made)
    kind = node.op_type
    if kind in _CONVOLUTIONS and len(given) > 1:
        weight = given[3 if kind == "QLinearConv" and len(given) > 3 else 1].extents
        if kind == "ConvTranspose":
            return 2 * given[0].elements * math.prod(weight[1:])
        return 2 * made[0].elements * math.prod(weight[1:])
    if kind in _PRODUCTS and given and given[0].extents:
        transposed = any(a.name == "transA" and a.i for a in node.attribute)
        return 2 * made[0].elements * given[0].extents[-2 if transposed and len(given[0].extents) > 1 else -1]
    if kind in _RECURRENT and len(given) > 2:
        steps = math.prod(given[0].extents[:2])
        return 2 * steps * (given[1].elements + given[2].elements)
    if kind == "Attention" and len(given) > 2 and given[0].extents and given[1].extents:
        return 4 * given[0].elements * given[1].extents[-2]
    if kind == "Einsum":
        return 2 * _einsum(node, given)
    return out


def _einsum(node: Any, given: list[Value]) -> int:
    """The product of all extents of an equation, an upper limit of what is multiplied."""
    equation = next((a.s.decode() for a in node.attribute if a.name == "equation"), "").replace(" ", "")
    extents: dict[str, int] = {}
    for term, value in zip(equation.split("->")[0].split(","), given):
        if len(term) == len(value.extents):
            extents.update(zip(term, value.extents))
    return math.prod(extents.values()) if extents else sum(value.elements for value in given)


def nanoseconds(device: lowtide.Device, count: int, given: list[Value], made: list[Value]) -> int:
    """The roofline time of a node that does so many operations."""
    moved = sum(value.bytes for value in {id(value): value for value in [*given, *made]}.values())
    dtype = name_of((made or given)[0].dtype) if made or given else "f32"
    floats = [name for name in (name_of(value.dtype) for value in [*given, *made]) if name.startswith(("f", "bf"))]
    return int(kernel_ns(device, count, floats[0] if floats else dtype, moved))
