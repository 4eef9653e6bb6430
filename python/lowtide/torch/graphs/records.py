"""Records of a model's graphs, and of the passes that were observed: runs of their forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...frontend.planning.constraints import Constraints
from ...frontend.planning.copies import Step
from ...frontend.planning.report import Report
from ...frontend.planning.sharing import Assignment, GraphToPlan
from ..tensors.storages import Sizes


@dataclass(eq=False)
class GraphRecord:
    """What is known of a compiled graph.

    to_plan: what it takes to plan it (sharing.GraphToPlan), None if no plan can run it.  report, constraints, steps:
    of its plan.  place: of its report among all.
    assignment: what it will be planned with at its next call (sharing.Assignment).  plans: how often it was planned
    with others.
    own: the storages it was given, by the last look.  leaves: gradients that its backward makes, by leaf.  updated:
    parameters that it updates.
    """

    number: int
    to_plan: GraphToPlan | None = None
    report: Report | None = None
    constraints: Constraints | None = None
    steps: list[Step] | None = None
    place: int | None = None
    assignment: Assignment | None = None
    plans: int = 0
    own: Sizes = field(default_factory=dict)
    leaves: Sizes = field(default_factory=dict)
    updated: Sizes = field(default_factory=dict)
    trains: bool = False


@dataclass(eq=False)
class ObservedPass:
    """One run of a graph's forward or backward, and what others held meanwhile.

    waiting: graphs whose forwards have left something, once for each; unplanned: bytes that such a forward left
    of which no plan knows.  own: what the graph was given; stays: the parameters and buffers among it; given: what the
    user gave it beside those, all of one call.  made: bytes of
    what others were given and the model's own code had made.  twice: bytes that the graph is given and a waiting
    forward has left.  old: gradients from before the step, by leaf; new: bytes of those of this step.
    """

    captured: GraphRecord
    backward: bool
    waiting: tuple[GraphRecord, ...]
    unplanned: int
    own: Sizes
    stays: Sizes
    given: Sizes
    made: int
    twice: int
    old: Sizes
    new: int
