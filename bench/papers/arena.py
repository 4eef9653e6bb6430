"""Bytes of one arena in which every tensor of a plan has its place from when it is made until it is freed.

The papers measure memory by "an optimal static memory allocation plan".  Live bytes are its lower bound; best fit,
the largest and longest-lived first, is what a runtime would do, and is at most some per cent above.
"""
from __future__ import annotations

import numpy as np

_SMALL = 1 << 16  # bytes; what is smaller is put beside the arena, at its live bytes


def arena_bytes(graph, steps):
    """For steps as plan files have them: the arena of what ops make, and the inputs beside it."""
    size = [tensor["bytes"] for tensor in graph["tensors"]]
    made = {tensor for op in graph["ops"] for tensor in op["outputs"]}
    born, lives, small, most_small = {}, [], 0, 0
    for now, (kind, index) in enumerate(steps):
        if kind == "compute":
            for tensor in graph["ops"][index]["outputs"]:
                born[tensor] = now
                small += size[tensor] if size[tensor] < _SMALL else 0
        elif kind == "free" and index in born:
            if size[index] < _SMALL:
                small -= size[index]
                born.pop(index)
            else:
                lives.append((size[index], born.pop(index), now))
        most_small = max(most_small, small)
    lives += [(size[tensor], begin, len(steps)) for tensor, begin in born.items() if size[tensor] >= _SMALL]
    inputs = sum(bytes_ for tensor, bytes_ in enumerate(size) if tensor not in made)
    return inputs + most_small + _best_fit(lives)


def _best_fit(lives):
    """The height of a packing of (bytes, begin, end): the largest first, each into the tightest gap."""
    lives = sorted(lives, key=lambda life: (-life[0], life[1] - life[2]))
    size, begin, end = (np.array([life[k] for life in lives], dtype=np.int64) for k in range(3))
    offset = np.zeros(len(lives), dtype=np.int64)
    for i in range(len(lives)):
        beside = np.flatnonzero((begin[:i] < end[i]) & (end[:i] > begin[i]))
        beside = beside[np.argsort(offset[beside])]
        tops = np.maximum.accumulate(np.concatenate([[0], offset[beside] + size[beside]]))
        gaps = offset[beside] - tops[:-1]
        fits = np.flatnonzero(gaps >= size[i])
        offset[i] = tops[fits[np.argmin(gaps[fits])]] if len(fits) else tops[-1]
    return int((offset + size).max(initial=0))
