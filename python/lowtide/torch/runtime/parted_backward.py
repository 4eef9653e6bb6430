"""A backward in parts within autograd: the gradients of each part reach their parameters before the next part runs.

A captured graph is one node of autograd.  To have its backward run in parts, the parameters of all parts but the first go into the
graph through identities:

    parameters of part 1 --------------------------> graph
    parameters of part 2 --> identity 2 -----------> graph
                                  ^ token
    parameters of part 3 --> identity 3 -----------> graph

The backward of the graph's node runs the first part only.  It returns the gradients of that part, and for the others *carriers*:
tensors without memory that hold the generator of what is left of the backward.  Autograd then accumulates the first gradients, which starts
DDP's reductions, since it runs accumulations before anything else.  The backward of identity 2 takes the generator from a carrier and
runs the second part, and so on.  The tokens keep the identities in order.

Where something else computes the backward (compiled autograd), no carriers come, and identities pass gradients on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

_LEFT = "_lowtide_left_of_backward"
_LEAF = "_lowtide_leaf"


def in_parts(args: Sequence[Any], parts: Sequence[Sequence[int]]) -> list[Any]:
    """The arguments of a graph whose backward runs in parts; parts: the places of the arguments whose gradients each part makes."""
    given = list(args)
    token = None
    for places in reversed(parts[1:]):
        token, *passed = _Identity.apply(token, *(args[place] for place in places))
        for place, t in zip(places, passed, strict=True):
            setattr(t, _LEAF, args[place])
            given[place] = t
    return given


def leaf_of(t: Any) -> Any:
    """The argument that an identity has passed on; any other as it is."""
    return getattr(t, _LEAF, t)


def first_part(run: Callable[[list[Any]], Iterator[list[Any]]], parts: Sequence[Sequence[int]], likes: Sequence[Any]) \
        -> Callable[[list[Any]], list[Any]]:
    """The backward of the graph's node: runs the first part.  likes: fake tensors of all results, None where there is none."""

    def backward(args: list[Any]) -> list[Any]:
        left = run(args)
        results: list[Any] = [None] * len(likes)
        _put(results, parts[0], next(left))
        for places in parts[1:]:
            results[places[0]] = _carrier(left, likes[places[0]])
        return results

    return backward


def _carrier(left: Iterator[list[Any]], like: torch.Tensor) -> torch.Tensor:
    """A gradient like that, without memory, by which an identity finds what is left of the backward.  Should it ever be taken for a
    gradient, that is not a number."""
    made = torch.full((), float("nan"), dtype=like.dtype, device=like.device).expand(like.shape)
    setattr(made, _LEFT, left)
    return made


def _put(results: list[Any], places: Sequence[int], gradients: list[Any]) -> None:
    for place, gradient in zip(places, gradients, strict=True):
        results[place] = gradient
    gradients.clear()


class _Identity(torch.autograd.Function):
    """Tensors as they are; the backward runs the part that makes their gradients.  The token orders identities."""

    @staticmethod
    def forward(ctx: Any, token: torch.Tensor | None, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        return tensors[0].new_empty(0, dtype=torch.float32), *(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, _: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        left = getattr(gradients[0], _LEFT, None)
        if left is None:
            return None, *gradients
        given = next(left)
        made = (None, *given)
        given.clear()
        return made
