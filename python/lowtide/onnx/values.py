"""What is known of the values of a graph before it runs: number type, shape, and small constants themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto, helper

from .errors import ModelError
from .number_types import bytes_of, check_type

SMALL = 4096  # elements of a constant whose numbers are looked at: shapes, scales, axes


@dataclass(frozen=True)
class Value:
    """A tensor.  shape: its extents, None where one is not known; None without even a rank.  constant: known when the model is
    loaded.  data: the numbers of a small constant, as a TensorProto.
    """

    dtype: int
    shape: tuple[int | None, ...] | None
    constant: bool = False
    data: Any = None

    @property
    def known(self) -> bool:
        return self.dtype != TensorProto.UNDEFINED and self.shape is not None and None not in self.shape

    @property
    def extents(self) -> list[int]:
        """The shape of a known value."""
        assert self.known and self.shape is not None
        return [int(extent or 0) for extent in self.shape]

    @property
    def elements(self) -> int:
        return math.prod(self.extents)

    @property
    def bytes(self) -> int:
        return bytes_of(self.dtype, self.extents)

    def type_proto(self) -> Any:
        """The type as onnx has it; unknown extents are left out."""
        return helper.make_tensor_type_proto(self.dtype, None if self.shape is None else list(self.shape))


def of_tensor(tensor: Any) -> Value:
    """The value of a tensor that the model holds.  Its numbers are looked at if it is small, and in the file itself."""
    inside = tensor.data_location != TensorProto.EXTERNAL
    small = inside and math.prod(tensor.dims) <= SMALL
    return Value(tensor.data_type, tuple(int(d) for d in tensor.dims), constant=True, data=tensor if small else None)


def of_type(proto: Any, name: str, dims: Mapping[str, int]) -> Value:
    """The value of a declared type.  dims: extents by the name that the model gives to a dimension.

    Raises ModelError for what is no tensor.
    """
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        return of_type(proto.optional_type.elem_type, name, dims)
    if kind not in ("tensor_type", None):
        raise ModelError(f"'{name}' is a {kind.removesuffix('_type').replace('_', ' ')}, not a tensor, so its bytes are not known: "
                         "plan the part of the model that computes on tensors")
    tensor = proto.tensor_type
    if kind is None or not tensor.HasField("shape"):
        return Value(tensor.elem_type, None)
    return Value(tensor.elem_type, tuple(_extent(d, dims) for d in tensor.shape.dim))


def _extent(dim: Any, dims: Mapping[str, int]) -> int | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None  # some exporters write -1 for what is open
    return dims.get(dim.dim_param) if dim.dim_param else None


def with_dims(value: Value, name: str, dims: Mapping[str, int]) -> Value:
    """The value with what the user has set of its unknown extents: "NAME.AXIS"."""
    if value.known or not dims:
        return value
    shape = value.shape
    if shape is None:
        set_ = sum(key.rpartition(".")[0] == name for key in dims)
        shape = (None,) * set_ if set_ else None
    filled = None if shape is None else tuple(dims.get(f"{name}.{i}") if n is None else n for i, n in enumerate(shape))
    return Value(value.dtype, filled, value.constant, value.data)


def merged(a: Value, b: Value) -> Value:
    """What either knows of one value; `a` where they differ."""
    dtype = a.dtype or b.dtype
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        shape = a.shape if a.shape is not None else b.shape
    else:
        shape = tuple(x if x is not None else y for x, y in zip(a.shape, b.shape))
    return Value(dtype, shape, a.constant, a.data)


def larger(a: Value, b: Value) -> Value:
    """A value that either of two branches makes: the larger extents, so that the bytes are a limit."""
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return a if a.shape == b.shape else Value(a.dtype, None)
    shape = tuple(None if x is None or y is None else max(x, y) for x, y in zip(a.shape, b.shape))
    return Value(a.dtype, shape)


def check_known(value: Value, name: str, maker: str) -> None:
    """Raises ModelError unless the bytes of a value are known.  maker: what makes it, in words."""
    what = f"'{name}', which {maker}," if maker else f"'{name}'"
    if value.dtype == TensorProto.UNDEFINED:
        raise ModelError(f"{what} has no number type that can be inferred: add its type and shape to the model (value_info)")
    check_type(value.dtype, what.rstrip(","))
    if value.shape is None:
        raise ModelError(f"{what} has no shape that can be inferred: set all its extents, as in --dim {name}=1x128 "
                         f"(dims={{'{name}': (1, 128)}})")
    if any(extent is not None and extent < 0 for extent in value.shape):
        raise ModelError(f"{what} has a negative extent, {list(value.shape)}: the file is damaged")
    if value.known and value.bytes >= 2**63:
        raise ModelError(f"{what} has {value.bytes} bytes, more than any memory: check its extents, {list(value.shape)}")
    missing = [i for i, extent in enumerate(value.shape) if extent is None]
    if missing:
        raise ModelError(f"{what} has no known extent in {_places(missing)} of {len(value.shape)}: set "
                         f"{' '.join(f'--dim {name}.{i}=N' for i in missing)} (dims={{'{name}.{missing[0]}': N}}); where it depends on "
                         "the data, the largest that you expect")


def _places(axes: Sequence[int]) -> str:
    return ("dimension " if len(axes) == 1 else "dimensions ") + ", ".join(map(str, axes))
