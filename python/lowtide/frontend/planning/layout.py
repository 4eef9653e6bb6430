"""What a plan takes from a device, and how its allocations lie there.

`prime`: before the first step code takes one block for all that the plan allocates, and gives it back.  So the first requests find
one large free block instead of taking segments of many sizes.  `exact`: that block belongs to the plan alone, and each allocation
above 1 MiB lands at its planned offset, because what best fit would prefer is held meanwhile (best_fit.py).
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Optional

import lowtide

from ..errors import size_text
from .best_fit import LARGEST_SMALL, MIB, BestFit, Plug, Request

Layout = Literal["prime", "exact"]
Places = dict[tuple[Optional[int], Optional[int]], int]  # (step, tensor) -> offset, as of lowtide.Placement

STEPS = 6  # of training, over which reserved bytes grow
_BLOCK = 512  # every size is a multiple
_SEGMENT, _SMALLEST = 2 * MIB, 10 * MIB  # a block of at least 10 MiB is a segment of its own, of whole 2 MiB
_CLOSE = 1.005  # of the bytes live at once; nothing smaller is looked for
_GAP = 2 * MIB  # a plug and what more room equal requests get
_WORK = 500_000  # of a search for offsets
_ALIGNMENTS = (_BLOCK, _SEGMENT, MIB // 4, MIB)  # of which each gives other offsets
_SHARES = (1.0, 1.01, 1.03, 1.1)  # of the height that is reached in a larger block
_OWN, _OTHERS = 1, 0  # pools of the model
_WORTH_WORDS = 0.01  # of what is reserved, that other settings save


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
    outside = _outside(graph, barrier)
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


def _outside(graph: lowtide.Graph, barrier: int | None) -> set[int]:
    """Tensors that others allocate.  What is at home on the host is fetched by code."""
    made = () if barrier is None else graph.op(barrier).outputs
    return {t.index for t in graph.tensors if t.producer is None and t.home != "host"} | set(made)


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
    outside = _outside(graph, barrier)
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
    large = _large(events)
    events = [event for event in events if event.buffer in large]
    rooms = _rooms(events, planned)
    for group in _groups(events, firsts):
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


def _groups(events: list[Event], firsts: Sequence[int]) -> Iterator[list[Event]]:
    """The events of each point, which ends where the next one begins."""
    ends = [*firsts[1:], None]
    at = 0
    for end in ends:
        begin = at
        while at < len(events) and (end is None or events[at].step < end):
            at += 1
        yield events[begin:at]


def _large(events: list[Event]) -> set[int]:
    return {event.buffer for event in events if _rounded_up(event.bytes) > LARGEST_SMALL}


def _rounded_up(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _rounded(size: int) -> int:
    """A block that is a segment of its own."""
    return max(_SMALLEST, -(-size // _SEGMENT) * _SEGMENT)


# ---- by the allocator's model


@dataclass(frozen=True)
class Taken:
    """Bytes that an allocator reserves for a plan, by its model; better: settings that reserve less, and how much, the least first."""

    reserved: int
    better: Sequence[tuple[str, int]] = ()


def helps(found: Taken) -> str:
    """What would reserve less, in words that go on after others; empty if nothing is worth a word."""
    settings, reserved = found.better[0] if found.better else ("", found.reserved)
    saved = found.reserved - reserved
    return f"; {settings} saves {size_text(saved)}" if saved > _WORTH_WORDS * found.reserved else ""


def taken(graph: lowtide.Graph, plan: lowtide.Plan, allocator: str, layout: Layout | None, barrier: int | None) -> Taken:
    """What the plan takes under these settings of the allocator."""
    if layout is None:
        found = lowtide.footprint(graph, plan, allocator=allocator)
        return Taken(found.reserved, found.better)
    arranged = arrangement(graph, plan, barrier) if layout == "exact" else None
    events = primed_events(graph, plan, barrier) if arranged is None else arranged_events(graph, plan, barrier, arranged)
    return Taken(lowtide.replay_allocations(events, allocator)["peaks"]["reserved"])


def cuts_one_block(allocator: str) -> bool:
    """Do requests land in one large block that is free, each in as many bytes as best_fit.py says?"""
    block, first, second = 1 << 40, (11 << 20) + _BLOCK, (13 << 20) + _BLOCK  # such sizes are rounded up to powers of two, if any are
    events = [("allocate", 0, block), ("free", 0), ("allocate", 1, first), ("allocate", 2, second), ("allocate", 3, LARGEST_SMALL + 1)]
    found = lowtide.replay_allocations(events, allocator, every_event=True)["events"]
    begin = found[0][0]
    expected = [begin, begin + first, begin + first + second]
    return [address for address, _, _ in found[2:]] == expected and found[-1][2] == block


def primed_events(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None) -> list[tuple[Any, ...]]:
    """What steps of the plan ask of an allocator, after a block for all of it: as lowtide.replay_allocations takes it."""
    model = _Model(graph, barrier, block_size(graph, plan, barrier), _OTHERS)
    for _ in range(STEPS):
        for event in own_events(graph, plan, barrier):
            model.add(event)
        model.end_step()
    return model.events


def arranged_events(graph: lowtide.Graph, plan: lowtide.Plan, barrier: int | None, arranged: Arrangement) -> list[tuple[Any, ...]]:
    """The same of an arrangement in a block and a pool that are the plan's own; plugs have negative ids."""
    model = _Model(graph, barrier, arranged.block, _OWN)
    events = own_events(graph, plan, barrier)
    for _ in range(STEPS):
        for plugs, group in zip(arranged.plugs, _groups(events, arranged.firsts), strict=True):
            held = model.hold(plugs)
            for event in group:
                model.add(event)
            model.free(held)
        model.end_step()
    return model.events


class _Model:
    """Events for the model of the allocator: what others allocate, in their pool; then a block, taken and given back, in the pool of
    the plan; then its steps."""

    def __init__(self, graph: lowtide.Graph, barrier: int | None, block: int, pool: int) -> None:
        self.events: list[tuple[Any, ...]] = []
        self._pool, self._plugs, self._base = pool, 0, 0
        outside = [graph.resident_bytes, *(graph.tensor(t).bytes for t in sorted(_outside(graph, barrier)))]
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
