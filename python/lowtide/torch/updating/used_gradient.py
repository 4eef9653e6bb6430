"""What stands in `p.grad` for a gradient that an update in the backward has used."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UpdateError

_ZEROING = (torch.ops.aten.zero_.default, torch.ops.aten._foreach_zero_.default)


class UsedGradient(torch.Tensor):
    """A gradient that is no more: it looks like one and takes no memory, and any use of it raises UpdateError.

    Without it `clip_grad_norm_` would find no gradients, return 0, and clip nothing.  `zero_grad` takes it away, or
    (`set_to_none=False`) marks it.  stepped: has the optimizer's step come since?  zeroed: has it been set to zero?
    """

    stepped: bool
    zeroed: bool

    @staticmethod
    def __new__(cls, p: torch.Tensor) -> UsedGradient:
        made = torch.Tensor._make_wrapper_subclass(cls, p.shape, strides=p.stride(), dtype=p.dtype, device=p.device)
        made.stepped = made.zeroed = False
        return made

    def __init__(self, p: torch.Tensor) -> None:
        """In the place of the gradient of `p`."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # what comes here are operators, not functions

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _ZEROING:
            for gradient in args[0] if isinstance(args[0], (list, tuple)) else (args[0],):
                if isinstance(gradient, UsedGradient):
                    gradient.zeroed = True
                else:
                    gradient.zero_()
            return args[0]
        raise UpdateError(f"{func} uses a gradient that is no more: with update='backward' the backward has updated the "
                          "parameter already. Gradients can be clipped, scaled, changed, added to or looked at only after "
                          "a backward that makes no updates: use update='step'")

    def __repr__(self, **_: Any) -> str:
        return f"UsedGradient(shape={list(self.shape)}, of a parameter that was updated in the backward)"
