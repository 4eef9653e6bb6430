"""Microbatches: backwards that add to gradients, and update nothing."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import torch
from torch import nn

_accumulating: Counter[int] = Counter()  # parameters by id, and in how many blocks of `accumulate` they are


@contextlib.contextmanager
def accumulate(model: nn.Module) -> Iterator[None]:
    """Within this context backwards add to `p.grad`, and update nothing, for every parameter of the model.

    Use it for all microbatches but the last: the first backward outside adds its gradients and updates.  It has no effect on a
    model without updates in its backward, and may be nested.  Raises TypeError if the argument is no module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"accumulate takes the torch.nn.Module whose backwards are to add up, not {type(model).__name__}")
    held = list(model.parameters())  # alive until the end, so that their ids stay theirs
    _accumulating.update(map(id, held))
    try:
        yield
    finally:
        _accumulating.subtract(map(id, held))
        for p in held:
            if _accumulating[id(p)] <= 0:
                del _accumulating[id(p)]


def accumulates(p: torch.Tensor) -> bool:
    """Is this parameter in a block of `accumulate` now?"""
    return _accumulating[id(p)] > 0


def any_accumulates() -> bool:
    """Is any parameter in such a block?"""
    return bool(_accumulating)
