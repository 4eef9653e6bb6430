"""The plan with the smallest peak, with recomputation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lowtide

_STEPS = (0.0, 0.2, 0.5, 0.2, 0.1, 0.0)  # from the smallest known peak towards the proven bound, of searches for less memory


@dataclass(frozen=True)
class Limits:
    """Of one search, as lowtide.plan takes them."""

    time: float | None = None
    work: int | None = None
    seed: int = 1
    threads: int = 0

    def share(self, of: float) -> dict[str, Any]:
        """Arguments of a search that has this share of the time.  Work is for each search."""
        return {**vars(self), "time": None if self.time is None else of * self.time}


def smallest(graph: lowtide.Graph, known: int, order: str, techniques: list[str], limits: Limits) -> tuple[lowtide.Outcome | None, int]:
    """The outcome with the smallest peak that is found, None if none is below `known`; and a lower bound on all peaks, proven.

    A search for a budget right below a known peak may find nothing where one for less memory does, so steps differ.
    """
    found, floor = None, 0
    for step in _STEPS:
        if known <= floor:
            break
        budget = known - max(1, int(step * (known - floor)))
        outcome = lowtide.plan(graph, budget, order=order, techniques=techniques, **limits.share(1 / len(_STEPS)))
        floor = max(floor, outcome.floor or 0, budget + 1 if outcome.status == "infeasible" else 0)
        if outcome.plan is not None and outcome.peak is not None:
            found, known = outcome, outcome.peak
    return found, floor
