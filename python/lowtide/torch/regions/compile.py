"""A graph that Dynamo hands over -> a function that runs it by plans which keep the budget.

Where sizes or numbers of the graph are open there is a plan for each that comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from ..errors import fall_back
from ..settings import Settings
from ..tracing.scalars import SizeByNumber, floats_of, ints_of, without_items
from .group import Group
from .region import Region

_SHAPES = 256  # plans that are kept of one region whose sizes or numbers change


def compile_region(gm: fx.GraphModule, example_inputs: list[Any], settings: Settings, group: Group,
                   number: int | None = None) -> Callable[..., Any]:
    """A function that runs gm on inputs like example_inputs, by plans that keep the budget.

    group: the regions of the same model.  number: enter this one there under that, and plan nothing.
    """
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and is_traceable_wrapper_subclass(value):
            return fall_back(f"an input is a {type(value).__name__}, a subclass of Tensor, which hides the storages "
                              "that a plan counts", settings, gm)
    if any(_is_symbolic(value) for value in example_inputs) or settings.inner == "eager" and floats_of(gm):
        return EachShape(gm, settings, group, number)
    return Region(settings, group, number).compile(gm, example_inputs)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(n, torch.SymInt) and not n.node.is_constant() for n in (*value.shape, *value.stride()))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


class EachShape:
    """A region whose sizes Dynamo left open, or numbers: a plan of its own for every size that comes, and one for
    all values of a number that is none (scalars.py).  number: as of compile_region."""

    def __init__(self, gm: fx.GraphModule, settings: Settings, group: Group, number: int | None = None) -> None:
        self._settings, self._group, self._number = settings, group, number
        eager = settings.inner == "eager"
        self._floats = floats_of(gm) if eager else []
        self._numbers = {*self._floats, *(ints_of(gm) if eager else ())}
        self._gm = without_items(gm, self._floats) if self._floats else gm
        self._known: dict[Any, list[Region]] = {}  # the one that was compiled last is the last

    def __call__(self, *args: Any) -> Any:
        args = self._with_numbers(args)
        return self._region_for(args)(*args)

    def prepare(self, args: tuple[Any, ...]) -> None:
        """Plan for arguments like these, and run nothing; or enter them to be planned later."""
        self._region_for(self._with_numbers(args))

    def _with_numbers(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self._floats:
            return args
        values = list(args)
        for i in self._floats:
            values[i] = values[i].item()
        return tuple(values)

    def _region_for(self, args: tuple[Any, ...]) -> Region:
        known = (region for region in self._known.get(self._key(args), ()) if region.serves(args))
        return next(known, None) or self._compile(args)

    def _key(self, args: tuple[Any, ...]) -> Any:
        return (tuple((a.shape, a.stride(), a.dtype, a.requires_grad) if isinstance(a, torch.Tensor) else a
                      for i, a in enumerate(args) if i not in self._numbers), torch.is_grad_enabled())

    def _compile(self, args: tuple[Any, ...]) -> Region:
        while True:
            region = Region(self._settings, self._group, self._number, sorted(self._numbers))
            try:
                region.compile(self._gm, list(args))
                break
            except SizeByNumber as error:
                self._numbers -= error.at
                self._known.clear()
        self._known.setdefault(self._key(args), []).append(region)
        if sum(map(len, self._known.values())) > _SHAPES:
            oldest = next(iter(self._known))
            self._known[oldest].pop(0).leave()
            if not self._known[oldest]:
                del self._known[oldest]
        return region
