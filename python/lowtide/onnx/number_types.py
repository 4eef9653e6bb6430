"""The number types of ONNX: bits of an element, and the names that graph files have for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnx import TensorProto

from .errors import ModelError

# By the name in TensorProto.DataType, since older versions of onnx lack the newest types.
_TYPES = {
    "FLOAT": (32, "f32"), "DOUBLE": (64, "f64"), "FLOAT16": (16, "f16"), "BFLOAT16": (16, "bf16"),
    "FLOAT8E4M3FN": (8, "f8e4m3fn"), "FLOAT8E4M3FNUZ": (8, "f8e4m3fnuz"), "FLOAT8E5M2": (8, "f8e5m2"),
    "FLOAT8E5M2FNUZ": (8, "f8e5m2fnuz"), "FLOAT8E8M0": (8, "f8e8m0fnu"), "FLOAT4E2M1": (4, "f4e2m1"),
    "INT64": (64, "i64"), "INT32": (32, "i32"), "INT16": (16, "i16"), "INT8": (8, "i8"), "INT4": (4, "i4"), "INT2": (2, "i2"),
    "UINT64": (64, "u64"), "UINT32": (32, "u32"), "UINT16": (16, "u16"), "UINT8": (8, "u8"), "UINT4": (4, "u4"),
    "UINT2": (2, "u2"), "BOOL": (8, "bool"), "COMPLEX64": (64, "c64"), "COMPLEX128": (128, "c128")}

_BY_NUMBER = {number: _TYPES[name] for name, number in TensorProto.DataType.items() if name in _TYPES}


def check_type(number: int, value: str) -> None:
    """Raises ModelError unless elements of this type have a size.  value: who has it, in words."""
    if number in _BY_NUMBER:
        return
    if number == TensorProto.STRING:
        raise ModelError(f"{value} holds strings, whose bytes depend on the data: give the model token numbers instead, and plan "
                         "what is behind them")
    raise ModelError(f"{value} has the number type {number}, which is none of those that onnx defines and Lowtide knows")


def bits_of(number: int) -> int:
    """The bits of an element."""
    return _BY_NUMBER[number][0]


def name_of(number: int) -> str:
    """The name of a number type in graph files."""
    return _BY_NUMBER[number][1]


def bytes_of(number: int, shape: Sequence[int]) -> int:
    """The bytes of a tensor; elements below a byte are packed."""
    return (math.prod(shape) * bits_of(number) + 7) // 8
