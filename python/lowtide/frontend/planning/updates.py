"""Updates of parameters in one call of their optimizer.

An update frees its gradient, so plans make each one as early as they can.  But the host calls the optimizer for each, which takes longer
than the kernels of a small parameter.  So updates wait for later ones as long as the plan's peak allows it (`updates_together`).  Code
makes one call of a group of updates that follow one another (`updates_in_one_call`).  A call may hold the workspaces of all its updates
at once, so groups end where these would exceed the plan's peak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import lowtide

from .copies import COMPUTES, COPIES

_MOST = 16  # updates in one call
_UPDATE = "lowtide.update"


@dataclass
class _Group:
    """Updates in one call, at the place of the last one.  held: bytes of their gradients."""

    ops: list[lowtide.Op] = field(default_factory=list)
    held: int = 0

    def takes(self, op: lowtide.Op, room: int, most_workspace: int | None) -> bool:
        """Can the update be made in the same call, with `room` bytes for its workspace?"""
        workspace = joint_workspace([*self.ops, op])
        return bool(self.ops) and len(self.ops) < _MOST and workspace <= room and (most_workspace is None or workspace <= most_workspace)


def joint_workspace(updates: Iterable[lowtide.Op]) -> int:
    """Bytes that one call for these updates takes at most.

    A call with lists of tensors has the temporaries of all updates at once.  In a loop what the variables of an update hold lives until
    the next one assigns them, so two have temporaries at a time.  Kernels run one after another, each with a workspace of its own.
    """
    at_once, in_turn, of_kernels = [0], [0], [0]
    for op in updates:
        attributes = json.loads(op.attributes or "{}")
        temporaries = attributes.get("temporaries", op.workspace)
        (in_turn if attributes.get("implementation") == "loop" else at_once).append(temporaries)
        of_kernels.append(op.workspace - temporaries)
    return sum(at_once) + sum(sorted(in_turn)[-2:]) + max(of_kernels)


def updates_together(graph: lowtide.Graph, plan: lowtide.Plan, most_workspace: int | None = None) -> list[int] | None:
    """The plan's computations in an order in which updates wait for later ones; None if none can.

    No peak rises above the plan's.  most_workspace: bytes, at most, of a call; None: as many as there is room for.  The plan frees each
    tensor right after its last use, and copies nothing.
    """
    computes: list[int] = []
    live: list[int] = []  # bytes during each
    freed: list[int] = []  # after each
    memory = lowtide.simulate(graph, plan).memory
    for (kind, index, *_), now in zip(plan.steps, memory, strict=True):
        if kind in COMPUTES:
            computes.append(index)
            live.append(now)
            freed.append(0)
        elif kind == "free" and freed:
            freed[-1] += graph.tensor(index).bytes
    peak = max(live, default=0)
    group, groups = _Group(), dict[int, _Group]()  # by the place of the last update
    between = 0  # the most bytes live since then
    last = 0
    for at, index in enumerate(computes):
        op = graph.op(index)
        if op.kind != _UPDATE:
            between = max(between, live[at])
            continue
        if between + group.held <= peak and group.takes(op, peak - group.held - live[at] + op.workspace, most_workspace):
            groups.pop(last, None)
        else:
            group = _Group()
        group.ops.append(op)
        group.held += freed[at]
        groups[at], last, between = group, at, 0
    if all(len(one.ops) < 2 for one in groups.values()):
        return None
    waiting = {op.index for one in groups.values() for op in one.ops}
    order: list[int] = []
    for at, index in enumerate(computes):
        order += [op.index for op in groups[at].ops] if at in groups else [] if index in waiting else [index]
    return order


def updates_in_one_call(graph: lowtide.Graph, plan: lowtide.Plan, most_workspace: int | None = None) -> tuple[tuple[int, ...], ...]:
    """Groups of updates that follow one another in the plan, with no copy between them.

    most_workspace: as of updates_together.  No call takes more than the plan's peak.  An update that is in no group has a call of its own.
    """
    timeline = lowtide.simulate(graph, plan)
    copied = {tensor for kind, tensor, *_ in plan.steps if kind in COPIES}
    groups: list[_Group] = [_Group()]
    before = 0  # bytes live when the group's call begins, with all its gradients
    for (kind, index, *_), now in zip(plan.steps, timeline.memory, strict=True):
        if kind in COMPUTES and (op := graph.op(index)).kind == _UPDATE:
            if not groups[-1].takes(op, timeline.peak - before, most_workspace):
                before = now - op.workspace
                groups.append(_Group())
            groups[-1].ops.append(op)
        elif kind != "free" or index in copied:
            groups.append(_Group())
    return tuple(tuple(op.index for op in group.ops) for group in groups if len(group.ops) > 1)
