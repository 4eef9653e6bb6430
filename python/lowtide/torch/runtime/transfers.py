"""The calls of generated code that move a tensor's storage to the host and back: leave, landed or gone, fetch, arrive.

    leave   the copy to the host begins
    landed  whoever computes next has waited for that copy; the tensor stays
    gone    the same, and the tensor is given up on the device: here the plan frees it
    fetch   memory on the device is taken, and the copy back begins
    arrive  whoever computes next has waited for that copy

On a GPU each direction has a stream of its own, and a wait is an event.  `record_stream` is not used: with it a block
comes back when the host happens to look, so that the peak would depend on luck.  Without it a block goes back to the pool of the
compute stream, and that stream has waited for the copy (`gone`); a block for `fetch` comes from the same pool, and the copy
waits for what the compute stream has been given before.

On a CPU the host is emulated: a copy runs when somebody waits for it and not before, and what is given up, or not yet
back, is overwritten, so that a missing wait shows as wrong bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..compat.tensors import holders
from ..device.host import Place, host_of
from ..device.queued_copy import QueuedCopy

_POISON = 255
_OF_STORAGE = 2  # references to a storage: the tensor's and that of the storage's own object


class LateCopy:
    """A copy on a CPU that runs when it is waited for.  after: copies that have to have run before."""

    def __init__(self, into: torch.Tensor, source: torch.Tensor, after: Sequence[Any]) -> None:
        self._todo: Any = into, source, after

    def wait(self) -> None:
        if self._todo:
            into, source, after = self._todo
            for earlier in after:
                earlier.wait()
            into.copy_(source)
        self._todo = None

    def abandon(self) -> None:
        """Nobody will read what it makes."""
        self._todo = None

    def finish(self) -> None:
        """It does not run by itself."""


def _begin(into: torch.Tensor, source: torch.Tensor, after: Sequence[Any], way: str) -> LateCopy | QueuedCopy:
    if source.is_cuda or into.is_cuda:
        return QueuedCopy(into, source, after, way)
    return LateCopy(into, source, after)


class Leaving:
    """A copy to the host under way, which holds the storage until it has ended.  home: the bytes to which it goes, over a
    place; None for a new place."""

    def __init__(self, t: torch.Tensor, home: torch.Tensor | None = None) -> None:
        self._source: torch.Tensor | None = _bytes(t)
        host = host_of(t.device)
        self._host, place = host.take(self._source.numel()) if home is None else (home, host.place_of(home))
        assert place is not None, "a home is over a place"
        self._copy = place.written = _begin(self._host, self._source, may_be_rewritten_after(place), "out")

    def land(self) -> torch.Tensor:
        self._copy.wait()
        return self._host

    def give_up(self) -> None:
        """Nothing reads the storage on the device any more."""
        if self._source is not None and self._source.device.type == "cpu" and _is_alone(self._source):
            self._source.fill_(_POISON)
        self._source = None

    def __del__(self) -> None:
        copy = getattr(self, "_copy", None)
        if copy is not None:
            copy.abandon()


class Coming:
    """A copy to the device under way, into memory that it takes."""

    def __init__(self, host: torch.Tensor, shape: list[int], strides: list[int], offset: int, dtype: torch.dtype,
                 device: torch.device) -> None:
        into = torch.empty(host.numel(), dtype=torch.uint8, device=device)
        self._t = torch.empty(0, dtype=dtype, device=device).set_(into.untyped_storage(), offset, shape, strides)
        if device.type == "cpu":
            into.fill_(_POISON)
        place = host_of(device).place_of(host)
        # from here on the place may be given to the next copy out, which waits for this one
        source = host if place is None else place.tensor(host.numel())[0]
        self._copy = _begin(into, source, (), "in")
        if place is not None:
            place.read = self._copy
        self._host = host if place is None else None  # it is what a hook on saved tensors has made of it

    def land(self) -> torch.Tensor:
        self._copy.wait()
        self._host = None
        return self._t

    def __del__(self) -> None:
        copy = getattr(self, "_copy", None)
        if copy is not None:
            copy.abandon()


def may_be_rewritten_after(place: Place) -> Sequence[Any]:
    """The copies that may still read a place, or write to it for a graph that is gone."""
    return [copy for copy in (place.read, place.written) if copy is not None]


def leave(t: torch.Tensor) -> Leaving:
    return Leaving(t)


def landed(leaving: Leaving) -> torch.Tensor:
    """The bytes on the host."""
    return leaving.land()


def gone(leaving: Leaving) -> torch.Tensor:
    """The bytes on the host."""
    host = leaving.land()
    leaving.give_up()
    return host


def fetch(host: torch.Tensor, shape: list[int], strides: list[int], offset: int, dtype: torch.dtype,
          device: torch.device) -> Coming:
    """shape, strides, offset, dtype: of the tensor in the storage that left."""
    return Coming(host, shape, strides, offset, dtype, device)


def arrive(coming: Coming) -> torch.Tensor:
    """The tensor."""
    return coming.land()


def _is_alone(t: torch.Tensor) -> bool:
    """Has nobody else a hold of its storage?  What a graph that is kept has saved stays for its next backward."""
    storage = t.untyped_storage()
    return holders(storage) <= _OF_STORAGE


def _bytes(t: torch.Tensor) -> torch.Tensor:
    """All of t's storage."""
    return torch.empty(0, dtype=torch.uint8, device=t.device).set_(t.untyped_storage())
