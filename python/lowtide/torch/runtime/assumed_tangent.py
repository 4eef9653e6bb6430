"""The gradient of the loss that a hoisted backward assumes, since it runs within the forward (transforms/hoist.py)."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import torch
from torch import fx

from ..compat.autograd import is_graph_kept

_numbers = itertools.count()
_assumed_tangents: weakref.WeakValueDictionary[int, AssumedTangent] = weakref.WeakValueDictionary()


class AssumedTangent:
    """The tangent (gradient of the loss) that the next forward assumes.  number: identifies it in the graph's code.

    scale: "last", the tangent of the last backward (1 before the first); a number; a tensor of one element, read when a
    forward runs; or a GradScaler.
    """

    def __init__(self, scale: Any = "last") -> None:
        self._scale = scale
        self._last: torch.Tensor | None = None
        self.number = next(_numbers)
        _assumed_tangents[self.number] = self

    def read(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """A new tensor of the tangent's shape and type."""
        scale: Any = self._last if isinstance(self._scale, str) else self._scale
        if hasattr(scale, "get_scale"):  # a GradScaler, whose scale is on the device from its first use on
            scale = scale._scale if getattr(scale, "_scale", None) is not None else scale.get_scale()
        if scale is None:
            scale = 1.0
        if isinstance(scale, torch.Tensor):
            return scale.detach().to(device=device, dtype=dtype, copy=True).reshape(shape)
        return torch.full(shape, float(scale), dtype=dtype, device=device)

    def learn(self, tangent: torch.Tensor) -> None:
        """Remember the caller's tangent, unless it is 0 or not finite."""
        if isinstance(self._scale, str):
            usable = torch.isfinite(tangent) & (tangent != 0)
            self._last = torch.where(usable, tangent, torch.ones_like(tangent)).detach()


def read_assumed_tangent(number: int, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Called by the code of a graph's forward."""
    return _assumed_tangents[number].read(shape, dtype, device)


def place_of_assumed_tangent(module: fx.GraphModule) -> int | None:
    """The index of the assumed tangent among the results of a forward; None if its backward is not hoisted."""
    (output,) = module.graph.find_nodes(op="output")
    return next((i for i, n in enumerate(output.args[0]) if isinstance(n, fx.Node) and n.target is read_assumed_tangent), None)


def hand_out(number: int, owned: tuple[bool, ...], tangent: torch.Tensor, assumed: torch.Tensor,
             *gradients: torch.Tensor) -> list[torch.Tensor]:
    """Scale gradients from the assumed tangent of that number to the caller's tangent.

    owned: the gradients without other references.  These are scaled in place, unless the graph is kept.
    """
    _assumed_tangents[number].learn(tangent)
    ratio = tangent / assumed
    # compiled autograd traces this call, for backwards of either kind
    kept = torch.compiler.is_compiling() or is_graph_kept()
    return [g.mul_(ratio) if mine and not kept else g * ratio for g, mine in zip(gradients, owned, strict=True)]
