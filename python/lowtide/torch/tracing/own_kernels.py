"""Keeps operators whole that PyTorch's tracer would decompose for autograd.

Eager execution runs their kernels, forward and backward.  The tracer's decomposition has other last digits, and for an
interpolation it holds several tensors as large as the result: eight gathers for a trilinear one.

Autocast's casts of parameters, one for all uses, are kept too (cached_casts.py).

cuDNN's batch norm in training changes the running statistics, which its schema does not declare.  So it is replaced by the
operator that declares this and selects cuDNN by eager execution's rule.  In evaluation the tracer's kernel is PyTorch's own,
whose last digits may differ from cuDNN's.

Dropout with probability 1 stays as in eager execution, which multiplies by zero and draws nothing; the tracer would draw a
mask.  With probability 0, or in evaluation, it is its argument, which the tracer copies.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch

from ..compat.dispatch import DispatchKey, enter_decompositions
from .cached_casts import casts_once

enter_decompositions()
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
    for op, replaced in ((aten.dropout.default, _without_a_draw_of_all_or_nothing),
                         (aten.cudnn_batch_norm.default, _with_update)):
        overloads.append(op)
        for key in _KEYS:
            if key in op.py_kernels:
                taken.append((op, key, op.py_kernels[key]))
                op.py_kernels[key] = replaced(op.py_kernels[key])
    for op in overloads:
        op._dispatch_cache.clear()
    try:
        with casts_once():
            yield
    finally:
        for op, key, kernel in taken:
            op.py_kernels[key] = kernel
        for op in overloads:
            op._dispatch_cache.clear()


def kernels_of(fused: bool) -> contextlib.AbstractContextManager[None]:
    """What a tracing with clusters, or one without, keeps whole."""
    return contextlib.nullcontext() if fused else own_kernels()


def _without_a_draw_of_all_or_nothing(traced: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def dropout(x: torch.Tensor, p: float, train: bool | None) -> torch.Tensor:
        if train and p == 1 and x.numel() > 0:
            return x * x.new_zeros(())
        if not train or p == 0:
            return x
        return traced(x, p, train)

    return dropout


def _with_update(traced: Callable[..., tuple[torch.Tensor, ...]]) -> Callable[..., tuple[torch.Tensor, ...]]:
    def cudnn_batch_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, mean: torch.Tensor | None,
                         variance: torch.Tensor | None, training: bool, momentum: float, eps: float) -> tuple[torch.Tensor, ...]:
        if not training:
            return traced(x, weight, bias, mean, variance, training, momentum, eps)
        if mean is None or variance is None:  # nobody reads what becomes of these
            mean, variance = torch.zeros_like(weight), torch.ones_like(weight)
        return aten._batch_norm_with_update(x, weight, bias, mean, variance, momentum, eps)

    return cudnn_batch_norm
