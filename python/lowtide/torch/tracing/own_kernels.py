"""Operators with a kernel of their own that PyTorch's tracer takes apart for autograd: here they stay whole.

Eager execution runs their kernels, forward and backward.  What the tracer would make of them has other last digits, and
for an interpolation holds several tensors as large as its result: eight gathers for a trilinear one.

A dropout of all stays what it is, too: eager execution multiplies by zero and draws nothing, where the tracer draws a mask.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch._decomp.decompositions  # which enters what the tracer would make of them
from torch._C import DispatchKey

aten = torch.ops.aten
_NAMES = [name for name in dir(aten) if name.removeprefix("_").startswith("upsample_")]
_NAMES += ["hardshrink", "softshrink", "multi_margin_loss", "multilabel_margin_loss_forward"]
_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


@contextlib.contextmanager
def own_kernels() -> Iterator[None]:
    """While something is traced (the tracer lets one thread at a time do so)."""
    packets = [getattr(aten, name) for name in _NAMES]
    overloads = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    taken = [(op, key, op.py_kernels.pop(key)) for op in overloads for key in _KEYS if key in op.py_kernels]
    dropout = aten.dropout.default
    overloads.append(dropout)
    for key in _KEYS:
        if key in dropout.py_kernels:
            taken.append((dropout, key, dropout.py_kernels[key]))
            dropout.py_kernels[key] = _without_a_draw_of_all(dropout.py_kernels[key])
    for op in overloads:
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op, key, kernel in taken:
            op.py_kernels[key] = kernel
        for op in overloads:
            op._dispatch_cache.clear()


def _without_a_draw_of_all(traced: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def dropout(x: torch.Tensor, p: float, train: bool | None) -> torch.Tensor:
        if train and p == 1 and x.numel() > 0:
            return x * x.new_zeros(())
        return traced(x, p, train)

    return dropout
