"""One plan on all ranks, while they plan the same model at one explicit call.

Ranks compare the hashes of their graphs, and take the times of the first rank, the largest workspaces, the largest memory of others
and the smallest budget.  The first rank searches.  It hands out what its searches have found (frontend/planning/answers.py), and
the others plan with these answers: they verify each plan on their own graphs and search nothing.  At the end all compare the steps.

All ranks run the same code, so each stage is an exchange at the same place.  A refusal on one rank is one on all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, TypeVar

from ...frontend.errors import CaptureError
from ...frontend.options import Counted
from ...frontend.planning.answers import Answers
from ...frontend.planning.constraints import Constraints
from ...frontend.planning.report import Report
from ...frontend.planning.schedule import Schedule
from ...frontend.planning.sharing import Assignment, GraphToPlan, shared_bytes
from .agreement import Agreement
from .failure import RankError
from .prices import AgreedPrices, Phase, Priced, different_graphs

Value = TypeVar("Value")

_SEARCHES = 10  # that may each take the time of a plan before the first rank has its answers


class OnePlan:
    """ranks: who agrees.  prices: of kernels."""

    def __init__(self, ranks: Agreement) -> None:
        self.ranks, self.prices = ranks, AgreedPrices(ranks)
        self._more = 0.0

    def begin(self, options: Mapping[str, object], seconds: float | None) -> None:
        """Plan by these options; seconds: as of `allow`.

        Raises RankError on all ranks if an option has another value on one of them.
        """
        self.allow(seconds)
        mine = {name: repr(value) for name, value in options.items()}
        values = self.ranks.exchange("the options of a plan", mine)
        for rank, theirs in zip(self.ranks.ranks, values, strict=True):
            for name in mine:
                if theirs.get(name) != values[0][name]:
                    raise RankError(f"rank {rank} is given {name}={theirs.get(name)} and rank {self.ranks.ranks[0]} {name}={values[0][name]}: "
                                    "all ranks take the same options, budget and reserve apart", (rank,))

    def allow(self, seconds: float | None) -> None:
        """seconds: that one search may take, beyond the limit of an exchange."""
        self._more = _SEARCHES * (seconds or 0.0)

    def link(self, told: Mapping[str, Any]) -> tuple[str | None, int | None]:
        """The link to the host and the bytes there that all ranks plan with; told: what this rank's plans are told (Options.planning)."""
        links = self.ranks.exchange("the link to the host", (told.get("link"), told.get("host_budget")))
        return links[0][0], min((room for _, room in links if room is not None), default=None)

    def terms(self, graph: str, constraints: Constraints, budget: int | str, counted: Counted,
              in_bytes: Callable[[Constraints, Counted, int | str], int]) -> tuple[Constraints, int | str, Counted]:
        """The constraints and the budget that hold for all ranks, and what the first one counts by.

        graph: the hash of this rank's.  in_bytes: a budget, given these.  Raises CaptureError on all ranks if one has another graph.
        """
        told = self._of_same("the hash of a graph", graph, (constraints, budget, counted))
        agreed = _largest([constraints for constraints, _, _ in told])
        counted = told[0][2]
        return agreed, _smallest([budget for _, budget, _ in told], lambda budget: in_bytes(agreed, counted, budget)), counted

    def shared(self, share: Callable[[list[GraphToPlan], int, int | str], dict[str, Assignment]], calls: list[GraphToPlan], held: int,
               budget: int | str) -> dict[str, Assignment]:
        """What `share` returns on the first rank, for the memory of all and the smallest budget.

        calls: the graphs that are called one after another.  held: bytes of the model and its inputs.
        """
        hashes = " ".join(captured.key for captured in calls)
        mine = [(captured.resident, captured.gradients, captured.covers) for captured in calls]
        told = self._of_same("the hashes of graphs that share a budget", hashes, (mine, held, budget))
        most = [tuple(map(max, zip(*of_one, strict=True))) for of_one in zip(*(others for others, _, _ in told), strict=True)]
        calls = [replace(captured, resident=resident, gradients=gradients, covers=covers)
                 for captured, (resident, gradients, covers) in zip(calls, most, strict=True)]
        held = max(held for _, held, _ in told)
        budget = _smallest([budget for _, _, budget in told], lambda budget: shared_bytes(calls, budget, held))
        return self.first("the shares of a budget", lambda: share(calls, held, budget))

    def _of_same(self, stage: str, hash_: str, value: Value) -> list[Value]:
        """The values of all ranks that belong to the same hash.  Raises CaptureError on all ranks if one has another."""
        told = self.ranks.exchange(stage, (hash_, value))
        for rank, (other, _) in zip(self.ranks.ranks, told, strict=True):
            if other != told[0][0]:
                raise self.ranks.on_all(different_graphs(rank, self.ranks.ranks[0]))
        return [value for _, value in told]

    def first(self, stage: str, decide: Callable[[], Value]) -> Value:
        """What the first rank decides, which may search for a plan."""
        value: Value = self.ranks.first(stage, self._priced(Phase.FIRST, decide), more=self._more)
        return value

    def planned(self, plan: Callable[[Answers], tuple[Schedule, Report]]) -> tuple[Schedule, Report]:
        """What `plan` returns, with the same steps on all ranks.  Raises BudgetError and CaptureError on all of them."""
        made: list[tuple[Schedule, Report]] = []

        def decide() -> tuple[Answers, dict[str, Priced]]:
            answers = Answers()
            made.append(plan(answers))
            return answers, self.prices.table

        answers, self.prices.table = self.first("the plan of a graph", decide)
        error = None
        try:
            planned = made[0] if made else self._priced(Phase.TOLD, lambda: plan(answers))()
        except Exception as raised:
            error = raised
        mine = None if error else blake2b(repr(planned[0].steps).encode(), digest_size=16).hexdigest()
        steps = self.ranks.exchange("the steps of a plan", mine, error=error)
        for rank, theirs in zip(self.ranks.ranks, steps, strict=True):
            if theirs != steps[0]:
                raise RankError(f"rank {rank} has verified other steps than those of rank {self.ranks.ranks[0]}", (rank,))
        return planned

    def reason(self, reason: str | None) -> str | None:
        """Why all ranks run without a plan: this one's reason, or the first of the others."""
        reasons = self.ranks.exchange("the graphs of a model", reason)
        others = (f"rank {rank}: {theirs}" for rank, theirs in zip(self.ranks.ranks, reasons, strict=True) if theirs)
        return reason or next(others, None)

    def refused(self, error: CaptureError) -> CaptureError:
        """This rank cannot plan a graph: tell the others, unless they know.  The error to go on with.  Raises RankError."""
        if self.ranks.over is not None:
            raise self.ranks.over
        known, self.ranks.known = self.ranks.known, None
        if known is not None:
            return error
        try:
            self.ranks.exchange("a refusal", error=error)
        except CaptureError as raised:
            self.ranks.known = None
            return raised
        raise AssertionError("an exchange with an error raises one")

    def _priced(self, phase: Phase, make: Callable[[], Value]) -> Callable[[], Value]:
        def priced() -> Value:
            self.prices.phase = phase
            try:
                return make()
            finally:
                self.prices.phase = Phase.TOGETHER

        return priced


def _largest(constraints: list[Constraints]) -> Constraints:
    """Constraints that hold for all of these: the most memory of others, and the least that may be saved."""
    limits = [c.save_limit for c in constraints if c.save_limit is not None]
    return Constraints(max(c.resident for c in constraints), max(c.gradients for c in constraints), min(limits, default=None),
                       max(c.saved_earlier for c in constraints))


def _smallest(budgets: list[int | str], in_bytes: Callable[[int | str], int]) -> int | str:
    """The smallest budget, as it is where all are equal."""
    return budgets[0] if len(set(budgets)) == 1 else min(map(in_bytes, budgets))
