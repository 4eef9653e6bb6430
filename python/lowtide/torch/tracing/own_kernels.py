"""Operators with a kernel of their own that PyTorch's tracer takes apart for autograd: here they stay whole.

Eager execution runs their kernels, forward and backward.  What the tracer would make of them has other last digits, and
for an interpolation takes many times the memory and the time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch._C import DispatchKey

aten = torch.ops.aten
_SAMPLERS = [f"{name}{dims}" for name, dims in (
    ("upsample_nearest", "1d"), ("upsample_nearest", "2d"), ("upsample_nearest", "3d"), ("_upsample_nearest_exact", "1d"),
    ("_upsample_nearest_exact", "2d"), ("_upsample_nearest_exact", "3d"), ("upsample_linear", "1d"), ("upsample_bilinear", "2d"),
    ("upsample_trilinear", "3d"), ("upsample_bicubic", "2d"), ("_upsample_bilinear2d", "_aa"), ("_upsample_bicubic2d", "_aa"))]
_OPERATORS = [getattr(aten, name) for name in (
    *_SAMPLERS, "hardshrink", "softshrink", "multi_margin_loss", "multilabel_margin_loss_forward")]
_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


@contextlib.contextmanager
def own_kernels() -> Iterator[None]:
    """While something is traced (the tracer lets one thread at a time do so)."""
    overloads = [getattr(packet, name) for packet in _OPERATORS for name in packet.overloads()]
    taken = [(op, key, op.py_kernels.pop(key)) for op in overloads for key in _KEYS if key in op.py_kernels]
    for op in overloads:
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op, key, kernel in taken:
            op.py_kernels[key] = kernel
        for op in overloads:
            op._dispatch_cache.clear()
