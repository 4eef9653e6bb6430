"""What a step takes at each pass of a region's forward or backward, and whether that keeps the budget."""

from __future__ import annotations

from ..tensors.storages import Sizes
from .calls import Calls
from .records import ObservedPass, RegionRecord

_PLANNED = "only passes of regions with a plan are asked about"


class Accounts:
    """Adds up what is held at a pass.

    is_share: is the budget a share of one region's peak?  first: the region whose forward begins the present burst.
    """

    def __init__(self, calls: Calls, regions: list[RegionRecord]) -> None:
        self._calls, self._regions = calls, regions
        self.is_share = False
        self.first: RegionRecord | None = None

    def fits(self, pass_: ObservedPass, others: int) -> bool:
        """Is the budget kept at a pass with so many bytes of others?"""
        region = pass_.region
        if region.assignment:  # planned, and not called since
            assert region.to_plan is not None, "it was shared"
            agreed = region.assignment.constraints
            return region.to_plan.room(others) <= agreed.resident + (agreed.gradients if pass_.backward else 0)
        return self.peak(pass_, others) <= self.limit(pass_)

    def limit(self, pass_: ObservedPass) -> int:
        """Bytes that the step may take at a pass.  A share was one of the region's own peak, without parameters
        that it was not given."""
        region = pass_.region
        unseen = self.is_share and not region.plans
        staying = self._calls.known.staying(False) if unseen else {}
        assert region.report is not None, _PLANNED
        return region.report.budget + _staying_beside(pass_, staying)

    def others(self, pass_: ObservedPass, burst: list[ObservedPass], staying: Sizes, now: Sizes) -> int:
        """Bytes beside a pass of a burst, what forwards with a plan have saved apart.  now: gradients that stand
        before the next burst."""
        given = {key: size for other in burst for key, size in other.given.items()}
        stands = _staying_beside(pass_, staying)
        stands += sum(size for key, size in given.items() if key not in pass_.own and key not in staying)
        made = {key for other in burst if other.backward for key in other.region.leaves}
        made = set() if burst[0].region is self.first else made
        old = {key: size for key, size in now.items() if key not in made} | pass_.old
        if old and pass_.region.trains:  # gradients that add up are the user's own, and said elsewhere
            adding = self._one_model()
            old = {key: size for key, size in old.items() if key not in adding}
        return stands + pass_.made + sum(old.values()) + pass_.new + pass_.unplanned - pass_.twice

    def staying(self) -> Sizes:
        """What stands beside all regions; what one kind of step is given may stand while another runs."""
        left = self._calls.left()
        return {key: size for key, size in self._calls.known.staying(not self._one_model()).items() if key not in left}

    def _one_model(self) -> set[int]:
        """What steps train, inputs that get a gradient among it, if all steps train the same parameters; empty if
        parts of them are trained in turn."""
        if len(self._calls.trained) > 1:
            return set()
        return {key for region in self._regions if region.trains for key in (*region.leaves, *region.own)}

    def peak(self, pass_: ObservedPass, others: int) -> int:
        """What the plan of a region takes with so many bytes of others beside it."""
        region = pass_.region
        report = region.report
        assert report is not None and region.to_plan is not None, _PLANNED
        own = report.late_peak if pass_.backward else report.early_peak if region.trains else report.peak
        return own - counted(pass_) + region.to_plan.room(others)


def _staying_beside(pass_: ObservedPass, staying: Sizes) -> int:
    """Bytes of `staying` that a pass is not given.  Where parameters have got other storages since it was looked at, it
    is given these in the place of those that are gone."""
    gone = sum(size for key, size in pass_.stays.items() if key not in staying)
    return max(0, sum(size for key, size in staying.items() if key not in pass_.own) - gone)


def counted(pass_: ObservedPass) -> int:
    """Bytes that the plan of a pass's region leaves room for."""
    constraints = pass_.region.constraints
    assert constraints is not None, _PLANNED
    return constraints.resident + (constraints.gradients if pass_.backward else 0)


def saved(pass_: ObservedPass) -> int:
    """Bytes that waiting forwards hold by their plans."""
    total = 0
    for region in pass_.waiting:
        limit = region.assignment.constraints.save_limit if region.assignment else None
        if region.report:
            total += region.report.saved if limit is None else limit
    return total
