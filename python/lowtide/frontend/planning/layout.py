"""How the allocations of a plan lie in one block of a caching allocator.

`prime`: before the first step code takes one block for all that the plan allocates, and gives it back.  So the first requests find
one large free block instead of taking segments of many sizes.  `exact`: that block belongs to the plan alone, and each allocation
above 1 MiB lands at its planned offset, because what best fit would prefer is held meanwhile (best_fit.py).
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

import lowtide

from .best_fit import LARGEST_SMALL, MIB, BestFit, Plug, Request
from .own_events import Event, outside_of, own_events

Places = dict[tuple[Optional[int], Optional[int]], int]  # (step, tensor) -> offset, as of lowtide.Placement

_BLOCK = 512  # every size is a multiple
_SEGMENT, _SMALLEST = 2 * MIB, 10 * MIB  # a block of at least 10 MiB is a segment of its own, of whole 2 MiB
_CLOSE = 1.005  # of the bytes live at once; nothing smaller is looked for
_GAP = 2 * MIB  # a plug and what more room equal requests get
_WORK = 500_000  # of a search for offsets
_ALIGNMENTS = (_BLOCK, _SEGMENT, MIB // 4, MIB)  # of which each gives other offsets
_SHARES = (1.0, 1.01, 1.03, 1.1)  # of the height that is reached in a larger block


@dataclass(frozen=True)
class Arrangement:
    """How a plan's allocations lie in one block.

    block: its bytes.  firsts: the step at which each point begins.  plugs: what is held during each point.  offsets: the place of
    each buffer above 1 MiB (own_events).  missed: how many of them land elsewhere in the block.  height: the end of the highest.
    """

    block: int
    firsts: tuple[int, ...]
    plugs: tuple[tuple[Plug, ...], ...]
    offsets: dict[int, int]
    missed: int
    height: int


def block_size(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None) -> int:
    """Bytes of one block for all that code allocates."""
    return _rounded(_placed(_of_large(graph, plan, barrier), plan).arena)


def arrangement(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None,
                firsts: Sequence[int] | None = None) -> Arrangement | None:
    """The smallest block found in which every allocation of the plan lands, most at planned offsets; None if there is none.

    firsts: the steps before which plugs may change; None: every step that allocates.
    """
    events = own_events(graph, plan, barrier)
    if firsts is None:
        firsts = [step for step, (kind, *_) in enumerate(plan.steps) if kind not in ("free", "offload")]
    large, best = _of_large(graph, plan, barrier, _GAP), None
    planned: Places = {}
    load = math.inf
    for alignment in _ALIGNMENTS:
        placed = _placed(large, plan, alignment)
        offsets = {(step, tensor): offset for step, tensor, offset in placed.offsets}
        found = _smallest(events, placed.arena, offsets, tuple(firsts), best.block if best else None)
        if found is not None:
            best, planned = found, offsets
        load = min(load, placed.load)
        if best is not None and best.block <= _rounded(int(_CLOSE * load)):
            break
    if best is None:
        return None
    return _arranged(events, best.block, planned, tuple(firsts), fewest=True) or best


def _smallest(events: list[Event], arena: int, planned: Places, firsts: tuple[int, ...], below: int | None) -> Arrangement | None:
    """The arrangement in the smallest block that is found for these offsets, smaller than `below`."""
    found = _arranged(events, _rounded(2 * arena), planned, firsts)
    if found is None:
        return None
    for share in _SHARES:  # with less room behind what was allocated some may land elsewhere
        block = _rounded(int(share * found.height))
        if below is not None and block >= below:
            return None
        fitted = _arranged(events, block, planned, firsts)
        if fitted is not None:
            return fitted
    return None


def _placed(graph: lowtide.Graph, plan: lowtide.Plan, alignment: int = _BLOCK) -> lowtide.Placement:
    return lowtide.place(graph, lowtide.Plan(list(plan.steps), machine=plan.machine), alignment=alignment, work=_WORK)


def _of_large(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None, gap: int = 0) -> lowtide.Graph:
    """The graph without the bytes that do not come from the block.  gap: bytes behind each of several allocations of one op, for a plug
    that keeps their places apart while all of them are free."""
    outside = outside_of(graph, barrier)
    sizes = {t.index: 0 if t.index in outside or _rounded_up(t.bytes) <= LARGEST_SMALL else t.bytes for t in graph.tensors}
    workspaces = {op.index: op.workspace if _rounded_up(op.workspace) > LARGEST_SMALL else 0 for op in graph.ops}
    several: set[int] = set()
    for op in graph.ops:
        made = [t for t in op.outputs if sizes[t]]
        if len(made) + bool(workspaces[op.index]) > 1:
            several.update(made)
            workspaces[op.index] += gap if workspaces[op.index] else 0
    pairs = [pair for op in graph.ops for pair in op.in_place]  # what is overwritten is as large as what overwrites it
    while more := {t for pair in pairs for t in pair if not several.isdisjoint(pair)} - several:
        several |= more
    tensors = {t: {"bytes": size + gap * (t in several), "shape": None, "dtype": None} for t, size in sizes.items()}
    return graph.edited(resident_bytes=0, tensors=tensors,
                        ops={op: {"described": False, "workspace": size} for op, size in workspaces.items()})


def _arranged(events: list[Event], size: int, planned: Places, firsts: tuple[int, ...], fewest: bool = False) -> Arrangement | None:
    """The arrangement in a block of that size; None if an allocation finds no room.  fewest: with no more plugs than are needed."""
    block, missed, height = BestFit(size), 0, 0
    plugs: list[tuple[Plug, ...]] = []
    offsets: dict[int, int] = {}
    large = large_of(events)
    events = [event for event in events if event.buffer in large]
    rooms = _rooms(events, planned)
    for group in groups(events, firsts):
        first_free = next((i for i, event in enumerate(group) if not event.bytes), len(group))
        plugs.append(tuple(block.plugs(_requests(group[:first_free], planned, rooms), fewest)))
        held = block.hold(plugs[-1])
        for event in group:
            if not event.bytes:
                block.give(offsets[event.buffer])
                continue
            offset = block.take(_rounded_up(event.bytes))
            if offset is None:
                return None
            offsets[event.buffer] = offset
            height = max(height, offset + _rounded_up(event.bytes))
            missed += offset != planned[event.step, event.tensor]
        for offset in held:
            block.give(offset)
    assert block.is_whole(), "a step frees what it allocates"
    return Arrangement(size, firsts, tuple(plugs), offsets, missed, height)


def _requests(events: list[Event], planned: Places, rooms: dict[int, int]) -> list[Request]:
    """Allocations of one op as requests.  Of equal sizes each gets a little more room than the one before, so that best fit serves them in
    this order, wherever they lie."""
    before: Counter[int] = Counter()
    requests = []
    for event in events:
        size = _rounded_up(event.bytes)
        requests.append(Request(size, planned[event.step, event.tensor], max(rooms[event.buffer], size + _BLOCK * before[size])))
        before[size] += 1
    return requests


def _rooms(events: list[Event], planned: Places) -> dict[int, int]:
    """The bytes that each buffer is to take: up to what comes to lie within 1 MiB behind it, since so few bytes cannot be held."""
    rooms: dict[int, int] = {}
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    live: list[tuple[int, int]] = []  # ends of what is live, and buffers, in order
    for event in events:
        if not event.bytes:
            live.remove((ends[event.buffer], event.buffer))
            continue
        begin, size = planned[event.step, event.tensor], _rounded_up(event.bytes)
        at = bisect.bisect_left(live, (begin, -1)) - 1
        if at >= 0 and begin - live[at][0] <= LARGEST_SMALL:
            below = live[at][1]
            near = begin - begins[below]
            rooms[below] = near if rooms[below] == ends[below] - begins[below] else min(near, rooms[below])
        begins[event.buffer], ends[event.buffer], rooms[event.buffer] = begin, begin + size, size
        bisect.insort(live, (begin + size, event.buffer))
    return rooms


def groups(events: list[Event], firsts: Sequence[int]) -> Iterator[list[Event]]:
    """The events of each point, which ends where the next one begins."""
    ends = [*firsts[1:], None]
    at = 0
    for end in ends:
        begin = at
        while at < len(events) and (end is None or events[at].step < end):
            at += 1
        yield events[begin:at]


def large_of(events: list[Event]) -> set[int]:
    return {event.buffer for event in events if _rounded_up(event.bytes) > LARGEST_SMALL}


def _rounded_up(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _rounded(size: int) -> int:
    """A block that is a segment of its own."""
    return max(_SMALLEST, -(-size // _SEGMENT) * _SEGMENT)
