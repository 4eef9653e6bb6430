"""Prices of kernels, as lowerings request them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Price(Protocol):
    """Prices of kernels.  It first receives all kernels of a graph, then returns for each: ticks (ns), workspace (bytes), and the bytes
    that its results hold, in the order of their leaves (empty: as their shapes say).  real: can kernels run here?
    """

    real: bool

    def prepare(self, kernels: Sequence[Any]) -> None: ...

    def __call__(self, kernel: Any) -> tuple[int, int, list[int]]: ...
