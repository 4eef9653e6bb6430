"""Operators, and the dispatch of a call to a kernel."""

from __future__ import annotations

from typing import Any

import torch

from .versions import before, needed, optional

with needed("dispatcher"):
    from torch._C import DispatchKey
    from torch._C import _disabled_torch_function_impl as no_torch_function
    from torch._C import _DisablePythonDispatcher as without_python_dispatcher
    from torch._C import _DisableTorchDispatch as without_torch_dispatch
    from torch._higher_order_ops.auto_functionalize import auto_functionalized_v2
    from torch._higher_order_ops.effects import _get_effect as effect_of
    from torch._higher_order_ops.effects import with_effects
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
    from torch.utils._python_dispatch import _disable_current_modes as without_modes

    _has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    _is_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded

if before(2, 13):  # PyTorch enters it from there on; without, tracers leave out the check that raises for a singular matrix
    with optional("errors of linear algebra in a planned step"):
        from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

        _register_effectful_op("aten::_linalg_check_errors", _EffectType.ORDERED)

__all__ = ["DispatchKey", "OpOverload", "TorchDispatchMode", "auto_functionalized_v2", "effect_of",
           "enter_decompositions", "has_kernel", "is_excluded",
           "is_traceable_wrapper_subclass", "no_torch_function", "subclassed", "with_effects", "without_modes", "without_python_dispatcher",
           "without_torch_dispatch"]


def has_kernel(op: OpOverload, key: str) -> bool:
    """Has an operator a kernel of its own for a dispatch key?"""
    return _has_kernel(op.name(), key)


def is_excluded(key: DispatchKey) -> bool:
    """Does dispatch in this thread pass a key over, now?"""
    return _is_excluded(key)


def enter_decompositions() -> None:
    """Has PyTorch enter what its tracer makes of operators in their tables, if it has not yet."""
    with needed("decompositions"):
        import torch._decomp.decompositions  # noqa: F401


def subclassed(cls: type, t: torch.Tensor) -> Any:
    """A tensor of a subclass over another's storage."""
    return torch.Tensor._make_subclass(cls, t)
