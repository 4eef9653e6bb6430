"""Waiting forwards, and the bytes that they have saved for their backwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..tensors.storages import storages
from .records import GraphRecord

_TURNS = 8  # of other forwards and their backwards, after which a forward that waits is one that somebody keeps


@dataclass(eq=False)
class WaitingForward:
    """A forward that has saved `size` bytes and whose backward has not run.  ref: a storage that only its backward uses, or one of its
    results if there is none; alone: is it the former?  handed_out: storages of its results.  turns: how often other forwards have
    begun after a backward since.
    """

    captured: GraphRecord
    ref: StorageWeakRef
    alone: bool
    size: int
    handed_out: tuple[int, ...]
    turns: int = 0


class WaitingForwards:
    """All of one model's, in the order in which they ran."""

    def __init__(self) -> None:
        self._all: list[WaitingForward] = []

    def add(self, captured: GraphRecord, kept: torch.Tensor, alone: bool, size: int, handed_out: Iterable[Any]) -> None:
        """A forward of the graph has left `size` bytes; kept: a tensor of WaitingForward.ref."""
        self._all.append(WaitingForward(captured, StorageWeakRef(kept.untyped_storage()), alone, size,
                                        tuple(storages(handed_out))))

    def all(self) -> list[WaitingForward]:
        """The waiting forwards whose tensors existed at the last `prune`."""
        return self._all

    def prune(self) -> None:
        """Forget those that were dropped."""
        if any(w.ref.expired() for w in self._all):
            self._all = [w for w in self._all if not w.ref.expired()]

    def turn(self) -> None:
        """Another forward begins, after a backward."""
        for w in self._all:
            w.turns += 1

    def is_any(self) -> bool:
        """Is there a forward that waits for its backward in this step, and is not kept by the caller?"""
        return any(w.turns < _TURNS for w in self._all)

    def take(self, captured: GraphRecord, args: list[Any]) -> WaitingForward | None:
        """The one whose backward runs with these arguments, which waits no more."""
        mine = [w for w in self._all if w.captured is captured]
        if len(mine) > 1:
            given = set(storages(args))
            mine = [w for w in mine if w.ref.cdata in given] or mine
        if not mine:
            return None
        self._all.remove(mine[-1])
        return mine[-1]

    def put_back(self, taken: WaitingForward) -> None:
        """It may be kept for another backward."""
        self._all.append(taken)

    def bytes(self) -> int:
        """Bytes that forwards have left for backwards that are still to come."""
        self.prune()
        return sum(w.size for w in self._all)

    def handed_out(self) -> set[int]:
        """Storages of their results."""
        return {key for w in self._all for key in w.handed_out}
