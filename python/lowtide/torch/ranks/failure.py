"""A failure of one rank, as it is told to the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...frontend.errors import BudgetError, CaptureError, some


class RankError(RuntimeError):
    """Another rank has failed, was cancelled, is missing, or does something else.  ranks: which, by their numbers in the job."""

    def __init__(self, message: str, ranks: Sequence[int]) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


@dataclass(frozen=True)
class Failure:
    """rank: whose; words: of the error.  kind: of the error that the other ranks raise, with these arguments beside the words.
    left: has the rank left the agreement?  absent: ranks that did not come, all of which is theirs."""

    rank: int
    words: str
    kind: str
    arguments: tuple[Any, ...]
    left: bool
    absent: tuple[int, ...] = ()

    @classmethod
    def of(cls, rank: int, error: BaseException, *, left: bool) -> Failure:
        """The other ranks raise what this one does where Lowtide has refused something, and RankError otherwise."""
        if isinstance(error, RankError):
            return cls(rank, str(error), "", error.ranks, left)
        if isinstance(error, BudgetError):
            return cls(rank, f"rank {rank}: {error}", "budget", (error.floor, error.smallest, error.budget), left)
        if isinstance(error, CaptureError):
            return cls(rank, f"rank {rank}: {error}", "capture", (), left)
        what = "was cancelled" if isinstance(error, KeyboardInterrupt) else f"failed with {type(error).__name__}: {error}"
        return cls(rank, f"rank {rank} {what}", "", (rank,), left)

    @classmethod
    def missing(cls, ranks: list[int], stage: str, seconds: float) -> Failure:
        named = some(list(map(str, ranks)))
        return cls(ranks[0], f"rank{'s' if len(ranks) > 1 else ''} {named} did not come to {stage} within {seconds:g} s, the time "
                   "limit of the process group (init_process_group(timeout=)) and of searches that it may wait for: all ranks make the "
                   "same calls of Lowtide, in the same order", "", tuple(ranks), True, tuple(ranks))

    @classmethod
    def elsewhere(cls, rank: int, its_stage: str, first: int, stage: str) -> Failure:
        return cls(rank, f"rank {rank} has come to {its_stage}, and rank {first} to {stage}: all ranks train the same model, and make "
                   "the same calls of Lowtide", "", (rank, first), True)

    def raised(self) -> Exception:
        if self.kind == "budget":
            return BudgetError(self.words, *self.arguments)
        return CaptureError(self.words) if self.kind == "capture" else RankError(self.words, self.arguments)
