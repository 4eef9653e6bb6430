"""What a group costs: floating-point operations from shapes, bytes that it moves, and the time of both on a named device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lowtide

from ...frontend.price import Price
from ...frontend.roofline import DEVICES, kernel_ns
from ..compat import inner_jaxprs
from ..tracing.equations import Value
from .groups import Group
from .measured import Measured
from .workspace import workspace_on_cpu

_DTYPES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "i8", "uint8": "i8"}


class Roofline:
    """The price of groups on a device's data sheet (frontend/price.py)."""

    real = False

    def __init__(self, device: lowtide.Device) -> None:
        self._device = device

    def prepare(self, kernels: Sequence[Group]) -> None:
        """Nothing is measured."""

    def __call__(self, kernel: Group) -> tuple[int, int, list[int]]:
        workspace = max(map(workspace_on_cpu, kernel.equations)) if self._device.name == "cpu" else 0
        return kernel_ns(self._device, operations(kernel), _number_type(kernel), moved_bytes(kernel)), workspace, []


class Operations:
    """The price of groups in operations, a tick each."""

    real = False

    def prepare(self, kernels: Sequence[Group]) -> None:
        """Nothing is measured."""

    def __call__(self, kernel: Group) -> tuple[int, int, list[int]]:
        return operations(kernel), 0, []


def moved_bytes(group: Group) -> int:
    """Bytes that it reads and writes."""
    root = group.root
    whole = sum(v.bytes for v in group.reads) + sum(v.bytes for v in group.makes)
    if root.name == "scan":  # the carry is read and written in every round
        carried = root.params["num_consts"], root.params["num_consts"] + root.params["num_carry"]
        whole += (root.params["length"] - 1) * 2 * sum(v.bytes for v in root.inputs[slice(*carried)])
    return whole


def operations(group: Group) -> int:
    """Floating-point operations; of loops and branches those of their bodies."""
    return sum(operations_of(e.name, e.params, [v.shape for v in e.inputs], [v.shape for v in e.outputs]) for e in group.equations)


def operations_of(name: str, params: dict[str, Any], inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> int:
    """Operations of a primitive on operands of these shapes."""
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        return 2 * math.prod(inputs[0][d] for d in contracted) * math.prod(outputs[0])
    if name == "conv_general_dilated":
        features = inputs[1][params["dimension_numbers"].rhs_spec[0]]
        return 2 * math.prod(outputs[0]) * math.prod(inputs[1]) // max(1, features)
    inside = sum(operations_of(e.primitive.name, e.params, [_shape(v) for v in e.invars], [_shape(v) for v in e.outvars])
                 for jaxpr in inner_jaxprs(params) for e in jaxpr.eqns)
    return params.get("length", 1) * inside if name == "scan" else inside + sum(map(math.prod, outputs))


def _shape(variable: Any) -> tuple[int, ...]:
    return tuple(getattr(variable.aval, "shape", ()))


def _number_type(group: Group) -> str:
    values: list[Value] = [*group.root.inputs, *group.makes]
    floats = [v.dtype for v in values if "float" in v.dtype]
    return _DTYPES.get(floats[0], "f32") if floats else "f32"


def pricing(costs: str, sheet: str = "cpu") -> Price:
    """The price that the option `costs` names; "auto" is the data sheet of this name.  Raises ValueError."""
    if costs == "flops":
        return Operations()
    if costs == "measured":
        return Measured(Roofline(DEVICES[sheet]))
    if costs not in ("auto", *DEVICES):
        raise ValueError(f"unknown costs {costs!r}; known are auto, measured, flops, {', '.join(DEVICES)}")
    return Roofline(DEVICES[sheet if costs == "auto" else costs])
