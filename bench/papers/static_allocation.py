"""Offsets of a plan's tensors in one arena, and how far its end can be from the least: the "optimal static memory
allocation plan" by which Kumar et al. (NeurIPS 2019) measure memory.

To find the least is NP-hard, but no arena is smaller than the most bytes that live at one time: an allocation that ends
there is optimal, others are at most so much above. Tensors are placed one after the other, each as low as it fits
between those that live at some time with it. Orders that do well elsewhere begin; then what came to lie above the limit
goes first, in the next round. That mostly ends at the limit within a few rounds. Where it does not, `Allocation.above`
says by how much the optimum may be smaller.
"""
from dataclasses import dataclass

import numpy as np

ROUNDS = 10  # of one order
NEAR = 1e-3  # so near to the limit no further orders are tried
PAIRS = 1e9  # two rounds are made at least, more while they compare fewer pairs of tensors than this
FEW = 1 << 14  # what has less than the FEW-th part of the limit is placed when the rest lies


@dataclass
class Allocation:
    offsets: np.ndarray
    bytes: int
    limit: int  # what lives at one time

    @property
    def above(self):
        """At most so much of the least allocation's bytes could be saved; 0: it is optimal."""
        return self.bytes / self.limit - 1 if self.limit else 0.0


def lives(graph, steps):
    """Bytes, first step and step after the last one of each tensor that the steps of a plan make, each time anew."""
    size = [tensor["bytes"] for tensor in graph["tensors"]]
    begun, found = {}, []
    for now, (kind, index) in enumerate(steps):
        if kind == "compute":
            begun.update((tensor, now) for tensor in graph["ops"][index]["outputs"])
        elif kind == "free":
            found.append((size[index], begun.pop(index), now))
        else:
            raise ValueError(f"a step {kind!r}")
    found += [(size[tensor], now, len(steps)) for tensor, now in begun.items()]
    return [life for life in found if life[0]]


def allocate(found):
    """Of (bytes, begin, end) for each tensor; `end` is the first time at which it is gone."""
    size, begin, end = np.array(found, dtype=np.int64).reshape(-1, 3).T.copy()
    limit = _most(size, begin, end)
    large, small = (np.flatnonzero(each) for each in (size * FEW >= limit, size * FEW < limit))
    goal, best = _most(size[large], begin[large], end[large]), (np.inf,)
    # What is first of all in the order stands last: when it begins; when it ends; how long it lives; its bytes.
    for keys in ((-end, begin), (begin, -end), (-size, begin - end), (begin, -size), (begin - end, -size)):
        order = large[np.lexsort([key[large] for key in keys])]
        best = min(best, _improve(order, size, begin, end, goal), key=lambda each: each[0])
        if best[0] <= goal * (1 + NEAR):
            break
    order = np.concatenate([best[1], small[np.argsort(-size[small], kind="stable")]])
    height, _, offsets = _improve(order, size, begin, end, limit)
    return Allocation(offsets, int(height), int(limit))


def _most(size, begin, end):
    """The most bytes that live at one time. What ends when another begins does not meet it."""
    times = np.concatenate([end, begin])
    change = np.concatenate([-size, size])[np.argsort(times, kind="stable")]
    return int(np.cumsum(change).max(initial=0))


def _improve(order, size, begin, end, goal):
    """The lowest of some rounds: its height, its order, its offsets."""
    best = (np.inf, order, None)
    rounds = max(2, min(ROUNDS, int(PAIRS / max(1, len(order)) ** 2)))
    for _ in range(rounds):
        offsets = _place(order, size, begin, end)
        tops = offsets[order] + size[order]
        height = tops.max(initial=0)
        if height < best[0]:
            best = (height, order, offsets)
        if height <= goal:
            break
        order = np.concatenate([order[tops > goal], order[tops <= goal]])
    return best


def _place(order, size, begin, end):
    """Each as low as those allow that were placed before it."""
    offsets = np.zeros(len(size), dtype=np.int64)
    first, last = begin[order].astype(np.int32), end[order].astype(np.int32)
    low, high = (np.zeros(len(order), dtype=np.int64) for _ in range(2))
    for i, each in enumerate(order):
        beside = np.flatnonzero((first[:i] < last[i]) & (last[:i] > first[i]))
        beside = beside[np.argsort(low[beside])]
        tops = np.concatenate([[0], np.maximum.accumulate(high[beside])])
        fits = np.flatnonzero(low[beside] - tops[:-1] >= size[each])
        low[i] = tops[fits[0]] if len(fits) else tops[-1]
        high[i] = low[i] + size[each]
        offsets[each] = low[i]
    return offsets
