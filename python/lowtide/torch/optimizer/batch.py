"""Parameters of one optimizer that are updated together, by its groups."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

InGroup = tuple[dict[str, Any], list[torch.Tensor]]  # a group of an optimizer, and parameters of it


@dataclass(frozen=True, eq=False)
class Batch:
    """groups: which hold the parameters.  refs: to the parameters, by their ids."""

    parameters: tuple[torch.Tensor, ...]
    groups: tuple[InGroup, ...]
    refs: dict[int, weakref.ref[torch.Tensor]]

    @staticmethod
    def of(pairs: Iterable[tuple[dict[str, Any], torch.Tensor]]) -> Batch:
        """Parameters, each with its group."""
        pairs = list(pairs)
        groups: dict[int, InGroup] = {}
        for group, p in pairs:
            groups.setdefault(id(group), (group, []))[1].append(p)
        return Batch(tuple(p for _, p in pairs), tuple(groups.values()), {id(p): weakref.ref(p) for _, p in pairs})
