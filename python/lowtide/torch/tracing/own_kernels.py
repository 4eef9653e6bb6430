"""Resampling as it runs without tracing, one kernel for each call.

While PyTorch traces, kernels written in Python come before its own, and those of interpolate and nn.Upsample take them
apart into gathers: eight for a trilinear one.  They compute other bits than the kernel that eager execution runs, and
hold several tensors as large as the result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
import torch._decomp.decompositions  # which enters those kernels
from torch._C import DispatchKey

_KEYS = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)


def _resampling() -> Iterator[torch._ops.OpOverload]:
    for name in dir(torch.ops.aten):
        if name.removeprefix("_").startswith("upsample_"):
            packet = getattr(torch.ops.aten, name)
            yield from (getattr(packet, overload) for overload in packet.overloads())


@contextlib.contextmanager
def own_kernels() -> Iterator[None]:
    """In this context tracing meets the kernels that run without it."""
    hidden = [(op, {key: op.py_kernels.pop(key) for key in _KEYS if key in op.py_kernels}) for op in _resampling()]
    try:
        _forget(hidden)
        yield
    finally:
        for op, kernels in hidden:
            op.py_kernels.update(kernels)
        _forget(hidden)


def _forget(ops: list[tuple[torch._ops.OpOverload, object]]) -> None:
    """What PyTorch keeps of which kernel runs."""
    for op, _ in ops:
        op._dispatch_cache.clear()
