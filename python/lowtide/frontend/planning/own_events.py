"""What code allocates and frees in a step of a plan."""

from __future__ import annotations

from typing import NamedTuple

import lowtide


class Event(NamedTuple):
    """An allocation of so many bytes during a step, or a free of that buffer (no bytes).  tensor: None for a workspace."""

    step: int
    buffer: int
    tensor: int | None
    bytes: int


def own_events(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None) -> list[Event]:
    """What code allocates and frees in a step of the plan, in order, and at its end what it has left.

    Without inputs, resident bytes and what `barrier` makes: others allocate these.
    """
    outside = outside_of(graph, barrier)
    events: list[Event] = []
    held: dict[int, int] = {}  # tensor -> buffer
    count = 0

    def allocate(step: int, tensor: int | None, size: int) -> int:
        nonlocal count
        events.append(Event(step, count, tensor, size))
        count += 1
        return count - 1

    step = -1
    for step, (kind, index, *over) in enumerate(plan.steps):
        if kind == "free":
            if index in held:
                events.append(Event(step, held.pop(index), index, 0))
        elif kind == "prefetch":
            if index not in outside and graph.tensor(index).bytes:
                held[index] = allocate(step, index, graph.tensor(index).bytes)
        elif kind != "offload":
            op = graph.op(index)
            pairs = dict(op.in_place)
            kept = {pairs[tensor]: held.pop(tensor) for tensor in over if tensor in held}
            written = {pairs[tensor] for tensor in over}
            for tensor in op.outputs:
                if tensor not in written and tensor not in outside and graph.tensor(tensor).bytes:
                    kept[tensor] = allocate(step, tensor, graph.tensor(tensor).bytes)
            held |= kept
            if op.workspace:
                events.append(Event(step, allocate(step, None, op.workspace), None, 0))
    return events + [Event(step, buffer, tensor, 0) for tensor, buffer in sorted(held.items(), key=lambda item: item[1])]


def outside_of(graph: lowtide.Graph, barrier: int | None) -> set[int]:
    """Tensors that others allocate.  What is at home on the host is fetched by code."""
    made = () if barrier is None else graph.op(barrier).outputs
    return {t.index for t in graph.tensors if t.producer is None and t.home != "host"} | set(made)
