"""Plans for which an allocator reserves no more than the budget.

Planners know live bytes; what is reserved beyond them differs from plan to plan.  The rules are those of the core
(src/lowtide/driver/footprint.cpp), for plans as code runs them: if a plan's allocator reserves too much, plan again for live
bytes that are smaller by the same ratio.  If there is no such plan, or once a plan fits, try a budget between.  If no round
finds a plan that fits, the one with the fewest live bytes may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ..errors import BudgetError, size_text
from .taken import Taken

_ROUNDS = 8  # plans to try, at most, before the one with the fewest live bytes
_NARROW = 50  # a part of the budget, within which budgets of live bytes are the same


class Planned(Protocol):
    """A plan as code runs it.  taken: what it takes from the device, by the allocator's model."""

    @property
    def taken(self) -> Taken: ...

    @property
    def peak(self) -> int: ...

    @property
    def duration(self) -> int: ...


Plan = TypeVar("Plan", bound=Planned)


def within_reserved(first: Plan, budget: int, floor: int, plan: Callable[[int, int, Plan | None], Plan]) -> Plan:
    """The shortest plan found for which the allocator reserves no more than the budget.

    first: planned for as many live bytes.  floor: of live bytes.  plan: plans for fewer live bytes, in the given round, from a known
    plan that keeps them; raises BudgetError.  Raises BudgetError if no plan fits.
    """
    return _Rounds(first, budget, floor, plan).run()


class _Rounds(Generic[Plan]):
    """live: the budget of live bytes of a round.  missed: the smallest one for which the plan did not fit.  fitted, empty: the largest
    for which it did, and for which there was no plan.  smallest: the fewest live bytes of a plan that is known of."""

    def __init__(self, first: Plan, budget: int, floor: int, plan: Callable[[int, int, Plan | None], Plan]) -> None:
        self._first, self._budget, self._floor, self._plan = first, budget, floor, plan
        self._missed, self._fitted, self._empty = budget, 0, 0
        self._smallest: int | None = None
        self._best: Plan | None = None
        self._least = first

    def run(self) -> Plan:
        live = self._judge(self._first, self._budget)
        for number in range(1, _ROUNDS):
            if live is None:
                break
            live = self._round(live, number)
        if self._best is None and self._smallest is not None:
            self._round(self._smallest, _ROUNDS)
        if self._best is None:
            raise self._refusal()
        return self._best

    def _round(self, live: int, number: int) -> int | None:
        try:
            planned = self._plan(live, number, self._best)
        except BudgetError as error:
            self._empty = max(self._empty, live)
            if error.smallest is not None:  # nothing smaller was found, however long it takes
                self._smallest = min(error.smallest, self._smallest or error.smallest)
                self._empty = max(self._empty, self._smallest - 1)
            return self._between()
        return self._judge(planned, live)

    def _judge(self, planned: Plan, live: int) -> int | None:
        """The budget of live bytes of the next round; None if there is none."""
        taken = planned.taken.reserved
        if taken < self._least.taken.reserved:
            self._least = planned
        if taken <= self._budget:
            self._fitted = max(self._fitted, live)
            if self._best is None or planned.duration < self._best.duration:
                self._best = planned
            return None if live >= self._budget else self._between()
        self._missed = min(self._missed, live)
        following = planned.peak * self._budget // taken
        return following if max(self._fitted, self._empty, self._floor) < following < self._missed else self._between()

    def _between(self) -> int | None:
        low = max(self._fitted, self._empty, self._floor)
        return low + (self._missed - low) // 2 if self._missed - low > self._budget // _NARROW else None

    def _refusal(self) -> BudgetError:
        least = self._least.taken
        words = (f"no plan was found for which the allocator reserves no more than {size_text(self._budget)} ({self._budget} bytes); "
                 f"the least found is {size_text(least.reserved)} ({least.reserved} bytes)")
        if least.better:
            settings, reserved = least.better[0]
            words += f", with {settings} {size_text(reserved)}"
        return BudgetError(f"{words}; footprint='live' limits what is allocated", self._floor, least.reserved, self._budget)
