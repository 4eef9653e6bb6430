"""What XLA for CPUs takes beside operands and results of an equation, as seen in its accounts of single equations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..tracing.equations import Equation, Value
from .strides import layout_of, merged

_INDEX = 4  # bytes of an index, of which the gradient of a pooling makes one for each dimension and element


def workspace_on_cpu(equation: Equation) -> int:
    """Bytes, 0 for most equations."""
    if equation.name == "conv_general_dilated":
        numbers = equation.params["dimension_numbers"]
        rank = len(numbers.lhs_spec)
        image, kernel = (0, rank - 1, *range(1, rank - 1)), (rank - 1, rank - 2, *range(rank - 2))
        ends = zip((*equation.inputs, *equation.outputs), (numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec), (image, kernel, image),
                   strict=True)
        return sum(value.bytes for value, spec, wanted in ends if tuple(spec) != wanted)
    if equation.name == "dot_general":
        summed, batches = equation.params["dimension_numbers"]
        return sum(value.bytes for value, s, b in zip(equation.inputs, summed, batches, strict=True) if not _multiplies(value, s, b))
    if equation.name == "select_and_scatter_add":
        operand = equation.outputs[0]
        return len(operand.shape) * _INDEX * math.prod(operand.shape) + operand.bytes + equation.inputs[0].bytes
    return 0


def _multiplies(value: Value, summed: Sequence[int], batches: Sequence[int]) -> bool:
    """Is an operand of a product a batch of matrices as it lies?  Otherwise it is copied."""
    layout = layout_of(value.shape)
    free = [d for d in range(len(value.shape)) if d not in summed and d not in batches]
    return tuple(batches) == tuple(range(len(batches))) and None not in (merged(layout, summed), merged(layout, free))
