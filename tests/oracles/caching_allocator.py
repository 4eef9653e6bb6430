"""The caching allocator of PyTorch a second time: slow, with plain lists, from the rules of its documentation and source.

It shares no code with the C++ model and keeps no order of blocks: a segment is a list of blocks, an address is the sum of what
lies before, and every search looks at everything.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

MIB = 1 << 20
FREE, HELD, WAITING, UNMAPPED = "free", "held", "waiting", "unmapped"


@dataclass
class Settings:
    expandable: bool = False
    large_segment: int = 20 * MIB
    max_split: int | None = None
    max_rounding: int = 20 * MIB
    divisions: tuple[int, ...] = (0,) * 16  # of sizes below 2 MiB, below 4 MiB, ...
    collect_at: float = 0.0
    fraction: float = 1.0


@dataclass(eq=False)
class Block:
    size: int
    state: str = FREE
    requested: int = 0
    uses: set[int] = field(default_factory=set)
    searches: int = 0


@dataclass(eq=False)
class Segment:
    stream: int
    small: bool
    base: int
    blocks: list[Block]

    def address(self, block: Block) -> int:
        return self.base + sum(b.size for b in self.blocks[:self.blocks.index(block)])

    def replace(self, block: Block, *others: Block) -> None:
        at = self.blocks.index(block)
        self.blocks[at:at + 1] = others


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Allocator:
    def __init__(self, settings: Settings, memory: int | None = None):
        self.settings, self.memory = settings, memory
        self.allowed = None if settings.fraction >= 1 else int(settings.fraction * float(memory))
        self.segments: list[Segment] = []
        self.waiting: list[tuple[int, Segment, Block]] = []  # the stream that a freed block waits for
        self.done: list[int] = []  # indices of `waiting` whose work is done
        self.reserved = self.next_address = 0
        self.searches = {True: 0, False: 0}
        self.counts = dict.fromkeys(
            "allocations splits merges device_allocations device_frees retries unmaps collected oversize_frees oversize_refusals "
            "waits".split(), 0)
        self.peaks = dict.fromkeys("allocated active requested reserved inactive_split".split(), 0)

    # What there is.
    def levels(self) -> dict[str, int]:
        every = [(s, b) for s in self.segments for b in s.blocks]
        active = [b for _, b in every if b.state in (HELD, WAITING)]
        idle = [b for s, b in every if b.state == FREE and len(s.blocks) > 1]
        return {
            "allocated": sum(b.size for b in active if b.state == HELD),
            "active": sum(b.size for b in active),
            "requested": sum(b.requested for b in active),
            "reserved": self.reserved,
            "inactive_split": 0 if self.settings.expandable else sum(b.size for b in idle),
        }

    def note(self) -> None:
        for key, value in self.levels().items():
            self.peaks[key] = max(self.peaks[key], value)

    def collecting(self) -> bool:
        return self.allowed is not None and self.settings.collect_at > 0 and not self.settings.expandable

    # Sizes.
    def round(self, size: int) -> int:
        if size < 512:
            return 512
        interval = min(max(int(math.log2(size)) if size < 1 << 40 else size.bit_length() - 1, 20), 35) - 20
        divisions = self.settings.divisions[interval]
        if divisions > 1 and size > 512 * divisions:
            floor = 1 << (size.bit_length() - 1)
            return up(size, floor // divisions)
        return up(size, 512)

    def segment_bytes(self, size: int) -> int:
        if size <= MIB:
            return 2 * MIB
        return self.settings.large_segment if size < 10 * MIB else up(size, 2 * MIB)

    # Requests.
    def allocate(self, requested: int, stream: int) -> tuple[Segment, Block] | None:
        self.process()
        size = self.round(requested)
        found = self.cached(size, stream)
        if found is None:
            if self.collecting():
                self.collect()
            found = self.from_device(size, stream)
            if found is None and self.release_oversize(size, stream):
                found = self.from_device(size, stream)
            if found is None:
                self.empty_cache()
                self.counts["retries"] += 1
                found = self.from_device(size, stream)
        if found is None:
            return None
        segment, block = found
        rest = block.size - size
        if segment.small or self.settings.expandable:
            cut = rest >= 512
        else:
            cut = rest > MIB and (self.settings.max_split is None or size < self.settings.max_split)
        if cut:
            held = Block(size)
            block.size = rest
            block.searches = self.searches[segment.small]
            segment.blocks.insert(segment.blocks.index(block), held)
            block = held
            self.counts["splits"] += 1
        block.state, block.requested = HELD, requested
        self.counts["allocations"] += 1
        self.note()
        return segment, block

    def in_pool(self, size: int, stream: int) -> list[Segment]:
        return [s for s in self.segments if s.stream == stream and s.small == (size <= MIB)]

    def cached(self, size: int, stream: int) -> tuple[Segment, Block] | None:
        if self.collecting():
            self.searches[size <= MIB] += 1
        fits = [(b.size, s.address(b), s, b) for s in self.in_pool(size, stream) for b in s.blocks
                if b.state == FREE and b.size >= size]
        fits.sort(key=lambda fit: fit[:2])
        if not fits:
            return None
        best = fits[0]
        if self.settings.expandable:
            for other in fits[1:]:
                if self.can_grow_to(other) >= self.can_grow_to(best):
                    break
                best = other
        limit = self.settings.max_split
        if limit is not None:
            too_large = best[0] >= limit if size < limit else best[0] >= size + self.settings.max_rounding
            if too_large:
                self.counts["oversize_refusals"] += 1
                return None
        return best[2:]

    @staticmethod
    def can_grow_to(fit: tuple[int, int, Segment, Block]) -> int:
        _, _, segment, block = fit
        after = segment.blocks[segment.blocks.index(block) + 1:][:1]
        return block.size + sum(b.size for b in after if b.state == UNMAPPED)

    def take_memory(self, size: int) -> bool:
        if self.memory is not None and self.reserved + size > self.memory:
            return False
        self.reserved += size
        self.counts["device_allocations"] += 1
        return True

    def give_memory(self, size: int) -> None:
        self.reserved -= size
        self.counts["device_frees"] += 1

    def new_segment(self, small: bool, stream: int, size: int, state: str) -> Segment:
        segment = Segment(stream, small, self.next_address, [Block(size, state)])
        self.next_address += size
        self.segments.append(segment)
        return segment

    def from_device(self, size: int, stream: int) -> tuple[Segment, Block] | None:
        wanted = self.segment_bytes(size)
        if self.allowed is not None and self.reserved + wanted > self.allowed:
            return None
        if self.settings.expandable:
            return self.grow(size, stream)
        if not self.take_memory(wanted):
            return None
        segment = self.new_segment(size <= MIB, stream, wanted, FREE)
        self.note()
        return segment, segment.blocks[0]

    def page(self, small: bool) -> int:
        return 2 * MIB if small else self.settings.large_segment

    # Expandable segments.
    def grow(self, size: int, stream: int) -> tuple[Segment, Block] | None:
        small = size <= MIB
        page = self.page(small)
        space = up(1 << 50 if self.memory is None else self.memory + self.memory // 8, page)
        if size > space:
            return None
        place = self.find_room(size, stream)
        if place is None:
            segment = self.new_segment(small, stream, space, UNMAPPED)
            place = segment, 0
        segment, at = place
        have = segment.blocks[at].size if segment.blocks[at].state == FREE else 0
        while True:
            if have < size:  # the block at `at`, or the one behind the free one, is to be mapped
                target = at if segment.blocks[at].state == UNMAPPED else at + 1
                block = segment.blocks[target]
                pages = up(min(size - have, block.size), page)
                if not self.take_memory(pages):
                    return None
                parts = [Block(pages, FREE)]
                if pages < block.size:
                    parts.append(Block(block.size - pages, UNMAPPED))
                segment.blocks[target:target + 1] = parts
                at = self.join(segment, parts[0], count=False)
                segment.blocks[at].searches = self.searches[small]
                have = segment.blocks[at].size
                self.note()
            if have >= size:
                return segment, segment.blocks[at]

    def find_room(self, size: int, stream: int) -> tuple[Segment, int] | None:
        for segment in sorted(self.in_pool(size, stream), key=lambda s: s.base):
            for at, block in enumerate(segment.blocks):
                if block.state != UNMAPPED:
                    continue
                first = at - 1 if at > 0 and segment.blocks[at - 1].state == FREE else at
                room, end = 0, first
                while room < size and end < len(segment.blocks) and segment.blocks[end].state in (FREE, UNMAPPED):
                    room += segment.blocks[end].size
                    end += 1
                if room >= size:
                    return segment, first
        return None

    def join(self, segment: Segment, block: Block, count: bool) -> int:
        """Merges the block with neighbours of its state; where it lies then."""
        at = segment.blocks.index(block)
        for other in (at - 1, at + 1):
            neighbour = segment.blocks[other] if 0 <= other < len(segment.blocks) else None
            if neighbour is None or neighbour.state != block.state:
                continue
            block.size += neighbour.size
            neighbour.state = "gone"
            self.counts["merges"] += count
        segment.blocks = [b for b in segment.blocks if b.state != "gone"]
        return segment.blocks.index(block)

    # Frees.
    def free(self, segment: Segment, block: Block) -> None:
        uses, block.uses = block.uses, set()
        if uses:
            block.state = WAITING
            self.counts["waits"] += 1
            self.waiting += [(stream, segment, block) for stream in uses]
        else:
            self.cache(segment, block)
        self.note()

    def cache(self, segment: Segment, block: Block) -> None:
        block.state = FREE
        block.searches = self.searches[segment.small]
        self.join(segment, block, count=True)

    def use_on(self, segment: Segment, block: Block, stream: int) -> None:
        if stream != segment.stream:
            block.uses.add(stream)

    def finish(self, stream: int) -> None:
        self.done += [i for i, wait in enumerate(self.waiting) if wait[0] == stream and i not in self.done]

    def process(self) -> None:
        done = sorted((self.waiting[i][0], i) for i in self.done)
        self.done = []
        left = dict(enumerate(self.waiting))
        for _, i in done:
            _, segment, block = left.pop(i)
            if all(other is not block for _, _, other in left.values()):
                self.cache(segment, block)
                self.note()
        self.waiting = list(left.values())

    # What is given back.
    def release(self, segment: Segment) -> None:
        self.give_memory(segment.blocks[0].size)
        self.segments.remove(segment)

    def whole(self, small: bool) -> list[Segment]:
        return [s for s in self.segments if s.small == small and len(s.blocks) == 1 and s.blocks[0].state == FREE]

    def empty_cache(self) -> None:
        self.done = list(range(len(self.waiting)))
        self.process()
        if not self.settings.expandable:
            for segment in self.whole(True) + self.whole(False):
                self.release(segment)
            return
        for segment in list(self.segments):
            page, before = self.page(segment.small), self.counts["unmaps"]
            for block in [b for b in segment.blocks if b.state == FREE]:
                start = segment.address(block) - segment.base
                first, last = up(start, page), (start + block.size) // page * page
                if first >= last:
                    continue
                self.counts["unmaps"] += 1
                self.give_memory(last - first)
                pages = Block(last - first, UNMAPPED)
                sides = [Block(first - start, searches=self.searches[segment.small]),
                         Block(start + block.size - last, searches=self.searches[segment.small])]
                segment.replace(block, *(b for b in (sides[0], pages, sides[1]) if b.size))
                self.join(segment, pages, count=False)
            # One of which nothing was ever mapped stays.
            if self.counts["unmaps"] > before and [b.state for b in segment.blocks] == [UNMAPPED]:
                self.segments.remove(segment)

    def release_oversize(self, size: int, stream: int) -> bool:
        limit = self.settings.max_split
        if limit is None or self.settings.expandable:
            return False
        # A block above the limit was never split; a free one of its size is a whole segment, or what merging made of one.
        large = sorted(((b.size, s.address(b), s) for s in self.in_pool(size, stream) for b in s.blocks
                        if b.state == FREE and b.size >= limit), key=lambda entry: entry[:2])
        enough = [entry for entry in large if entry[0] >= max(size, limit)]
        freed = 0
        for entry in enough[:1] or reversed(large):
            if freed >= max(size, limit):
                break
            freed += entry[0]
            self.counts["oversize_frees"] += 1
            self.release(entry[2])
        return freed >= max(size, limit)

    def collect(self) -> None:
        threshold = int(self.settings.collect_at * float(self.allowed))
        age = {s: self.searches[False] - s.blocks[0].searches for s in self.whole(False)}
        while age and self.reserved > threshold:
            mean = sum(age.values()) / len(age)
            for segment in [s for s, years in age.items() if years >= mean]:
                del age[segment]
                self.counts["collected"] += 1
                self.release(segment)


def replay(trace, settings: Settings, memory: int | None = None) -> dict:
    """The figures of a trace of (kind, id, bytes, stream), as lowtide.replay_allocations gives them."""
    allocator = Allocator(settings, memory)
    held: dict[int, tuple[Segment, Block]] = {}
    steps, events, lost, open_step = [], [], None, False
    for index, (kind, name, size, stream) in enumerate(trace):
        address = None
        open_step = kind != "end_step"
        if kind == "allocate":
            got = allocator.allocate(size, stream)
            if got is None:
                lost = index
            else:
                held[name] = got
                address = got[0].address(got[1])
        elif kind == "free":
            allocator.free(*held.pop(name))
        elif kind == "use_on":
            allocator.use_on(*held[name], stream)
        elif kind == "finish":
            allocator.finish(stream)
        elif kind == "empty_cache":
            allocator.empty_cache()
        else:
            steps.append(dict(allocator.peaks))
            allocator.peaks = allocator.levels()
        now = allocator.levels()
        events.append((address, now["allocated"], now["reserved"]))
        if lost is not None:
            break
    if open_step:
        steps.append(dict(allocator.peaks))
    return {"steps": steps, "events": events, "counts": allocator.counts, "out_of_memory": lost, "end": allocator.levels()}
