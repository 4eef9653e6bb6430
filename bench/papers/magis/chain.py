"""A training graph as POFO wants it: a chain of layers.

A layer ends where one tensor alone is handed on by the forward. Its tape is what its forward makes and backwards read;
what forward and backward need while they run is read off the graph's own order. A backward op belongs to the deepest
layer whose weights or inner tensors have been read up to it, in the graph's order. Long skip connections leave few
layers, or one: POFO can do nothing for them, as MAGIS' paper says, too.
"""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "peers"))
from pofo import Chain


def chain(graph: dict[str, Any], most: int) -> tuple[Chain, int]:
    """The chain, of `most` layers at most, and the bytes that are in use beside it all the time."""
    ops, size = graph["ops"], [t["bytes"] for t in graph["tensors"]]
    ops = [ops[i] for i in graph.get("order", range(len(ops)))]
    split = next(i for i, op in enumerate(ops) if op.get("phase", "forward") != "forward")
    made = {t: i for i, op in enumerate(ops) for t in op["outputs"]}
    last = {t: i for i, op in enumerate(ops) for t in (*op["inputs"], *op["outputs"])}
    last_forward = {t: i for i, op in enumerate(ops[:split]) for t in (*op["inputs"], *op["outputs"])}
    last |= {t: len(ops) for t in graph["outputs"]}

    tape = {t for t, i in made.items() if i < split and last[t] >= split}
    # a cut after op i: one tensor, made up to i, is read by what the forward has left; by the backward, too, since a
    # chain's layers keep what they are given
    cuts: list[tuple[int, int]] = []
    for i in range(split - 1):
        crossing = [t for t, at in last_forward.items() if t in made and made[t] <= i < at]
        if len(crossing) == 1 and crossing[0] in tape and (not cuts or cuts[-1][1] != crossing[0]):
            cuts.append((i, crossing[0]))
    # layers of about the same time, where there are more than POFO can take
    if len(cuts) >= most:
        total, passed, kept = sum(op.get("time", 0) for op in ops[:split]), 0, []
        ends = dict(cuts)
        for i, op in enumerate(ops[:split]):
            passed += op.get("time", 0)
            if i in ends and passed * most >= total * (len(kept) + 1) and len(kept) < most - 1:
                kept.append((i, ends[i]))
        cuts = kept
    final = max((t for t in made if made[t] == split - 1), key=lambda t: size[t], default=None)
    bounds = [i for i, _ in cuts] + [split - 1]
    handed = [t for _, t in cuts] + ([final] if final is not None else [])
    layer_of = [next(k for k, end in enumerate(bounds, 1) if i <= end) for i in range(split)]
    layers = len(bounds)

    owner = {t: layer_of[i] for t, i in made.items() if i < split}  # layer that makes a tensor
    inner = {t: k for t, k in owner.items() if t not in handed}
    for i, op in enumerate(ops[:split]):
        for t in op["inputs"]:
            if t not in made:
                inner.setdefault(t, layer_of[i])
    back_of, here = [], layers
    for op in ops[split:]:
        here = min([here] + [inner[t] for t in op["inputs"] if t in inner])
        back_of.append(here)

    a = [0] + [size[t] for t in handed]
    kept, need_f, need_b = [0] * (layers + 1), [0] * (layers + 1), [0] * (layers + 1)
    forward, backward = [0] * (layers + 1), [0] * (layers + 1)
    for k in range(1, layers + 1):
        own = [t for t in owner if owner[t] == k]
        kept[k] = sum(size[t] for t in own if t in tape or t == handed[k - 1])
    live: dict[int, int] = {}
    for i, op in enumerate(ops):
        live |= {t: size[t] for t in op["outputs"]}
        work = op.get("workspace", 0)
        if i < split:
            k = layer_of[i]
            forward[k] += op.get("time", 0)
            in_use = sum(b for t, b in live.items() if owner[t] == k and last_forward[t] >= i)
            need_f[k] = max(need_f[k], in_use + work)
        else:
            k = back_of[i - split]
            backward[k] += op.get("time", 0)
            in_use = sum(b for t, b in live.items() if t not in owner or owner[t] >= k)
            need_b[k] = max(need_b[k], in_use + work)
        live = {t: b for t, b in live.items() if last[t] > i}
    need_f = [max(f, b) for f, b in zip(need_f, a)]
    base = graph.get("resident_bytes", 0) + sum(b for t, b in enumerate(size) if t not in made)
    return Chain(a, forward, backward, kept, need_f, need_b), base


def read(path: Path, most: int) -> tuple[Chain, int]:
    import gzip

    with gzip.open(path, "rt") as file:
        return chain(json.load(file), most)
