"""What a plan takes from a device, by the model of its allocator, as it comes or laid out in one block (layout.py)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import lowtide

from ..errors import size_text
from ..options import Layout
from .best_fit import LARGEST_SMALL, Plug
from .layout import Arrangement, arrangement, block_size, groups
from .own_events import Event, outside_of, own_events

_KEPT = ("parameter", "state", "constant")  # roles of what is allocated once, not in each step
_STEPS = 6  # of training, over which reserved bytes grow
_OWN, _OTHERS = 1, 0  # pools of the model
_SMALL = 1 << 20  # bytes of small blocks, for parts of workspaces that a graph has as one large one
STANDING = 1 << 40  # the least id of what stands
_WORTH_WORDS = 0.01  # of what is reserved, that other settings save


@dataclass(frozen=True)
class Taken:
    """Bytes that an allocator reserves for a plan, by its model; better: settings that reserve less, and how much, the least first."""

    reserved: int
    better: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class AllocatorState:
    """What an allocator holds when a step is planned.

    events: bring the model of the allocator into the same state (ids above those of a step).  in_use: bytes of blocks in use.
    """

    events: tuple[tuple[Any, ...], ...]
    in_use: int

    def before(self, graph: lowtide.Graph) -> list[tuple[Any, ...]]:
        """Events before the first step: what stands, and what the graph counts as standing and has not been allocated yet."""
        outside = [graph.tensor(t) for t in sorted(outside_of(graph, None))]
        missing = graph.resident_bytes + sum(t.bytes for t in outside) - self.in_use
        made = [t.bytes for t in outside if t.role == "state" and t.bytes]  # by the first step, each by itself
        pieces = [_SMALL, *made, missing - sum(made)] if missing >= sum(made) else [_SMALL, missing]
        return [*self.events, *(("allocate", STANDING - 1 - place, size) for place, size in enumerate(pieces) if size > 0)]

    def beside(self, graph: lowtide.Graph, allocator: str) -> int:
        """Bytes that the allocator reserves for the step without a plan from this state, more than from the beginning; below zero if
        less."""
        return _from_state(graph, None, allocator, self) - lowtide.footprint(graph, allocator=allocator).reserved


def helps(found: Taken) -> str:
    """What would reserve less, in words that go on after others; empty if nothing is worth a word."""
    settings, reserved = found.better[0] if found.better else ("", found.reserved)
    saved = found.reserved - reserved
    return f"; {settings} saves {size_text(saved)}" if saved > _WORTH_WORDS * found.reserved else ""


def taken(graph: lowtide.Graph, plan: lowtide.Plan, allocator: str, layout: Layout | None, barrier: int | None,
          state: AllocatorState | None = None) -> Taken:
    """What the plan takes under these settings of the allocator.  state: of the allocator before the first step; None: it holds nothing."""
    if layout is None:
        found = lowtide.footprint(graph, plan, allocator=allocator)
        if state is None:
            return Taken(found.reserved, found.better)
        reserved = _from_state(graph, plan, allocator, state)
        return Taken(reserved, [(settings, less) for settings, less in found.better if less < reserved])
    arranged = arrangement(graph, plan, barrier) if layout == "exact" else None
    events = primed_events(graph, plan, barrier, state) if arranged is None \
        else arranged_events(graph, plan, barrier, arranged, state)
    return Taken(lowtide.replay_allocations(events, allocator)["peaks"]["reserved"])


def _from_state(graph: lowtide.Graph, plan: lowtide.Plan | None, allocator: str, state: AllocatorState) -> int:
    """Bytes that the allocator reserves for steps from a state in which the graph's inputs stand."""
    # the unplanned step has on the device what is at home on the host
    inputs = [t for t in graph.tensors if t.producer is None and t.bytes and (plan is None or t.home != "host")]
    # allocations in their order: what is kept, before the first step, and then what comes with each step; True for what stands already
    kept = [t.home != "host" for t in inputs if t.role in _KEPT and not t.releasable]
    of_step = [t.home != "host" for t in inputs if t.role not in _KEPT or t.releasable]
    skip = deque([*[True] * bool(graph.resident_bytes), *kept, *of_step])
    skipped: set[int] = set()
    events = state.before(graph)
    for event in lowtide.plan_allocations(graph, plan):
        if event[0] == "allocate" and skip and skip.popleft():
            skipped.add(event[1])
        elif event[0] != "free" or event[1] not in skipped:
            events.append(event)
        if event[0] == "end_step":
            skip = deque(of_step)
    return int(lowtide.replay_allocations(events, allocator)["peaks"]["reserved"])


