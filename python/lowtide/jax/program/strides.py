"""Layouts of arrays: the extents and strides, in elements, with which an op sees a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..tracing.equations import Equation
from .groups import VIEWS


@dataclass(frozen=True)
class Layout:
    extents: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(dims: Sequence[tuple[int, int]]) -> Layout:
        """Of pairs of an extent and a stride."""
        return Layout(tuple(extent for extent, _ in dims), tuple(stride for _, stride in dims))

    def permuted(self, dims: Sequence[int]) -> Layout:
        return Layout.of([(self.extents[d], self.strides[d]) for d in dims])


def layout_of(shape: Sequence[int]) -> Layout:
    """Of an array whose elements lie in order."""
    return Layout(tuple(shape), contiguous(shape))


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(strides[::-1])


def viewed(equation: Equation, source: Layout) -> Layout | None:
    """How the result of an equation lies in its operand; None if it copies."""
    shape = equation.outputs[0].shape
    if equation.name == "transpose":
        return source.permuted(equation.params["permutation"])
    if equation.name == "broadcast_in_dim":
        strides = [0] * len(shape)
        for d, at in enumerate(equation.params["broadcast_dimensions"]):
            strides[at] = source.strides[d] if source.extents[d] == shape[at] else 0
        return Layout(shape, tuple(strides))
    if equation.name not in VIEWS or equation.params.get("dimensions") is not None and equation.name == "reshape":
        return None
    if shape == source.extents:
        return source
    if equation.name == "reshape" and not _in_order(source):
        return None
    if equation.name == "reshape":
        return layout_of(shape)
    longer = [(e, s) for e, s in zip(source.extents, source.strides, strict=True) if e != 1]  # squeeze, expand_dims
    return Layout.of([longer.pop(0) if extent != 1 else (1, 1) for extent in shape])


def _in_order(layout: Layout) -> bool:
    return all(extent == 1 or stride == wanted
               for extent, stride, wanted in zip(layout.extents, layout.strides, contiguous(layout.extents), strict=True))


def merged(layout: Layout, dims: Sequence[int]) -> tuple[int, int] | None:
    """Dimensions, the outermost first, as one with an extent and a stride; None if they do not lie as one."""
    extent, stride = 1, 1
    for d in reversed(dims):
        e, s = layout.extents[d], layout.strides[d]
        if e == 1:
            continue
        if extent == 1:
            stride = s
        elif s != stride * extent:
            return None
        extent *= e
    return extent, stride
