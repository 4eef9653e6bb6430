"""Errors and warnings between a model and its plan."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any


class CaptureError(Exception):
    """The model cannot be captured; the text says why and what to do."""


class BudgetError(Exception):
    """No plan keeps the budget.

    floor: a proven lower bound on the peak, in bytes.  smallest: the smallest peak of a plan found, or None.
    budget: the budget in bytes, None if there is no single figure.
    """

    def __init__(self, message: str, floor: int, smallest: int | None, budget: int | None = None) -> None:
        super().__init__(message)
        self.floor, self.smallest, self.budget = floor, smallest, budget

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.floor, self.smallest, self.budget)

    def with_beside(self, size: int) -> BudgetError:
        """The same of a budget of which so many bytes are for what the allocator holds."""
        if not size:
            return self
        return BudgetError(f"{self}; beside these are {size_text(size)} ({size} bytes) that the allocator holds, which the budget counts",
                           self.floor + size, None if self.smallest is None else self.smallest + size,
                           None if self.budget is None else self.budget + size)


class CallerError(Exception):
    """Carries an exception of a function of the caller (its cause)."""


class LowtideWarning(UserWarning):
    """A graph, or code beside it, runs without a plan; the text gives the reason, and the `reserve` that would count it."""


class OverBudgetWarning(LowtideWarning):
    """Memory beside a graph exceeds the budget: it appeared after planning, or the plan could not know of it."""


def fall_back(reason: str, how: str, otherwise: Any) -> Any:
    """`otherwise`, after a warning with the reason; or CaptureError.  how: "warn" or "error"."""
    words = f"this graph runs without a plan, so no budget is kept: {reason}"
    if how == "error":
        raise CaptureError(words)
    warnings.warn(f"lowtide: {words}", LowtideWarning, stacklevel=3)
    return otherwise


def some(names: Sequence[str], most: int = 6) -> str:
    """Names for people: the first of them, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def size_text(n: int) -> str:
    """Bytes for people: three significant digits, binary units."""
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1000 or unit == "TiB":
            break
        value /= 1024
    return f"{n} B" if unit == "B" else f"{value:.3g} {unit}"
