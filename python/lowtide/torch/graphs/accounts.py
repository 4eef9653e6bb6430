"""The memory of a step at each pass of a graph, and whether it keeps the budget."""

from __future__ import annotations

from ..tensors.storages import Sizes
from .calls import Calls
from .records import GraphRecord, ObservedPass

_PLANNED = "only passes of graphs with a plan are asked about"


class Accounts:
    """Adds up what is held at a pass.

    is_share: is the budget a share of one graph's peak?  first: the graph whose forward begins the present step.
    """

    def __init__(self, calls: Calls, captured_graphs: list[GraphRecord]) -> None:
        self._calls, self._captured_graphs = calls, captured_graphs
        self.is_share = False
        self.first: GraphRecord | None = None

    def fits(self, pass_: ObservedPass, others: int) -> bool:
        """Is the budget kept at a pass with so many bytes of others?"""
        captured = pass_.captured
        if captured.assignment:  # planned, and not called since
            assert captured.to_plan is not None, "it was shared"
            agreed = captured.assignment.constraints
            return captured.to_plan.room(others) <= agreed.resident + (agreed.gradients if pass_.backward else 0)
        return self.peak(pass_, others) <= self.limit(pass_)

    def limit(self, pass_: ObservedPass) -> int:
        """Bytes that the step may take at a pass.  A share was one of the graph's baseline peak, without parameters
        that it was not given."""
        captured = pass_.captured
        unseen = self.is_share and not captured.plans
        staying = self._calls.known.staying(False) if unseen else {}
        assert captured.report is not None, _PLANNED
        return captured.report.budget + _staying_beside(pass_, staying)

    def others(self, pass_: ObservedPass, step: list[ObservedPass], staying: Sizes, now: Sizes) -> int:
        """Bytes beside a pass of a step, what forwards with a plan have saved apart.  now: gradients that stand
        before the next step."""
        given = {key: size for other in step for key, size in other.given.items()}
        stands = _staying_beside(pass_, staying)
        stands += sum(size for key, size in given.items() if key not in pass_.own and key not in staying)
        made = {key for other in step if other.backward for key in other.captured.leaves}
        made = set() if step[0].captured is self.first else made
        old = {key: size for key, size in now.items() if key not in made} | pass_.old
        if old and pass_.captured.trains:  # gradients that add up are the user's own, and said elsewhere
            adding = self._one_model()
            old = {key: size for key, size in old.items() if key not in adding}
        return stands + pass_.made + sum(old.values()) + pass_.new + pass_.unplanned - pass_.twice

    def staying(self) -> Sizes:
        """Memory beside all graphs; the inputs of one kind of step may exist while another step runs."""
        left = self._calls.left()
        return {key: size for key, size in self._calls.known.staying(not self._one_model()).items() if key not in left}

    def _one_model(self) -> set[int]:
        """What steps train, inputs that get a gradient among it, if all steps train the same parameters; empty if
        parts of them are trained in turn."""
        if len(self._calls.trained) > 1:
            return set()
        return {key for captured in self._captured_graphs if captured.trains for key in (*captured.leaves, *captured.own)}

    def peak(self, pass_: ObservedPass, others: int) -> int:
        """The peak of a graph's plan with `others` bytes beside it."""
        captured = pass_.captured
        report = captured.report
        assert report is not None and captured.to_plan is not None, _PLANNED
        own = report.late_peak if pass_.backward else report.early_peak if captured.trains else report.peak
        return own - counted(pass_) + captured.to_plan.room(others)


def _staying_beside(pass_: ObservedPass, staying: Sizes) -> int:
    """Bytes of `staying` that a pass is not given.  Where parameters have got other storages since it was looked at, it
    is given these in the place of those that are gone."""
    gone = sum(size for key, size in pass_.stays.items() if key not in staying)
    return max(0, sum(size for key, size in staying.items() if key not in pass_.own) - gone)


def counted(pass_: ObservedPass) -> int:
    """Bytes that the plan of a pass's graph leaves room for."""
    constraints = pass_.captured.constraints
    assert constraints is not None, _PLANNED
    return constraints.resident + (constraints.gradients if pass_.backward else 0)


def saved(pass_: ObservedPass) -> int:
    """Bytes that waiting forwards hold by their plans."""
    total = 0
    for captured in pass_.waiting:
        limit = captured.assignment.constraints.save_limit if captured.assignment else None
        if captured.report:
            total += captured.report.saved if limit is None else limit
    return total
