"""The guess of a tangent with which a backward runs in the forward (transforms/hoist.py): what its code calls."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import torch
from torch import fx

from ..compat.autograd import is_graph_kept

_numbers = itertools.count()
_guesses: weakref.WeakValueDictionary[int, Guess] = weakref.WeakValueDictionary()


class Guess:
    """What the next forward takes for the tangent.  number: what the graph's code knows it by.

    scale: "last", the tangent of the last backward (1 before the first); a number; a tensor of one element, read when a
    forward runs; or a GradScaler.
    """

    def __init__(self, scale: Any = "last") -> None:
        self._scale = scale
        self._last: torch.Tensor | None = None
        self.number = next(_numbers)
        _guesses[self.number] = self

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
        """A tangent that the caller gave; one that nothing can be divided by is not kept."""
        if isinstance(self._scale, str):
            usable = torch.isfinite(tangent) & (tangent != 0)
            self._last = torch.where(usable, tangent, torch.ones_like(tangent)).detach()


def read_guess(number: int, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What the code of a graph's forward calls."""
    return _guesses[number].read(shape, dtype, device)


def place_of_guess(module: fx.GraphModule) -> int | None:
    """Which of the results of a forward is the guess, if its backward has run in it."""
    (output,) = module.graph.find_nodes(op="output")
    return next((i for i, n in enumerate(output.args[0]) if isinstance(n, fx.Node) and n.target is read_guess), None)


def hand_out(number: int, owned: tuple[bool, ...], tangent: torch.Tensor, guessed: torch.Tensor,
             *gradients: torch.Tensor) -> list[torch.Tensor]:
    """The gradients for the caller's tangent, of those for the guess of that number.

    owned: which of them nobody else can see, so that they are scaled where they lie, unless the graph is kept.
    """
    _guesses[number].learn(tangent)
    ratio = tangent / guessed
    # compiled autograd traces this call, for backwards of either kind
    kept = torch.compiler.is_compiling() or is_graph_kept()
    return [g.mul_(ratio) if mine and not kept else g * ratio for g, mine in zip(gradients, owned, strict=True)]
