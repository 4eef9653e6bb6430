"""Plans for which an allocator reserves no more than the budget.

Searches measure their plans by the model of the allocator (lowtide.plan), so the first plan mostly fits.  But searches begin with an
allocator that holds nothing; code cannot make every copy of a plan; and allocations in one block are measured as code only.  If a plan
takes too much then, plan again for a budget that is smaller by the same ratio.  At last take the plan with the fewest live bytes, or
the one with the fewest reserved bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ..errors import BudgetError, size_text
from .taken import Taken


class Planned(Protocol):
    """A plan as code runs it.  taken: what it takes from the device, by the allocator's model."""

    @property
    def taken(self) -> Taken: ...

    @property
    def peak(self) -> int: ...


Plan = TypeVar("Plan", bound=Planned)


def within_reserved(budget: int, first: int, rounds: int, plan: Callable[[int], Plan], leanest: Iterable[Callable[[], Plan]]) -> Plan:
    """The first plan found for which the allocator reserves no more than the budget.

    first: the budget for the first plan; it differs from `budget` where the allocator already holds segments.  rounds: how many plans
    to try, at most, before the leanest.  plan: plans for a budget.  leanest: each gives a plan with few bytes, whatever its time.  All raise
    BudgetError.

    Raises BudgetError if no plan fits.
    """
    tried: list[Plan] = []
    following, refused = first, None
    for _ in range(rounds):
        try:
            tried.append(plan(following))
        except BudgetError as error:
            refused = error
            break
        if tried[-1].taken.reserved <= budget:
            return tried[-1]
        following = min(following - 1, following * budget // tried[-1].taken.reserved)
    for find in leanest:
        try:
            tried.append(find())
        except BudgetError as error:
            refused = refused or error
            continue
        if tried[-1].taken.reserved <= budget:
            return tried[-1]
    if not tried:
        assert refused is not None, "each that found no plan raised it"
        if first >= budget:
            raise refused
        words = f"{refused}; of the budget of {size_text(budget)} ({budget} bytes) the allocator holds the rest"
        raise BudgetError(words, refused.floor, refused.smallest and refused.smallest + budget - first, budget)
    raise _refusal(budget, tried, refused)


def _refusal(budget: int, tried: list[Plan], refused: BudgetError | None) -> BudgetError:
    least = min(tried, key=lambda planned: planned.taken.reserved).taken
    live = min(planned.peak for planned in tried)
    words = (f"no plan was found for which the allocator reserves no more than {size_text(budget)} ({budget} bytes): "
             f"the least found is {size_text(least.reserved)} ({least.reserved} bytes)")
    if least.better:
        settings, reserved = least.better[0]
        words += f", with {settings} {size_text(reserved)}"
    words += f"; the fewest live bytes found are {size_text(live)} ({live} bytes), which footprint='live' limits"
    return BudgetError(words, refused.floor if refused else 0, least.reserved, budget)
