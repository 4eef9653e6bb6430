"""The search for a plan whose reserved bytes keep a budget, on plans that are made up."""

from dataclasses import dataclass

import pytest
from lowtide.frontend.errors import BudgetError
from lowtide.frontend.planning.reserved import within_reserved
from lowtide.frontend.planning.taken import Taken

SETTINGS = "expandable_segments:True"


@dataclass(frozen=True)
class Planned:
    peak: int
    duration: int
    taken: Taken


class Planner:
    """Plans whose peak is the budget, and which take longer the smaller it is; nothing is planned below `smallest`.

    reserved: the function from their peaks to the bytes that are reserved.  asked: the budgets, with the round and the plan that is
    known."""

    def __init__(self, smallest, reserved):
        self.smallest, self.reserved, self.asked = smallest, reserved, []

    def made(self, live):
        taken = self.reserved(live)
        return Planned(live, 10**9 // live, Taken(taken, [(SETTINGS, live)] if taken > live else []))

    def __call__(self, live, number, known):
        self.asked.append((live, number, known))
        if live < self.smallest:
            raise BudgetError("there is none", 0, self.smallest, live)
        return self.made(live)

    def run(self, budget, floor=0):
        return within_reserved(self.made(budget), budget, floor, self)


def test_a_first_plan_that_fits_is_taken():
    planner = Planner(1, lambda peak: peak)
    assert planner.run(1000).peak == 1000 and not planner.asked


def test_live_bytes_fall_by_the_ratio_and_then_rise_as_far_as_plans_fit():
    planner = Planner(1, lambda peak: 13 * peak // 10 if peak > 800 else 12 * peak // 10)
    found = planner.run(1000)
    budgets = [live for live, _, _ in planner.asked]
    assert budgets[0] == 769 and found.taken.reserved <= 1000 and 780 <= found.peak == max(b for b in budgets if planner.reserved(b) <= 1000)
    assert all(live > 769 and known is not None for live, _, known in planner.asked[1:]), "between, from the plan that fits"
    assert [number for _, number, _ in planner.asked] == [*range(1, len(budgets) + 1)] and len(budgets) < 8


@pytest.mark.parametrize("gap", [1, 3, 10, 40])
def test_the_plan_with_the_fewest_live_bytes_is_tried_before_giving_up(gap):
    """... which is the only one that fits, whatever lies between it and the budget."""
    planner = Planner(1000 - gap, lambda peak: 1000 if peak == 1000 - gap else peak + 200)
    assert planner.run(1000).peak == 1000 - gap
    assert len(planner.asked) <= 8


def test_reserved_bytes_that_do_not_fall_with_live_ones_are_looked_at_plan_by_plan():
    planner = Planner(500, lambda peak: 990 if 700 <= peak <= 760 else peak + 400)
    assert planner.run(1000).taken.reserved == 990


def test_no_plan_says_the_least_and_what_would_help():
    planner = Planner(900, lambda peak: peak + 200)
    with pytest.raises(BudgetError, match=f"least found is .*1100 bytes.*, with {SETTINGS} .*footprint='live'") as caught:
        planner.run(1000)
    assert caught.value.smallest == 1100 and caught.value.budget == 1000
    assert planner.asked[-1][0] == 900 and len(planner.asked) <= 8


def test_nothing_is_planned_below_the_floor():
    planner = Planner(1, lambda peak: 3 * peak)
    with pytest.raises(BudgetError, match="no plan was found"):
        planner.run(1000, floor=600)
    assert all(live >= 600 for live, _, _ in planner.asked)
