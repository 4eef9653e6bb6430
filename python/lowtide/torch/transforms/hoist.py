"""A backward that runs in the forward, with a guess of the tangent; what is handed out is scaled by what it was.

The guess is a number on the loss's device, read when the forward runs, and saved for the backward beside the
gradients.  There the caller's tangent comes, and each gradient is multiplied by tangent / guess: exact where that is a
power of two without under- or overflow, and where it is 1 for any guess.  Nothing waits for the device: the product is
made always.  The next guess is the last tangent, unless the caller has given a loss scale.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from ..lowerings.interface import Emitter

if TYPE_CHECKING:
    from ..emission.side import Side


_numbers = itertools.count()
_guesses: weakref.WeakValueDictionary[int, Guess] = weakref.WeakValueDictionary()


class Guess:
    """What the next forward takes for the tangent.  number: what the region's code knows it by.

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
        scale = self._last if isinstance(self._scale, str) else self._scale
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
    """What the code of a region's forward calls."""
    return _guesses[number].read(shape, dtype, device)


def place_of_guess(module: fx.GraphModule) -> int | None:
    """Which of the results of a forward is the guess, if its backward has run in it."""
    (output,) = module.graph.find_nodes(op="output")
    return next((i for i, n in enumerate(output.args[0]) if isinstance(n, fx.Node) and n.target is read_guess), None)


class TangentEmitter(Emitter):
    """The guess, in the place of the tangent: read once, however often a plan asks for it and wherever, since whatever is
    handed out is scaled by it."""

    def __init__(self, guess: Guess) -> None:
        self._guess = guess

    def emit(self, side: Side, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = side.program.runs[op].node
        fake = node.meta["val"]
        if not side.knows(node):
            side.values[node] = side.call(
                read_guess, (self._guess.number, tuple(fake.shape), fake.dtype, fake.device), node, fake)
        return False


def hand_out(number: int, owned: tuple[bool, ...], tangent: torch.Tensor, guessed: torch.Tensor,
             *gradients: torch.Tensor) -> list[torch.Tensor]:
    """The gradients for the caller's tangent, of those for the guess of that number.

    owned: which of them nobody else can see, so that they are scaled where they lie, unless the graph is kept.
    """
    _guesses[number].learn(tangent)
    ratio = tangent / guessed
    # compiled autograd traces this call, for backwards of either kind
    kept = torch.compiler.is_compiling() or torch._C._autograd._get_current_graph_task_keep_graph()
    return [g.mul_(ratio) if mine and not kept else g * ratio for g, mine in zip(gradients, owned, strict=True)]


def scale_gradients(side: Side, tangent: fx.Node, arrived: fx.Node, gradients: list[tuple[Any, fx.Node]],
                    owned: list[bool]) -> None:
    """Append the scaling to the backward's side.

    tangent: the node of the joint graph, under which sides know the guess.  arrived: what the caller gives.  gradients: the
    keys of what is handed out, with the nodes that make it.  owned: as of hand_out.
    """
    guess = side.program.guess
    guessed = side.value(tangent, tangent)
    values = [side.value(key, node) for key, node in gradients]
    made = side.call(hand_out, (guess.number, tuple(owned), arrived, guessed, *values), tangent,
                     [v.meta["val"] for v in values])
    for i, ((key, node), value) in enumerate(zip(gradients, values, strict=True)):
        side.values[key] = side.call(operator.getitem, (made, i), node, value.meta["val"])
