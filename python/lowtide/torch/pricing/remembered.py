"""The costs of a graph's kernels, kept in case the same graph is lowered again during training."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...frontend.price import Price
from ..ranks.prices import AgreedPrices
from ..tensors.operators import Kernel


class Remembered:
    """A price that measures a list of kernels once.  The same kernels in the same order, of tensors that lie as those did,
    cost what they did; numbers among their arguments may be others.

    agreed: what all ranks agree upon, while they do.
    """

    def __init__(self, price: Price) -> None:
        self._price = price
        self.real = price.real
        self.agreed: AgreedPrices | None = None
        self._kinds: list[object] = []
        self._prices: list[tuple[int, int, list[int]]] = []
        self._next = 0

    def prepare(self, kernels: Sequence[Kernel]) -> None:
        kinds = list(map(_kind, kernels))
        if kinds != self._kinds or len(self._prices) != len(kinds) or self.agreed:
            def measured() -> list[tuple[int, int, list[int]]]:
                self._price.prepare(kernels)
                return list(map(self._price, kernels))

            self._prices = self.agreed.of(list(map(str, kinds)), measured) if self.agreed else measured()
            self._kinds = kinds
        self._next = 0

    def __call__(self, kernel: Kernel) -> tuple[int, int, list[int]]:
        if self._next == len(self._prices):
            self._prices.append(self._price(kernel))
        self._next += 1
        return self._prices[self._next - 1]


def _kind(kernel: Kernel) -> object:
    def lies(t: torch.Tensor) -> object:
        return tuple(map(int, t.shape)), tuple(map(int, t.stride())), t.dtype

    return kernel.operator, [lies(t) for t in (*kernel.read, *kernel.written)]
