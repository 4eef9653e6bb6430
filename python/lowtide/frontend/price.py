"""Prices of kernels, as lowerings request them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Price(Protocol):
    """What kernels cost: told of all of a graph's, then asked for each: ticks (ns), workspace (bytes), and what
    its results hold (bytes, in the order of their leaves; empty: what they show).  real: can they run here?"""

    real: bool

    def prepare(self, kernels: Sequence[Any]) -> None: ...

    def __call__(self, kernel: Any) -> tuple[int, int, list[int]]: ...
