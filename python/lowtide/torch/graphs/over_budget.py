"""The memory of a model's steps beyond the budget, reported once, with one `reserve` that covers all of it.

A step may exceed the budget for several reasons: other forwards wait, code between the graphs saved tensors, a loss is
computed behind the last graph.  Each reason alone would give a separate figure.  They are collected until the first backward
begins, when most waiting memory is known; memory beside the following backwards is computed in advance.  If forwards wait, half
of their memory is added, since the number of graphs may change from step to step.  Memory within a reported figure is not
reported again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...frontend.errors import LowtideWarning, OverBudgetWarning, size_text
from .accounts import Accounts, counted
from .records import ObservedPass


@dataclass(frozen=True)
class Cause:
    """Why a step may take more than the budget, what to do, and the `reserve` that would count it."""

    category: type[LowtideWarning]
    words: str
    remedy: str
    reserve: int


class OverBudget:
    """The causes of one model's steps.  advised: the largest `reserve` that a warning has named."""

    def __init__(self) -> None:
        self.advised = 0
        self._worst: tuple[int, ObservedPass, int, str] | None = None  # bytes over, pass, those of others, outlook

    def meet(self, accounts: Accounts, pass_: ObservedPass, others: int, outlook: str) -> None:
        """A pass breaks the budget with so many bytes of others beside it.  outlook: what becomes of the next steps."""
        over = accounts.peak(pass_, others) - accounts.limit(pass_)
        if self._worst is None or over > self._worst[0]:
            self._worst = over, pass_, others, outlook

    def say(self, accounts: Accounts, more: list[Cause], to_come: int, waiting: int) -> tuple[type[LowtideWarning], str] | None:
        """The warning, if there is a new one.  more: other causes.  to_come: the most bytes beside a backward that has not run
        yet.  waiting: bytes among these that waiting forwards have saved."""
        worst, self._worst = self._worst, None
        causes = list(more)
        if worst and max(worst[2], to_come) > self.advised:
            _, pass_, others, outlook = worst
            causes.append(_of_others(accounts, pass_, others, outlook, max(others, to_come) + waiting // 2))
        if not causes:
            return None
        reserve = self.advised = max(self.advised, *(cause.reserve for cause in causes))
        over = any(cause.category is OverBudgetWarning for cause in causes)
        causes.sort(key=lambda cause: cause.category is not OverBudgetWarning)
        words = "; ".join(cause.words for cause in causes)
        remedies = ". ".join(dict.fromkeys(cause.remedy for cause in causes))
        return (OverBudgetWarning if over else LowtideWarning,
                f"lowtide: {'the budget is not kept: ' if over else ''}{words}. {remedies}, or set reserve={reserve}")


def _of_others(accounts: Accounts, pass_: ObservedPass, others: int, outlook: str, reserve: int) -> Cause:
    report = pass_.captured.report
    assert report is not None, "only passes of graphs with a plan are met"
    words = (f"others hold {size_text(others)} ({others} bytes) beside the {'backward' if pass_.backward else 'forward'} of "
             f"{report.name}, and its plan counts {size_text(counted(pass_))} of them: this step can take "
             f"{size_text(accounts.peak(pass_, others))} of {size_text(accounts.limit(pass_))}")
    return Cause(OverBudgetWarning, words, f"{outlook} lowtide.torch.optimize with example_inputs plans all graphs together "
                 "before the first step", reserve)
