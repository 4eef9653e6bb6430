"""Memory on a GPU for the state that an optimizer makes in its first step.

An optimizer makes its state at its first update of a parameter.  Where updates are made within the backward, that state would lie between
activations, and keep their segments from being used as a whole for as long as the model is trained.  So memory for it is allocated
before the first forward, and the first update takes it.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..compat import pytree
from ..compat.cuda import is_inside_pool, outside_of_pools
from ..compat.dispatch import TorchDispatchMode
from .updater import Updater

aten = torch.ops.aten

_LARGE = 1 << 20  # bytes; smaller tensors come from the allocator's segments of small blocks
_BLOCK = 512
_MAKE = {aten.zeros_like.default, aten.ones_like.default, aten.full_like.default, aten.zeros.default, aten.ones.default,
         aten.full.default, aten.clone.default}  # state, in torch.optim


class StatePlaces:
    """The places of one graph's updates, by the input that is the parameter."""

    def __init__(self) -> None:
        self._sizes: dict[int, list[int]] = {}
        self._held: dict[int, list[torch.Tensor]] = {}

    def learn(self, sizes: Iterable[tuple[int, int]]) -> None:
        """The bytes of each piece of state that stays on the device, by slot, as the latest plan counts them."""
        made: defaultdict[int, list[int]] = defaultdict(list)
        for slot, size in sizes:
            if size > _LARGE:
                made[slot].append(size)
        self._sizes = dict(made)

    def hold(self, parameters: Mapping[int, torch.Tensor], updaters: Sequence[Updater]) -> None:
        """A forward begins; before the first one, memory is allocated for the state that does not exist."""
        if not self._sizes:
            return
        sizes, self._sizes = self._sizes, {}
        missing = {slot: p for slot, p in parameters.items() if slot in sizes and slot not in self._held
                   if p.is_cuda and not any(updater.optimizer.state.get(p) for updater in updaters)}
        with outside_of_pools() if missing and is_inside_pool() else contextlib.nullcontext():
            self._held |= {slot: [torch.empty(size, dtype=torch.uint8, device=p.device) for size in sizes[slot]]
                           for slot, p in missing.items()}

    def used_for(self, slots: Iterable[int]) -> contextlib.AbstractContextManager[Any]:
        """Within it these parameters are updated.  What the state does not take of their places is given up."""
        if not self._held:
            return contextlib.nullcontext()
        return TensorsInPlaces([place for slot in slots for place in self._held.pop(slot, ())])


class TensorsInPlaces(TorchDispatchMode):
    """Has new tensors lie in one of these places, each of bytes, if one has their size."""

    def __init__(self, places: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._places: defaultdict[int, list[torch.Tensor]] = defaultdict(list)
        for place in places:
            self._places[_rounded(place.numel())].append(place)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _MAKE:
            return func(*args, **kwargs)
        on_meta, of = pytree.tree_map_only(torch.Tensor, _on_meta, args), {**kwargs, **({"device": "meta"} if "device" in kwargs else {})}
        like = func(*on_meta, **of)
        places = self._places.get(_rounded(like.untyped_storage().nbytes()))
        device = torch.device(kwargs.get("device") or (args[0].device if isinstance(args[0], torch.Tensor) else "cpu"))
        if not places or places[-1].device.type != device.type:
            return func(*args, **kwargs)
        made = torch.empty(0, dtype=like.dtype, device=places[-1].device)
        made.set_(places.pop().untyped_storage(), 0, like.shape, like.stride())
        return made.copy_(args[0]) if func is aten.clone.default else made.fill_(_value(func, args))


def _value(func: Any, args: Any) -> Any:
    """With what such a function fills a tensor."""
    if func in (aten.full.default, aten.full_like.default):
        return args[1]
    return 1 if func in (aten.ones.default, aten.ones_like.default) else 0


def _on_meta(t: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


def _rounded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
