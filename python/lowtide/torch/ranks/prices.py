"""Prices that are the same on all ranks: the times of the first rank, the largest workspaces and results of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from hashlib import blake2b

from ...frontend.errors import CaptureError
from .agreement import Agreement

Priced = tuple[int, int, list[int]]  # ticks, workspace, bytes of results: as of frontend.price.Price


class Phase(Enum):
    """Who prices kernels now: all ranks at the same place of their code, the first alone, or nobody, by what the first has told."""

    TOGETHER = auto()
    FIRST = auto()
    TOLD = auto()


class AgreedPrices:
    """table: the prices that are agreed upon, by kind of kernel; a kind has the same text on all ranks."""

    def __init__(self, ranks: Agreement) -> None:
        self._ranks = ranks
        self.table: dict[str, Priced] = {}
        self.phase = Phase.TOGETHER

    def of(self, kinds: list[str], measure: Callable[[], list[Priced]]) -> list[Priced]:
        """The prices of a list of kernels.  measure: their prices on this rank.

        Raises CaptureError on all ranks if they have not the same kernels.
        """
        if self.phase is Phase.TOGETHER:
            all_ = self._ranks.exchange("the prices of a graph's kernels", (_hash(kinds), measure()))
            for rank, (other, _) in zip(self._ranks.ranks, all_, strict=True):
                if other != all_[0][0]:
                    raise self._ranks.on_all(different_graphs(rank, self._ranks.ranks[0]))
            told = [_merged(prices) for prices in zip(*(prices for _, prices in all_), strict=True)]
        elif all(kind in self.table for kind in kinds):
            return [self.table[kind] for kind in kinds]
        else:
            told = [self.table.get(kind, price) for kind, price in zip(kinds, measure(), strict=True)]
        for kind, price in zip(kinds, told, strict=True):
            self.table[kind] = _merged([self.table.get(kind, price), price])
        return told


def different_graphs(rank: int, first: int) -> CaptureError:
    """The refusal of a graph that two ranks have traced differently."""
    return CaptureError(f"rank {rank} has traced another graph than rank {first}, so they cannot have one plan: give all ranks the "
                        "same model, and batches of the same sizes and number types")


def _merged(prices: Sequence[Priced]) -> Priced:
    """The first time, and the most bytes."""
    held = [sizes for _, _, sizes in prices if sizes]
    return prices[0][0], max(workspace for _, workspace, _ in prices), [max(sizes) for sizes in zip(*held, strict=True)]


def _hash(kinds: list[str]) -> str:
    return blake2b("\n".join(kinds).encode(), digest_size=16).hexdigest()
