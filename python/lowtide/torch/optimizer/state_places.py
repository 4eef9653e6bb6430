"""Memory on a GPU for the state that an optimizer makes in its first step.

An optimizer makes its state at its first update of a parameter.  Where updates are made within the backward, that state would lie between
activations, and keep their segments from being used as a whole for as long as the model is trained.  So memory for it is allocated
before the first forward, and the first update takes it.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ..compat import pytree
from ..compat.cuda import outside_of_pools
from ..compat.dispatch import TorchDispatchMode

aten = torch.ops.aten

_LARGE = 1 << 20  # bytes; smaller tensors come from the allocator's segments of small blocks
_BLOCK = 512
_MAKE = {aten.zeros_like.default, aten.ones_like.default, aten.full_like.default, aten.zeros.default, aten.ones.default,
         aten.full.default, aten.clone.default}  # state, in torch.optim


class StatePlaces:
    """Memory for the state of one optimizer's parameters, whatever graphs update them."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._held: WeakTensorKeyDictionary = WeakTensorKeyDictionary()  # parameter -> tensors of bytes

    @property
    def bytes(self) -> int:
        return sum(place.numel() for places in self._held.values() for place in places)

    def hold(self, sizes: Iterable[tuple[torch.Tensor, Sequence[int]]]) -> None:
        """Before the first forward, allocate memory for the state that does not exist.  sizes: parameters, and the bytes of each piece of
        their state that stays on the device."""
        missing = [(p, large) for p, of_state in sizes if p.is_cuda and not self._optimizer.state.get(p) and p not in self._held
                   if (large := [size for size in of_state if size > _LARGE])]
        if not missing:
            return
        with outside_of_pools():
            for p, large in missing:
                self._held[p] = [torch.empty(size, dtype=torch.uint8, device=p.device) for size in large]

    def used_for(self, parameters: Iterable[torch.Tensor]) -> contextlib.AbstractContextManager[Any]:
        """Within it these parameters are updated.  What their state does not take of their places is given up."""
        if not self._held:
            return contextlib.nullcontext()
        return TensorsInPlaces([place for p in parameters for place in self._held.pop(p, ())])


class TensorsInPlaces(TorchDispatchMode):
    """Has new tensors lie in one of these places, each of bytes, if one has their size."""

    def __init__(self, places: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self._places: defaultdict[tuple[torch.device, int], list[torch.Tensor]] = defaultdict(list)
        for place in places:
            self._places[place.device, _rounded(place.numel())].append(place)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _MAKE:
            return func(*args, **kwargs)
        on_meta, of = pytree.tree_map_only(torch.Tensor, _on_meta, args), {**kwargs, **({"device": "meta"} if "device" in kwargs else {})}
        like = func(*on_meta, **of)
        device = torch.device(kwargs.get("device") or (args[0].device if isinstance(args[0], torch.Tensor) else "cpu"))
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        places = self._places.get((device, _rounded(like.untyped_storage().nbytes())))
        if not places:
            return func(*args, **kwargs)
        made = torch.empty(0, dtype=like.dtype, device=device)
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
