"""The search for a plan whose reserved bytes keep a budget, on plans that are made up."""

from dataclasses import dataclass

import pytest
from lowtide.frontend.errors import BudgetError
from lowtide.frontend.planning.reserved import within_reserved
from lowtide.frontend.planning.taken import Taken

SETTINGS = "expandable_segments:True"
ROUNDS = 4


@dataclass(frozen=True)
class Planned:
    peak: int
    taken: Taken


class Planner:
    """Plans whose peak is the budget; nothing is planned below `smallest`.

    reserved: the function from their peaks to the bytes that are reserved.  asked: the budgets."""

    def __init__(self, smallest, reserved):
        self.smallest, self.reserved, self.asked = smallest, reserved, []

    def made(self, live):
        taken = self.reserved(live)
        return Planned(live, Taken(taken, [(SETTINGS, live)] if taken > live else []))

    def plan(self, live):
        self.asked.append(live)
        if live < self.smallest:
            raise BudgetError("there is none", self.smallest // 2, self.smallest, live)
        return self.made(live)

    def leanest(self):
        self.asked.append("leanest")
        return self.made(self.smallest)

    def run(self, budget, rounds=ROUNDS):
        return within_reserved(budget, budget, rounds, self.plan, [self.leanest])


def test_a_first_plan_that_fits_is_taken():
    planner = Planner(1, lambda peak: peak)
    assert planner.run(1000).peak == 1000 and planner.asked == [1000]


def test_budgets_fall_by_the_ratio_until_a_plan_fits():
    planner = Planner(1, lambda peak: peak + peak // 4 if peak > 700 else peak + 290)
    assert planner.run(1000).taken.reserved <= 1000
    assert planner.asked == [1000, 800, 800] or planner.asked == [1000, 800]


@pytest.mark.parametrize("rounds", [1, ROUNDS])
def test_the_plan_with_the_fewest_live_bytes_is_tried_before_giving_up(rounds):
    planner = Planner(500, lambda peak: 1000 if peak == 500 else peak + 600)
    assert planner.run(1000, rounds).peak == 500
    assert planner.asked[-1] == "leanest" and len(planner.asked) <= rounds + 1


def test_each_way_to_a_lean_plan_is_tried_before_giving_up():
    planner = Planner(500, lambda peak: 900 if peak == 600 else peak + 600)
    found = within_reserved(1000, 1000, 1, planner.plan, [planner.leanest, lambda: planner.made(600)])
    assert found.peak == 600 and planner.asked == [1000, "leanest"]


def test_the_first_plan_may_be_for_another_budget_than_is_kept():
    planner = Planner(1, lambda peak: peak + 100)  # of what the allocator holds
    assert within_reserved(1000, 900, 1, planner.plan, [planner.leanest]).peak == 900 and planner.asked == [900]


def test_no_plan_says_the_least_of_both_and_what_would_help():
    planner = Planner(900, lambda peak: peak + 200)
    with pytest.raises(BudgetError, match=f"least found is .*1100 bytes.*, with {SETTINGS} .*900 bytes.*footprint='live'") as caught:
        planner.run(1000)
    assert caught.value.smallest == 1100 and caught.value.budget == 1000


def test_what_no_plan_keeps_in_live_bytes_is_said_in_reserved_ones():
    planner = Planner(2000, lambda peak: peak + 200)
    with pytest.raises(BudgetError, match="least found is .*2200 bytes") as caught:
        planner.run(1000)
    assert caught.value.smallest == 2200 and caught.value.floor == 1000 and planner.asked == [1000, "leanest"]


def test_the_refusal_of_the_search_stands_where_nothing_is_known_of_the_fewest_live_bytes():
    planner = Planner(2000, lambda peak: peak)

    def none():
        raise BudgetError("not even without a budget", 0, None, 1000)

    with pytest.raises(BudgetError, match="there is none"):
        within_reserved(1000, 1000, ROUNDS, planner.plan, [none, none])
    with pytest.raises(BudgetError, match="there is none; of the budget of .*1000 bytes. the allocator holds the rest") as refused:
        within_reserved(1000, 900, ROUNDS, planner.plan, [none])
    assert refused.value.budget == 1000 and refused.value.smallest == 2100