def cuts_one_block(allocator: str) -> bool:
    """Do requests land in one large block that is free, each in as many bytes as best_fit.py says?"""
    block, first, second = 1 << 40, (11 << 20) + 512, (13 << 20) + 512  # such sizes are rounded up to powers of two, if any are
    events = [("allocate", 0, block), ("free", 0), ("allocate", 1, first), ("allocate", 2, second), ("allocate", 3, LARGEST_SMALL + 1)]
    found = lowtide.replay_allocations(events, allocator, every_event=True)["events"]
    begin = found[0][0]
    expected = [begin, begin + first, begin + first + second]
    return [address for address, _, _ in found[2:]] == expected and found[-1][2] == block


def primed_events(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None, state: AllocatorState | None = None) \
        -> list[tuple[Any, ...]]:
    """What steps of the plan ask of an allocator, after a block for all of it: as lowtide.replay_allocations takes it."""
    model = _Model(graph, barrier, block_size(graph, plan, barrier), _OTHERS, state)
    events = own_events(graph, plan, barrier)
    for _ in range(_STEPS):
        for event in events:
            model.add(event)
        model.end_step()
    return model.events


def arranged_events(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None, arranged: Arrangement,
                    state: AllocatorState | None = None) -> list[tuple[Any, ...]]:
    """The same of an arrangement in a block and a pool that are the plan's own; plugs have negative ids."""
    model = _Model(graph, barrier, arranged.block, _OWN, state)
    events = own_events(graph, plan, barrier)
    for _ in range(_STEPS):
        for plugs, group in zip(arranged.plugs, groups(events, arranged.firsts), strict=True):
            held = model.hold(plugs)
            for event in group:
                model.add(event)
            model.free(held)
        model.end_step()
    return model.events


class _Model:
    """Events for the model of the allocator: what others allocate, in their pool; then a block, taken and given back, in the pool of
    the plan; then its steps."""

    def __init__(self, graph: lowtide.Graph, barrier: int | None, block: int, pool: int, state: AllocatorState | None) -> None:
        self.events: list[tuple[Any, ...]] = [] if state is None else state.before(graph)
        self._pool, self._plugs, self._base = pool, 0, 0
        outside = [] if state is not None else [graph.resident_bytes, *(graph.tensor(t).bytes for t in sorted(outside_of(graph, barrier)))]
        for size in filter(None, outside):
            self.events.append(("allocate", self._base, size, _OTHERS))
            self._base += 1
        self.free(self._plug(block))

    def add(self, event: Event) -> None:
        place = self._base + event.buffer
        self.events.append(("allocate", place, event.bytes, self._pool) if event.bytes else ("free", place))

    def hold(self, plugs: Iterable[Plug]) -> list[int]:
        held: list[int] = []
        spaces: list[int] = []
        for plug in plugs:
            (held if plug.stays else spaces).extend(self._plug(plug.size))
        self.free(spaces)
        return held

    def _plug(self, size: int) -> list[int]:
        self._plugs -= 1
        self.events.append(("allocate", self._plugs, size, self._pool))
        return [self._plugs]

    def free(self, ids: Iterable[int]) -> None:
        self.events += [("free", id_) for id_ in ids]

    def end_step(self) -> None:
        self.events.append(("end_step",))
