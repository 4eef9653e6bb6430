"""One block of a caching allocator, cut by best fit: where requests above 1 MiB land, and what to hold so that they land elsewhere.

The rules are those of docs/reference/allocator.md for large blocks without expandable segments: a request takes the smallest free
block that is large enough, of equal ones that with the lowest address.  The rest becomes a free block if it exceeds 1 MiB.  Free
neighbours merge.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MIB = 1 << 20
LARGEST_SMALL = MIB  # smaller requests come from other segments
_OFFSET, _ALL = 2, 3  # scores of a request that lands at its offset, and of one that takes its room there
_MOST_PLUGS = 24  # of one point that are looked through for needless ones


class Request(NamedTuple):
    """A request for `size` bytes that is to land at `offset` and take `room`: as much or up to 1 MiB more, which nothing could hold
    free for it."""

    size: int
    offset: int
    room: int


class Plug(NamedTuple):
    """Bytes to allocate, which land at `offset`.  stays: held until the requests are served; else released once all plugs are there,
    which leaves a free block of just these bytes."""

    size: int
    offset: int
    stays: bool


class BestFit:
    """Free and allocated parts of a block, by offset."""

    def __init__(self, size: int) -> None:
        self._free: list[tuple[int, int]] = [(size, 0)]  # sizes and offsets, in order
        self._begins = {0: size}  # offset -> size of the free part
        self._ends = {size: 0}
        self._taken: dict[int, int] = {}

    def take(self, size: int) -> int | None:
        """The offset at which a request lands; None if nothing is large enough."""
        at = bisect.bisect_left(self._free, (size, -1))
        if at == len(self._free):
            return None
        found, offset = self._free[at]
        self._remove(found, offset)
        if found - size > LARGEST_SMALL:
            self._add(found - size, offset + size)
            found = size
        self._taken[offset] = found
        return offset

    def give(self, offset: int) -> None:
        size = self._taken.pop(offset)
        after = self._begins.get(offset + size)
        if after is not None:
            self._remove(after, offset + size)
            size += after
        before = self._ends.get(offset)
        if before is not None:
            self._remove(offset - before, before)
            offset, size = before, size + offset - before
        self._add(size, offset)

    def is_whole(self) -> bool:
        """Is nothing allocated?"""
        return not self._taken

    def plugs(self, requests: Sequence[Request], fewest: bool = True) -> list[Plug]:
        """What to hold so that these requests, in this order, land where they are to.  Where that is in vain, as many as possible do.
        fewest: look for plugs that are not needed.
        """
        plugs: list[Plug] = []
        found = self._score(plugs, requests)
        for behind in (False, True):
            if found == _ALL * len(requests):
                break
            more = self._carved(requests, behind)
            score = self._score(more, requests)
            if score > found:
                plugs, found = more, score
        for plug in plugs[::-1] if fewest and len(plugs) <= _MOST_PLUGS else ():
            fewer = [other for other in plugs if other is not plug]
            if self._land(fewer) and self._score(fewer, requests) == found:
                plugs = fewer
        return plugs

    def hold(self, plugs: Iterable[Plug]) -> list[int]:
        """Allocate plugs; the offsets of those that stay."""
        held: list[int] = []
        spaces: list[int] = []
        for plug in plugs:
            offset = self.take(plug.size)
            assert offset is not None, "plugs are free parts"
            (held if plug.stays else spaces).append(offset)
        for offset in spaces:
            self.give(offset)
        return held

    def _land(self, plugs: Sequence[Plug]) -> bool:
        """Do all of these plugs land where they say?"""
        offsets: list[int] = []
        for plug in plugs:
            offset = self.take(plug.size)
            if offset is not None:
                offsets.append(offset)
            if offset != plug.offset:
                break
        for offset in offsets:
            self.give(offset)
        return offsets == [plug.offset for plug in plugs]

    def _score(self, plugs: Sequence[Plug], requests: Sequence[Request]) -> int:
        """How many of the requests land where they are to, behind these plugs, and with lower weight how many take their room."""
        taken, score = self.hold(plugs), 0
        for request in requests:
            offset = self.take(request.size)
            if offset is not None:
                taken.append(offset)
                if offset == request.offset:
                    score += _ALL if self._taken[offset] == request.room else _OFFSET
        for offset in taken:
            self.give(offset)
        return score

    def _carved(self, requests: Sequence[Request], behind: bool) -> list[Plug]:
        """Plugs that leave free, of what the requests could take, only the parts at their offsets; with `behind` these end with the request.

        Free parts are gone through from the smallest on.  All smaller ones are full by then, so each plug lands in the part it is for.
        """
        pieces = {part: self._pieces(part, inside, behind) for part, inside in self._by_part(requests).items()}
        if not pieces:
            return []
        sizes = [plug.size for plugs in pieces.values() for plug in plugs] + [request.size for request in requests]
        first, last = bisect.bisect_left(self._free, (min(sizes), -1)), max(pieces)
        found: list[Plug] = []
        for size, offset in self._free[first:]:
            found += pieces.get((size, offset), [Plug(size, offset, True)])
            if (size, offset) == last:
                break
        return found

    def _by_part(self, requests: Sequence[Request]) -> dict[tuple[int, int], list[Request]]:
        """The requests by the free parts that they are to land in, in the order of their offsets; without those that no part holds."""
        begins = sorted(self._begins)
        found: dict[tuple[int, int], list[Request]] = {}
        for request in sorted(requests, key=lambda r: r.offset):
            at = bisect.bisect_right(begins, request.offset) - 1
            if at >= 0 and request.offset + request.room <= begins[at] + self._begins[begins[at]]:
                found.setdefault((self._begins[begins[at]], begins[at]), []).append(request)
        return found

    @staticmethod
    def _pieces(part: tuple[int, int], inside: Sequence[Request], behind: bool) -> list[Plug]:
        """A free part as plugs before, between and perhaps behind requests, and spaces for these."""
        size, now = part
        end, pieces = now + size, []
        for request in inside:
            if request.offset - now > LARGEST_SMALL:
                pieces.append(Plug(request.offset - now, now, True))
                now = request.offset
            pieces.append(Plug(request.room, now, False))
            now += request.room
        if behind and end - now > LARGEST_SMALL:
            pieces.append(Plug(end - now, now, True))
        return pieces

    def _add(self, size: int, offset: int) -> None:
        bisect.insort(self._free, (size, offset))
        self._begins[offset] = size
        self._ends[offset + size] = offset

    def _remove(self, size: int, offset: int) -> None:
        del self._free[bisect.bisect_left(self._free, (size, offset))]
        del self._begins[offset], self._ends[offset + size]
