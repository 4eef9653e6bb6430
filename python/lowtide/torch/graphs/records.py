"""Records of a model's graphs, and of the passes that were observed: runs of their forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...frontend.planning.constraints import Constraints
from ...frontend.planning.report import Report
from ...frontend.planning.schedule import Schedule
from ...frontend.planning.sharing import Assignment, GraphToPlan
from ..tensors.storages import Sizes


@dataclass(eq=False)
class GraphRecord:
    """The record of a compiled graph.

    to_plan: the data for planning it (sharing.GraphToPlan), None if it cannot be planned.  report, constraints, schedule: of its plan.
    place: the index of its report.
    assignment: the terms of its planning at the next call (sharing.Assignment).  plans: how often it was planned with others.
    own: the storages of its inputs, at the last look.  leaves: gradients that its backward makes, by leaf.  updated: parameters that
    it updates.
    """

    number: int
    to_plan: GraphToPlan | None = None
    report: Report | None = None
    constraints: Constraints | None = None
    schedule: Schedule | None = None
    place: int | None = None
    assignment: Assignment | None = None
    plans: int = 0
    own: Sizes = field(default_factory=dict)
    leaves: Sizes = field(default_factory=dict)
    updated: Sizes = field(default_factory=dict)
    trains: bool = False


@dataclass(eq=False)
class ObservedPass:
    """One run of a graph's forward or backward, and the memory that others held meanwhile.

    waiting: graphs with waiting forwards, once for each; unplanned: bytes saved by waiting forwards without a plan.  own: the graph's
    inputs; stays: the parameters and buffers among them; given: the other inputs from the user, of one call.  made: bytes of inputs
    of other graphs that the model's own code made.  twice: bytes that are both an input and saved by a waiting forward.  old:
    gradients from before the step, by leaf; new: bytes of those of this step.
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
