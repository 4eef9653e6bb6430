"""Updates of parameters that run together.

An update frees its gradient, so plans make each one as early as they can.  But the host calls the optimizer for each, which takes longer
than the kernels of a small parameter.  So updates wait for later ones as long as the plan's peak allows it, and code makes one
call of those that follow one another (torch/emission/joined_updates.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import lowtide

_MOST = 16  # updates in one call
_UPDATE = "lowtide.update"
_COMPUTES = ("compute", "compute_in_place")


@dataclass
class _Group:
    """Updates that run at the place of the last one.  held: bytes of their gradients; workspace: of all of them at once."""

    ops: list[int] = field(default_factory=list)
    held: int = 0
    workspace: int = 0


def updates_together(graph: lowtide.Graph, plan: lowtide.Plan, most_workspace: int | None = None) -> list[int] | None:
    """The plan's computations in an order in which updates wait for later ones; None if none can.

    No peak rises above the plan's.  most_workspace: bytes, at most, of the updates of a call; None: as many as there is room for.
    The plan frees each tensor right after its last use, and copies nothing.
    """
    computes: list[int] = []
    live: list[int] = []  # bytes during each
    freed: list[int] = []  # after each
    memory = lowtide.simulate(graph, plan).memory
    for (kind, index, *_), now in zip(plan.steps, memory, strict=True):
        if kind in _COMPUTES:
            computes.append(index)
            live.append(now)
            freed.append(0)
        elif kind == "free" and freed:
            freed[-1] += graph.tensor(index).bytes
    peak = max(live, default=0)
    group, groups = _Group(), dict[int, _Group]()  # by the place of the last update
    between = 0  # the most bytes live since then
    last = 0
    for at, op in enumerate(computes):
        if graph.op(op).kind != _UPDATE:
            between = max(between, live[at])
            continue
        workspace = graph.op(op).workspace
        room = max(between, live[at] + group.workspace) + group.held <= peak and len(group.ops) < _MOST
        if room and (most_workspace is None or group.workspace + workspace <= most_workspace):
            groups.pop(last, None)
        else:
            group = _Group()
        group.ops.append(op)
        group.held += freed[at]
        group.workspace += workspace
        groups[at], last, between = group, at, 0
    if all(len(one.ops) < 2 for one in groups.values()):
        return None
    waiting = {op for one in groups.values() for op in one.ops}
    order: list[int] = []
    for at, op in enumerate(computes):
        order += groups[at].ops if at in groups else [] if op in waiting else [op]
    return order
