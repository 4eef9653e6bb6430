"""The optimizers and groups that the parameters of a graph are in, looked up once for as long as they stay there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from ..step_errors import UpdateError
from .batch import Batch
from .updater import Updater


class Call(NamedTuple):
    """One call of an optimizer.  places: of its updates among those of several optimizers."""

    updater: Updater
    places: tuple[int, ...]
    batch: Batch


class Assigned:
    """slots: a graph's parameters by the place of the input.  updaters: of the optimizers."""

    def __init__(self, slots: dict[int, torch.Tensor], updaters: Sequence[Updater]) -> None:
        self._slots, self._groups = slots, [updater.groups() for updater in updaters]
        self._calls: dict[tuple[int, ...], list[Call]] = {}
        self.updater_of: dict[int, Updater] = {}  # by the parameter's id
        pairs: dict[Updater, list[int]] = {}
        for slot, p in slots.items():
            updater = next((u for u, groups in zip(updaters, self._groups, strict=True) if id(p) in groups), None)
            if updater is not None:
                self.updater_of[id(p)] = updater
                pairs.setdefault(updater, []).append(slot)
        self.found = [(updater, self._batch(updater, mine)) for updater, mine in pairs.items()]

    def _batch(self, updater: Updater, slots: Sequence[int]) -> Batch:
        groups = updater.groups()
        return Batch.of((groups[id(self._slots[slot])], self._slots[slot]) for slot in slots)

    def is_of(self, slots: dict[int, torch.Tensor], updaters: Sequence[Updater]) -> bool:
        """Are these still the slots, and is every parameter in the group in which it was?"""
        return slots is self._slots and all(updater.groups() is groups for updater, groups in zip(updaters, self._groups, strict=True))

    def check(self) -> None:
        """Raises UpdateError for a parameter that nothing updates."""
        for p in self._slots.values() if len(self.updater_of) < len(self._slots) else ():
            if id(p) not in self.updater_of:
                raise UpdateError(f"update: a parameter of shape {list(p.shape)} is in no group of the optimizer any more: "
                                  "compile the model again, with the optimizer that it is to be updated by")

    def calls(self, slots: tuple[int, ...]) -> list[Call]:
        """The calls that make the updates at these places, one of each optimizer."""
        known = self._calls.get(slots)
        if known is None:
            places: dict[Updater, list[int]] = {}
            for place, slot in enumerate(slots):
                places.setdefault(self.updater_of[id(self._slots[slot])], []).append(place)
            known = self._calls[slots] = [Call(updater, tuple(mine), self._batch(updater, [slots[place] for place in mine]))
                                          for updater, mine in places.items()]
        return known
