"""The placeholder in `p.grad` for a gradient that an update in the backward has used."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ..compat.dispatch import no_torch_function, subclassed, without_modes
from ..step_errors import UpdateError

aten = torch.ops.aten

_ZEROING = (aten.zero_.default, aten._foreach_zero_.default)
_COPYING = (aten._to_copy.default, aten.clone.default, aten.empty_like.default)


class UsedGradient(torch.Tensor):
    """A gradient that is no more: it has the shape of one and no memory of its own, and who computes with it gets an
    UpdateError.

    Without it `clip_grad_norm_` would find no gradients, return 0, and clip nothing.  `zero_grad` takes it away, or
    (`set_to_none=False`) marks it.  It goes along where a module goes to another device or number type.
    stepped: has the optimizer's step come since?  zeroed: has it been set to zero?
    """

    stepped: bool
    zeroed: bool

    @staticmethod
    def __new__(cls, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> UsedGradient:
        with without_modes():  # a tracer's would make it a fake one
            made = subclassed(cls, _number(dtype, device).expand(shape))
        made.stepped = made.zeroed = False
        return made

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        """In the place of a gradient like that."""

    # what comes here are operators, not functions
    __torch_function__ = no_torch_function  # type: ignore[assignment]  # as PyTorch has it for such classes

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # stubs have the disabled one
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _ZEROING:
            for gradient in args[0] if isinstance(args[0], (list, tuple)) else (args[0],):
                if isinstance(gradient, UsedGradient):
                    gradient.zeroed = True
                else:
                    gradient.zero_()
            return args[0]
        if func in _COPYING:
            old = args[0]
            made = UsedGradient(old.shape, kwargs.get("dtype") or old.dtype, kwargs.get("device") or old.device)
            made.stepped, made.zeroed = old.stepped, old.zeroed
            return made
        raise UpdateError(f"{func} uses a gradient that is no more: with update='backward' the backward has updated the "
                          "parameter already. Gradients can be clipped, scaled, changed, added to or looked at only "
                          "after a backward that makes no updates: use update='step'")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # stubs have the one of `object`, too
        return f"UsedGradient(shape={list(self.shape)}, of a parameter that was updated in the backward)"


@functools.cache
def _number(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """The storage of all of them: no number, for whoever gets at it all the same."""
    return torch.full((), torch.nan, dtype=dtype, device=device)
