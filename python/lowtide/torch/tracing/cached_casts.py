"""Autocast casts a parameter once, as in eager execution, however often it is used.

Eager autocast keeps the half-precision copy of a leaf until the outermost `with torch.autocast` ends.  So the uses of a
weight that is used twice add their gradients up in half precision, and the sum is cast back.  The tracer turns that off: it
casts for each use, and adds up in single.  Here the copies are kept while something is traced, under eager's conditions
(aten/src/ATen/autocast_mode.cpp): a leaf in single precision that is no view and has a gradient, with the cache switched on.

AOTAutograd hands out its arguments as functional tensors, whose `grad_fn` is a placeholder of the class `Error`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch.fx.experimental import proxy_tensor

from ..compat.dispatch import DispatchKey, is_excluded

_to = torch.ops.aten.to.dtype
_copy = torch.ops.aten._to_copy.default
_KEY = DispatchKey.CompositeImplicitAutograd
_AUTOCAST = {"cpu": DispatchKey.AutocastCPU, "cuda": DispatchKey.AutocastCUDA}


@contextlib.contextmanager
def casts_once() -> Iterator[None]:
    """While something is traced (the tracer lets one thread at a time do so)."""
    if _KEY in _to.py_kernels:
        yield
        return
    kept: dict[tuple[int, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}
    clear, tracing = torch.clear_autocast_cache, threading.get_ident()

    def to(x: Any, dtype: torch.dtype, non_blocking: bool = False, copy: bool = False,
           memory_format: torch.memory_format | None = None) -> torch.Tensor:
        if not isinstance(x, torch.Tensor):  # a number within a kernel
            return torch.scalar_tensor(x, dtype=dtype)
        if x.dtype == dtype and not copy and memory_format in (None, torch.preserve_format):
            return x
        key = id(x), dtype
        if key in kept:
            return kept[key][1]
        made = _copy(x, dtype=dtype, non_blocking=non_blocking, memory_format=memory_format)
        if _is_kept(x, dtype):
            kept[key] = x, made  # as long as x lives its id is its own
        return made

    def clear_all() -> None:
        if threading.get_ident() == tracing:  # the cache is each thread's own
            kept.clear()
        clear()

    _to.py_kernels[_KEY] = to
    _to._dispatch_cache.clear()
    try:
        with patch.object(proxy_tensor, "disable_autocast_cache", contextlib.nullcontext), \
                patch.object(torch, "clear_autocast_cache", clear_all):
            yield
    finally:
        del _to.py_kernels[_KEY]
        _to._dispatch_cache.clear()


def _is_kept(x: Any, dtype: torch.dtype) -> bool:
    """Does autocast cast here, and keep the result?"""
    key = _AUTOCAST.get(x.device.type)
    return (key is not None and is_excluded(key)
            and torch.is_autocast_cache_enabled()
            and dtype == torch.get_autocast_dtype(x.device.type) and x.dtype == torch.float32
            and torch.is_grad_enabled() and x.requires_grad and not x._is_view()
            and (x.is_leaf or type(x.grad_fn).__name__ == "Error"))
